// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "calls"
verdict = "ok"

[recursion_of_one_function]
rule = "A function calls itself once; each lane is as deep as its number says."
[recursion_twice]
rule = "A function calls itself twice, and needs the first result after the second call."
expected = [0, 1, 1, 2, 3, 5, 0, 1]
[recursion_with_an_array]
rule = "Each call of a recursive function has an array of its own."
[recursion_through_another]
rule = "Two functions call each other."
expected = [1, 0]
[recursion_through_a_pointer]
rule = "A function calls itself through a pointer that it was given."
[recursion_through_a_reference]
rule = "The outer call's variable is changed by the inner ones, through its address."
expected = [28]
[recursion_in_a_loop]
rule = "A function calls itself in a loop, as often as its level says."
[recursion_in_one_branch]
rule = "Some lanes recurse while others wait at the end of the branch, and all exchange values after it."
[recursion_with_wide_values]
rule = "Arguments and results of 8 bytes are kept over the inner call."
result = "u64"
[recursion_64_deep]
rule = "64 calls deep fit a stack of 1,024 bytes, where the card says so."
verdict = ""
risky = true
[recursion_of_wide_frames]
rule = "30 calls deep, with eight values kept at each."
verdict = ""
risky = true
[recursion_without_end]
rule = "Recursion that does not end overflows the stack."
verdict = "undefined"
faults = ["endless loop"]
[pointer_from_a_table]
rule = "Each lane calls the function that a table in global memory says."
[pointer_as_an_argument]
rule = "A function that is not inlined calls what it was given."
[pointer_compared]
rule = "Addresses of functions may be compared; no function has address 0."
expected = [5]
[pointer_in_shared_memory]
rule = "A pointer to a function may lie in shared memory."
[pointer_is_null]
rule = "A call through a pointer that is 0 ends the launch."
verdict = "undefined"
faults = ["jump to nowhere"]
[virtual_of_two_classes]
rule = "A virtual function is that of the object's class."
[virtual_calls_virtual]
rule = "A virtual function of the base calls one that the derived class overrides."
[virtual_with_two_bases]
rule = "The second base's functions get the address of the whole object."
[virtual_in_a_loop]
rule = "A loop over objects of three classes calls a virtual function of each."
[noinline_of_a_struct]
rule = "Structs are passed and returned by value."
[noinline_with_eight_arguments]
rule = "A function takes arguments of four sizes."
[jump_table]
rule = "brx.idx goes to the label that each lane's register says."
expected = [10, 20, 10, 30]
[jump_table_in_a_loop]
rule = "brx.idx in a loop, as an interpreter uses it."
[alloca_of_each_lane]
rule = "Memory of alloca is the lane's own."
[alloca_by_lane]
rule = "Each lane takes another length of its stack."
[alloca_twice]
rule = "What alloca gives twice does not overlap."
expected = [1]
[alloca_restored]
rule = "After stackrestore the same memory is given out again."
expected = [1]
*/

#define SELF threadIdx.x

__device__ __noinline__ unsigned down(unsigned n) { return n == 0 ? 1 : n * 3 + down(n - 1); }
extern "C" __global__ void recursion_of_one_function(unsigned *out) { out[SELF] = down(SELF % 8); }

