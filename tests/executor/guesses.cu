// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Atomic operations made of a plain load and a compare-and-swap. `word` points to a total to which each
// thread adds its `value`, of which `dtype` is the type in NumPy's words.

//:: FUNCTION
__device__ __noinline__ void add(int *word, int value) {
    int old = *word, seen;
    do
        old = atomicCAS(word, seen = old, seen + value);
    while (old != seen);
}

//:: totals in global memory
//: before = "FUNCTION"
extern "C" __global__ void k(TYPE *totals, const TYPE *values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    TYPE *word = totals + i % 3;
    const TYPE value = values[i];
    BODY
}

//:: totals in shared memory
//: before = "FUNCTION"
extern "C" __global__ void k(TYPE *totals, const TYPE *values, int n) {
    __shared__ __align__(8) TYPE sums[4];
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        TYPE *word = sums + i % 3;
        const TYPE value = values[i];
        BODY
    }
    __syncthreads();
    if (threadIdx.x < 3) totals[threadIdx.x] = sums[threadIdx.x];
}

//:: as the guide adds doubles
//: type = "double"
//: dtype = "f8"
    unsigned long long *bits = (unsigned long long *)word, old = *bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __double_as_longlong(value + __longlong_as_double(seen)));
    } while (old != seen);

//:: through the caches' second level
//: type = "float"
//: dtype = "f4"
    int seen = __float_as_int(__ldcg(word));
    for (int old; (old = atomicCAS((int *)word, seen, __float_as_int(value + __int_as_float(seen)))) != seen;)
        seen = old;

//:: looked at again after each failure
//: type = "int"
//: dtype = "i4"
    int seen;
    do
        seen = *word;
    while (atomicCAS(word, seen, seen + value) != seen);

//:: a short in its word
//: type = "short"
//: dtype = "i2"
    unsigned *whole = (unsigned *)((size_t)word & ~(size_t)2), old = *whole, seen;
    const unsigned shift = (size_t)word & 2 ? 16 : 0;
    do {
        seen = old;
        const unsigned sum = (seen >> shift) + value & 0xffff;
        old = atomicCAS(whole, seen, seen & ~(0xffffu << shift) | sum << shift);
    } while (old != seen);

//:: a short alone
//: type = "unsigned short"
//: dtype = "u2"
    unsigned short old = *word, seen;
    do
        old = atomicCAS(word, seen = old, (unsigned short)(seen + value));
    while (old != seen);

//:: in a function
//: type = "int"
//: dtype = "i4"
    add(word, value);

//:: RACE
//: # What each thread does with ints `a` and `b`; `// meets` marks both lines of a race.
extern "C" __global__ void k(int *a, int *b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
BODY
}

//:: swap of another word
//: frame = "RACE"
    const int seen = a[1]; // meets
    atomicCAS(&a[0], seen, 1);
    if (i == n - 1) atomicExch(&a[1], 7); // meets

//:: swap of another array
//: frame = "RACE"
    const int seen = a[0]; // meets
    atomicCAS(&b[0], seen, 1);
    if (i == n - 1) atomicExch(&a[0], 7); // meets

//:: compared with something else
//: frame = "RACE"
    const int seen = a[0]; // meets
    atomicCAS(&a[0], i, seen + 1); // meets

//:: exchanged, not compared
//: frame = "RACE"
    const int seen = a[0]; // meets
    atomicExch(&a[0], seen + 1); // meets

//:: beside a plain store
//: frame = "RACE"
    if (i == 0) a[0] = 9; // meets
    const int seen = a[0]; // meets
    atomicCAS(&a[0], seen, seen + 1); // meets

//:: of half the word
//: frame = "RACE"
    const unsigned short seen = *(unsigned short *)a; // meets
    atomicCAS((unsigned short *)a, seen, (unsigned short)(seen + 1)); // meets
    if (i == n - 1) atomicAdd(&a[0], 1 << 16); // meets

//:: swapped for its block alone
//: frame = "RACE"
    const int seen = a[0]; // meets
    atomicCAS_block(&a[0], seen, seen + 1); // meets
