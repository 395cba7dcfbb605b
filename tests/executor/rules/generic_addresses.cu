// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "state spaces"
verdict = "ok"
inputs = [["u32", [100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131]]]

[generic_of_four_spaces]
rule = "One generic load reads shared, local, global and constant memory, as each lane's address says."
expected = [7, 1, 102, 53, 7, 5, 106, 57, 7, 9, 110, 53, 7, 13, 114, 57, 7, 17, 118, 53, 7, 21, 122, 57, 7, 25, 126, 53, 7, 29, 130, 57]
[generic_store_to_three_spaces]
rule = "One generic store writes shared, local and global memory, as each lane's address says."
[generic_atomic_on_shared]
rule = "A generic atomic on a shared address adds up all lanes."
expected = [496]
[generic_atomic_on_both]
rule = "One generic atomic goes to shared memory in some lanes and to global memory in others."
defined = [[0, 1]]
expected = [16]
[local_addresses_alike]
rule = "The generic address of a local variable is the same number in every thread."
expected = [1]
[local_arrays_apart]
rule = "Two local arrays do not overlap, and keep their alignment."
expected = [1]
[local_by_generic_pointer]
rule = "A local array is read and written through a pointer that the compiler cannot follow."
[parameter_in_place]
rule = "A __grid_constant__ parameter is read through its generic address."
inputs = []
kernel = "parameter_in_place"
[constant_variables_apart]
rule = "Two constant variables at generic addresses hold their own values."
expected = [5, 60]
count = 2
block = 1
[constant_generic_round_trip]
rule = "cvta.const undoes cvta.to.const."
expected = [1]
count = 1
block = 1
[global_is_generic]
rule = "The address of a global variable is its generic address."
expected = [1]
count = 1
block = 1
[isspacep_shared_next_to_local]
rule = "isspacep.shared of the last byte of shared memory, and of null."
expected = [1, 0]
count = 2
block = 1
[isspacep_cluster]
rule = "isspacep.shared::cluster holds for the block's own shared memory."
expected = [1]
count = 1
block = 1
[isspacep_null]
rule = "A null pointer counts as global and as nothing else."
count = 1
block = 1

[[family]]
name = "shared_{scope}_{form}"
line = 'SCOPED({name}, "{scope}", "{form}")'
rule = "An atomic on shared memory with scope {scope}, {form}."
expected = [560]
count = 1
scope = ["cta", "cluster", "gpu", "sys"]
form = ["relaxed", "acquire", "release", "acq_rel"]
*/

#define T threadIdx.x
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out, const unsigned *in)
#define HIDE(pointer) asm volatile("" : "+l"(pointer)::"memory")

__constant__ unsigned fifties[8] = {50, 51, 52, 53, 54, 55, 56, 57};
__constant__ unsigned small[3] = {4, 5, 6};
__constant__ unsigned large[100] = {10, 20, 30, 40, 50, 60, 70};
__device__ unsigned somewhere[4];

KERNEL(generic_of_four_spaces) {
    __shared__ unsigned seven;
    volatile unsigned own[4];
    seven = 7;
    own[2] = T;
    __syncwarp();
    const unsigned *choices[4] = {&seven, const_cast<const unsigned *>(own + 2), in + T, fifties + T % 8};
    const unsigned *chosen = choices[T % 4];
    HIDE(chosen);
    unsigned value;
    asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(chosen) : "memory");
    out[T] = value;
}

KERNEL(generic_store_to_three_spaces) {
    __shared__ unsigned words[32];
    unsigned own[4] = {1, 2, 3, 4};
    words[T] = 200 + T;
    out[T] = 300 + T;
    __syncwarp();
    unsigned *choices[3] = {words + T, own + 1, out + T};
    unsigned *chosen = choices[T % 3];
    HIDE(chosen);
    asm volatile("st.u32 [%0], %1;" ::"l"(chosen), "r"(in[T]) : "memory");
    asm volatile("" ::"l"(own) : "memory");
    __syncwarp();
    out[T] = T % 3 == 0 ? words[T] : T % 3 == 1 ? own[1] : *(volatile unsigned *)(out + T);
}

KERNEL(generic_atomic_on_shared) {
    __shared__ unsigned sum;
    sum = 0;
    __syncwarp();
    unsigned *place = &sum;
    HIDE(place);
    atomicAdd(place, T);
    __syncwarp();
    out[T] = sum;
}

KERNEL(generic_atomic_on_both) {
    __shared__ unsigned sum;
    sum = 0;
    out[T] = 0;
    __syncwarp();
    unsigned *place = T % 2 ? &sum : out;
    HIDE(place);
    atomicAdd(place, 1);
    __syncwarp();
    if (T == 0)
        out[1] = sum;
}