__device__ __noinline__ unsigned fibonacci(unsigned n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void recursion_twice(unsigned *out) {
    const unsigned n = SELF % 8;
    out[SELF] = fibonacci(n < 6 ? n : n - 6);
}

__device__ __noinline__ unsigned held(unsigned n) {
    unsigned own[4];
    for (unsigned i = 0; i < 4; ++i) own[(i + n) & 3] = n * 10 + i;
    const unsigned below = n ? held(n - 1) : 0;
    return below * 3 + own[n & 3] + own[(n + below) & 3];
}
extern "C" __global__ void recursion_with_an_array(unsigned *out) { out[SELF] = held(SELF % 6); }

__device__ __noinline__ unsigned odd(unsigned n);
__device__ __noinline__ unsigned even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ unsigned odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
extern "C" __global__ void recursion_through_another(unsigned *out) { out[SELF] = even(SELF % 12); }

typedef unsigned (*Step)(unsigned, void *);
__device__ __noinline__ unsigned halve(unsigned n, void *next) {
    return n < 2 ? n : 1 + ((Step)next)(n / 2, next);
}
extern "C" __global__ void recursion_through_a_pointer(unsigned *out) {
    out[SELF] = halve(SELF + 1, (void *)(Step)halve);
}

__device__ __noinline__ void gather(unsigned n, unsigned *sum) {
    unsigned mine = n;
    if (n) gather(n - 1, &mine);
    *sum += mine;
}
extern "C" __global__ void recursion_through_a_reference(unsigned *out) {
    unsigned sum = 0;
    gather(7, &sum);
    out[SELF] = sum;
}

__device__ __noinline__ unsigned leaves(unsigned level) {
    unsigned count = 1;
    for (unsigned i = 0; i < level; ++i) count += leaves(level - 1 - i);
    return count;
}
extern "C" __global__ void recursion_in_a_loop(unsigned *out) { out[SELF] = leaves(SELF % 5); }

extern "C" __global__ void recursion_in_one_branch(unsigned *out) {
    unsigned mine = SELF;
    if (SELF % 3 == 0) mine = down(SELF % 7);
    out[SELF] = __shfl_xor_sync(0xFFFFFFFFu, mine, 5);
}

__device__ __noinline__ unsigned long long power(unsigned long long base, unsigned n, double scale) {
    return n == 0 ? (unsigned long long)scale : base * power(base + 1, n - 1, scale * 2.0) + n;
}
extern "C" __global__ void recursion_with_wide_values(unsigned long long *out) {
    out[SELF] = power(SELF + (1ull << 33), SELF % 6, 1.5);
}

extern "C" __global__ void recursion_64_deep(unsigned *out) { out[SELF] = down(64 + SELF % 2); }

__device__ __noinline__ unsigned eight(unsigned n, unsigned a, unsigned b, unsigned c) {
    if (n == 0) return a;
    const unsigned d = a * b + 1, e = b * c + 2, f = c * a + 3, g = a ^ e;
    const unsigned below = eight(n - 1, b, c, a + n);
    return below * 3 + a + b * 5 + c * 7 + d * 11 + e * 13 + f * 17 + g * 19;
}
extern "C" __global__ void recursion_of_wide_frames(unsigned *out) { out[SELF] = eight(30, SELF, 2, 3); }

__device__ __noinline__ unsigned endless(unsigned n, unsigned *out) {
    const unsigned below = endless(n + 1, out);
    out[SELF] = below;
    return below + n;
}
extern "C" __global__ void recursion_without_end(unsigned *out) { out[SELF] = endless(SELF, out); }

typedef unsigned (*Operation)(unsigned, unsigned);
__device__ unsigned plus(unsigned a, unsigned b) { return a + b; }
__device__ unsigned times(unsigned a, unsigned b) { return a * b; }
__device__ unsigned minus(unsigned a, unsigned b) { return a - b; }
__device__ Operation operations[4] = {plus, times, minus, 0};

extern "C" __global__ void pointer_from_a_table(unsigned *out) { out[SELF] = operations[SELF % 3](SELF, 5); }

__device__ __noinline__ unsigned applied(Operation chosen, unsigned a) { return chosen(a, a + 1) * 2; }
extern "C" __global__ void pointer_as_an_argument(unsigned *out) { out[SELF] = applied(operations[SELF & 1], SELF); }

extern "C" __global__ void pointer_compared(unsigned *out) {
    const bool same = operations[0] == plus, other = operations[1] == plus, none = operations[3] == 0;
    out[SELF] = same + 2 * other + 4 * none;
}

extern "C" __global__ void pointer_in_shared_memory(unsigned *out) {
    __shared__ Operation chosen[2];
    if (SELF < 2) chosen[SELF] = operations[2 - SELF];
    __syncthreads();
    out[SELF] = chosen[SELF & 1](40, SELF);
}

extern "C" __global__ void pointer_is_null(unsigned *out) { out[SELF] = operations[3](SELF, 1); }

struct Shape {
    unsigned scale;
    __device__ Shape(unsigned scale) : scale(scale) {}
    __device__ virtual unsigned area(unsigned n) const { return n * scale; }
    __device__ virtual unsigned both(unsigned n) const { return area(n) + 100 * area(n + 1); }
};
struct Square : Shape {
    __device__ Square(unsigned scale) : Shape(scale) {}
    __device__ unsigned area(unsigned n) const override { return n * n * scale; }
};
struct Cube : Square {
    __device__ Cube(unsigned scale) : Square(scale) {}
    __device__ unsigned area(unsigned n) const override { return n * Square::area(n); }
};
extern "C" __global__ void virtual_of_two_classes(unsigned *out) {
    Shape shape(3);
    Square square(2);
    const Shape *mine = SELF & 1 ? &shape : &square;
    out[SELF] = mine->area(SELF);
}
extern "C" __global__ void virtual_calls_virtual(unsigned *out) {
    Shape shape(3);
    Square square(2);
    const Shape *mine = SELF & 1 ? &shape : &square;
    out[SELF] = mine->both(SELF);
}

struct Named {
    unsigned name;
    __device__ virtual unsigned told() const { return name; }
};
struct Both : Shape, Named {
    __device__ Both(unsigned n) : Shape(n + 1) { name = n; }
    __device__ unsigned told() const override { return name * 1000 + scale; }
};
extern "C" __global__ void virtual_with_two_bases(unsigned *out) {
    Both both(SELF);
    Named plain;
    plain.name = 7;
    const Named *mine = SELF % 3 ? (const Named *)&both : &plain;
    out[SELF] = mine->told();
}

extern "C" __global__ void virtual_in_a_loop(unsigned *out) {
    Shape shape(1);
    Square square(2);
    Cube cube(3);
    const Shape *all[3] = {&shape, &square, &cube};
    unsigned sum = 0;
    for (unsigned i = 0; i < 3; ++i) sum = sum * 7 + all[(i + SELF) % 3]->area(SELF);
    out[SELF] = sum;
}

struct Pair {
    unsigned char tag;
    unsigned first;
    unsigned short last[3];
};
__device__ __noinline__ Pair turned(Pair given, unsigned n) {
    Pair result = given;
    result.tag = given.last[n % 3];
    result.first = given.first * 2 + given.tag;
    result.last[n % 3] = n;
    return result;
}
extern "C" __global__ void noinline_of_a_struct(unsigned *out) {
    Pair pair = {(unsigned char)SELF, SELF * 5, {1, 2, 3}};
    pair = turned(turned(pair, SELF), SELF + 1);
    out[SELF] = pair.tag + pair.first * 16 + pair.last[0] + pair.last[1] * 3 + pair.last[2] * 5;
}

__device__ __noinline__ unsigned eight_given(unsigned char a, short b, unsigned c, long long d, float e, double f,
                                             bool g, const unsigned *h) {
    return a + b * 2 + c * 3 + (unsigned)d * 4 + (unsigned)e * 5 + (unsigned)f * 6 + g * 7 + *h;
}
extern "C" __global__ void noinline_with_eight_arguments(unsigned *out) {
    const unsigned mine = SELF * 11;
    out[SELF] = eight_given(SELF, -(short)SELF, SELF, 1ll << SELF, SELF * 1.5f, SELF * 2.5, SELF & 1, &mine);
}

extern "C" __global__ void jump_table(unsigned *out) {
    unsigned result;
    asm volatile("{\n"
                 "    table: .branchtargets one, two, one, three;\n"
                 "    brx.idx %1, table;\n"
                 "one: mov.u32 %0, 10; bra done;\n"
                 "two: mov.u32 %0, 20; bra done;\n"
                 "three: mov.u32 %0, 30;\n"
                 "done:\n"
                 "}"
                 : "=r"(result)
                 : "r"(SELF & 3));
    out[SELF] = result;
}
extern "C" __global__ void jump_table_in_a_loop(unsigned *out) {
    unsigned value = SELF;
    for (unsigned i = 0; i < 6; ++i)
        asm volatile("{\n"
                     "    table: .branchtargets one, two, three;\n"
                     "    .reg .u32 which;\n"
                     "    rem.u32 which, %1, 3;\n"
                     "    brx.idx which, table;\n"
                     "one: add.u32 %0, %0, 7; bra done;\n"
                     "two: mul.lo.u32 %0, %0, 3; bra done;\n"
                     "three: xor.b32 %0, %0, 85;\n"
                     "done:\n"
                     "}"
                     : "+r"(value)
                     : "r"(value + i));
    out[SELF] = value;
}

__device__ __forceinline__ unsigned *taken(unsigned bytes) {
    unsigned *memory;
    asm volatile("alloca.u64 %0, %1, 16; cvta.local.u64 %0, %0;" : "=l"(memory) : "l"((unsigned long long)bytes));
    return memory;
}
extern "C" __global__ void alloca_of_each_lane(unsigned *out) {
    unsigned *mine = taken(32);
    for (unsigned i = 0; i < 8; ++i) mine[i] = i * SELF;
    unsigned sum = 0;
    for (unsigned i = 0; i < 8; ++i) sum += mine[(i + SELF) & 7] * (i + 1);
    out[SELF] = sum;
}
extern "C" __global__ void alloca_by_lane(unsigned *out) {
    const unsigned n = 1 + SELF % 5;
    unsigned *mine = taken(4 * n), sum = 0;
    for (unsigned i = 0; i < n; ++i) mine[i] = i + SELF;
    for (unsigned i = 0; i < n; ++i) sum = sum * 3 + mine[n - 1 - i];
    out[SELF] = sum;
}
extern "C" __global__ void alloca_twice(unsigned *out) {
    unsigned *first = taken(20), *second = taken(20);
    out[SELF] = (first < second ? second - first : first - second) >= 5;
}
extern "C" __global__ void alloca_restored(unsigned *out) {
    unsigned long long before;
    asm volatile("stacksave.u64 %0;" : "=l"(before));
    const unsigned *first = taken(64);
    asm volatile("stackrestore.u64 %0;" : : "l"(before));
    out[SELF] = first == taken(64);
}