KERNEL(local_addresses_alike) {
    unsigned own[4];
    const void *place = own;
    HIDE(place);
    const unsigned long long mine = reinterpret_cast<unsigned long long>(place);
    out[T] = mine == __shfl_sync(~0u, mine, 0);
}

KERNEL(local_arrays_apart) {
    __align__(16) unsigned own[5];
    unsigned char other[7];
    const char *one = reinterpret_cast<const char *>(own), *two = reinterpret_cast<const char *>(other);
    HIDE(one);
    HIDE(two);
    const unsigned long long first = reinterpret_cast<unsigned long long>(one);
    out[T] = (one + sizeof own <= two || two + sizeof other <= one) && first % 16 == 0;
}

KERNEL(local_by_generic_pointer) {
    unsigned own[32];
    for (unsigned i = 0; i < 32; ++i)
        own[i] = in[i] * T;
    unsigned *place = own;
    HIDE(place);
    for (unsigned i = 1; i < 32; ++i)
        place[(i * 7) % 32] += place[(i * 5) % 32];
    asm volatile("" ::"l"(own) : "memory");
    out[T] = own[(T * 3) % 32];
}

struct Bound {
    unsigned long long out;
};

extern "C" __global__ void parameter_in_place(const __grid_constant__ Bound bound) {
    const unsigned long long *place = &bound.out;
    HIDE(place);
    unsigned long long found;
    asm volatile("ld.u64 %0, [%1];" : "=l"(found) : "l"(place) : "memory");
    reinterpret_cast<unsigned *>(found)[T] = 40 + T;
}

KERNEL(constant_variables_apart) {
    const unsigned *one = small + 1, *two = large + 5;
    HIDE(one);
    HIDE(two);
    out[0] = *one;
    out[1] = *two;
}

KERNEL(constant_generic_round_trip) {
    unsigned long long there, back;
    const unsigned *place = large + 2;
    asm volatile("cvta.to.const.u64 %0, %2; cvta.const.u64 %1, %0;" : "=&l"(there), "=l"(back) : "l"(place));
    out[0] = back == reinterpret_cast<unsigned long long>(place);
}

KERNEL(global_is_generic) {
    unsigned long long there;
    unsigned *place = somewhere + 1;
    asm volatile("cvta.to.global.u64 %0, %1;" : "=l"(there) : "l"(place));
    out[0] = there == reinterpret_cast<unsigned long long>(place);
}

__device__ unsigned within(const void *place, unsigned what) {
    unsigned found;
    asm volatile("{ .reg .pred p; .reg .b32 t; mov.u32 %0, 0;"
                 "isspacep.shared::cta p, %1; selp.u32 t, 1, 0, p; or.b32 %0, %0, t;"
                 "isspacep.shared::cluster p, %1; selp.u32 t, 2, 0, p; or.b32 %0, %0, t;"
                 "isspacep.global p, %1; selp.u32 t, 4, 0, p; or.b32 %0, %0, t;"
                 "isspacep.const p, %1; selp.u32 t, 8, 0, p; or.b32 %0, %0, t;"
                 "isspacep.local p, %1; selp.u32 t, 16, 0, p; or.b32 %0, %0, t; }"
                 : "=&r"(found) : "l"(place));
    return found & what;
}

KERNEL(isspacep_shared_next_to_local) {
    __shared__ char bytes[64];
    bytes[63] = 1;
    out[0] = within(bytes + 63, 1);
    out[1] = within(nullptr, 1);
}

KERNEL(isspacep_cluster) {
    __shared__ char bytes[64];
    bytes[63] = 1;
    out[0] = within(bytes, 2) / 2;
}

KERNEL(isspacep_null) {
    out[0] = within(nullptr, 31);
}

#define SCOPED(NAME, SCOPE, FORM)                                                                          \
    KERNEL(NAME) {                                                                                         \
        __shared__ unsigned sum;                                                                           \
        sum = 64;                                                                                          \
        __syncwarp();                                                                                      \
        unsigned before;                                                                                   \
        asm volatile("atom." FORM "." SCOPE ".shared.add.u32 %0, [%1], %2;" : "=r"(before)                 \
                     : "r"(static_cast<unsigned>(__cvta_generic_to_shared(&sum))), "r"(T) : "memory");     \
        __syncwarp();                                                                                      \
        if (T == 0)                                                                                        \
            out[0] = sum;                                                                                  \
    }
