// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels whose outputs depend on which warp or block comes first, their twins, and right ones like them.
// Where a kernel and its twin differ, a body has «what depends on the order¦what its twin says»; comments
// mark the lines that decide. All take n ints `x`, write n ints `y`, and have n ints `v` of their own.

//:: FRAME
//: n = 128
//: BLOCK = "128"
//: BEFORE = ""
//: TYPE = "int"
//: ELEMENT = "i32"
//: CHECK = "equal = true"
//: meets = ["meets"]
/*gpuprof
operation = "reordered"
operation_title = "Numbers passed on"
dimensions = ["n"]
default_sizes = "256"

[arrays.x]
shape = ["n"]
dtype = "ELEMENT"

[arrays.y]
shape = ["n"]
dtype = "ELEMENT"
role = "out"

[inputs]
x = "integers(1, 1000)"

[work]
bytes = "8 * n"

[check.y]
value = "VALUE"
CHECK

[workspace.v]
shape = ["n"]
dtype = "ELEMENT"

[[launches]]
entry = "clear"
arguments = []
block = [64]
grid = ["1"]

[[launches]]
entry = "k"
arguments = ["n", "x", "y", "v"]
block = [BLOCK]
grid = ["n // BLOCK"]
*/
__device__ int count, flag, sum, lock, turn, flags[64];
__device__ float total;
__device__ int look(const int *p) { return *(const volatile int *)p; } // looks
__device__ void put(int *p, int value) { *(volatile int *)p = value; } // puts
extern "C" __global__ void clear()
{
    if (threadIdx.x == 0)
        count = flag = sum = lock = turn = total = 0;
    flags[threadIdx.x] = 0;
}
BEFORE
extern "C" __global__ void k(int n, const TYPE *x, TYPE *y, TYPE *v) {
const int t = threadIdx.x, w = blockIdx.x, i = w * blockDim.x + t;
const int warp = t / 32, lane = t % 32;
BODY
}

//:: GRID_BARRIER
__device__ void meet()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&count, 1);
        while (look(&count) < gridDim.x)
            ;
        __threadfence();
    }
    __syncthreads();
}

//:: RELAXED
__device__ int relaxed(const int *p)
{
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(p) : "memory"); // meets
    return value;
}
__device__ void put_relaxed(int *p, int value)
{
    asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(value) : "memory"); // meets
}

//:: warps exchange through volatile global memory
//: VALUE = "flip(x)"
    volatile int *u = v;
    u[i] = x[i]; // meets
    «¦__syncthreads();»
    y[i] = u[n - 1 - i]; // meets

//:: blocks exchange through volatile global memory
//: VALUE = "flip(x)"
//: n = 256
//: BLOCK = "64"
//: BEFORE = "GRID_BARRIER"
    volatile int *u = v;
    u[i] = x[i]; // meets
    «¦meet();»
    y[i] = u[n - 1 - i]; // meets

//:: warps exchange through volatile shared memory
//: VALUE = "flip(x)"
    __shared__ int s[128];
    volatile int *u = s;
    u[t] = x[i]; // meets
    «¦__syncthreads();»
    y[i] = u[127 - t]; // meets

//:: warps exchange by relaxed accesses
//: VALUE = "flip(x)"
//: BEFORE = "RELAXED"
    put_relaxed(v + i, x[i]);
    «¦__syncthreads();»
    y[i] = relaxed(v + n - 1 - i);

//:: places given out in the order of tickets
//: VALUE = "x"
//: n = 256
//: BLOCK = "64"
    «y[atomicAdd(&count, 1)] = x[i]; // meets¦y[i] = x[i] + 0 * atomicAdd(&count, 1);»

//:: the last exchange wins
//: VALUE = "x + 3"
    if (lane == 0)
        «atomicExch(&sum, warp); // meets¦atomicMax(&sum, warp);»
    __syncthreads();
    y[i] = x[i] + sum;

//:: the first compare-and-swap wins
//: VALUE = "x + 1"
    if (lane == 0)
        «atomicCAS(&sum, 0, warp + 1); // meets¦if (warp == 0) atomicCAS(&sum, 0, warp + 1);»
    __syncthreads();
    y[i] = x[i] + sum;

//:: the last volatile store wins
//: VALUE = "x + 3"
//: meets = ["puts"]
    if (lane == 0«¦ && warp == 3»)
        put(&sum, warp);
    __syncthreads();
    y[i] = x[i] + sum;

//:: a counter read while others still count
//: VALUE = "x + 4"
//: meets = ["meets", "looks"]
    if (lane == 0)
        atomicAdd(&sum, 1); // meets
    «¦__syncthreads();»
    y[i] = x[i] + look(&sum);

//:: the block with the last number takes itself for the last
//: VALUE = "where(arange(n) == 0, x[0] + x[64] + x[128] + x[192], x)"
//: n = 256
//: BLOCK = "64"
//: meets = ["looks", "puts"]
    if (t == 0) {
        put(v + w, x[i]);
        __threadfence();
        «¦if (atomicAdd(&count, 1) == gridDim.x - 1)
            put(&flag, 1);»
    }
    if (w == gridDim.x - 1 && t == 0) {
        «¦while (look(&flag) == 0)
            ;
        __threadfence();»
        int all = 0;
        for (int k = 0; k < gridDim.x; ++k)
            all += look(v + k);
        y[0] = all;
    }
    if (i > 0)
        y[i] = x[i];

//:: tiles given out by tickets
//: VALUE = "x"
//: n = 256
//: BLOCK = "64"
//: meets = []
    __shared__ int tile;
    for (;;) {
        if (t == 0)
            tile = atomicAdd(&count, 1);
        __syncthreads();
        const int now = tile;
        __syncthreads();
        if (now >= n / 16)
            return;
        if (t < 16)
            y[16 * now + t] = x[16 * now + t];
    }

//:: the last block adds what blocks stored
//: VALUE = "where(arange(n) == 0, x[0] + x[64] + x[128] + x[192], x)"
//: n = 256
//: BLOCK = "64"
//: meets = []
    __shared__ int last;
    if (t == 0) {
        v[w] = x[i];
        __threadfence();
        last = atomicAdd(&count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (i > 0)
        y[i] = x[i];
    if (last && t == 0) {
        __threadfence();
        int all = 0;
        for (int k = 0; k < gridDim.x; ++k)
            all += v[k];
        y[0] = all;
    }

//:: a lock
//: VALUE = "x + 8"
//: n = 256
//: BLOCK = "64"
//: meets = []
//: BEFORE = "GRID_BARRIER"
    if (lane == 0) {
        while (atomicCAS(&lock, 0, 1) != 0)
            ;
        __threadfence();
        put(&sum, look(&sum) + 1);
        __threadfence();
        atomicExch(&lock, 0);
    }
    meet();
    y[i] = x[i] + sum;

//:: sums of floats
//: VALUE = "sum(x * 0.1) + 0 * x"
//: n = 256
//: BLOCK = "64"
//: meets = []
//: BEFORE = "GRID_BARRIER"
//: TYPE = "float"
//: ELEMENT = "f32"
//: CHECK = 'relative = "n * u"'
    atomicAdd(&total, x[i] * 0.1f);
    meet();
    y[i] = *(volatile float *)&total;

//:: a float maximum by compare-and-swap
//: VALUE = "max(x) + 0 * x"
//: meets = []
//: TYPE = "float"
//: ELEMENT = "f32"
//: CHECK = 'relative = "n * u"'
    int old = look(&sum);
    while (__int_as_float(old) < x[i]) {
        const int was = atomicCAS(&sum, old, __float_as_int(x[i]));
        if (was == old)
            break;
        old = was;
    }
    __syncthreads();
    y[i] = __int_as_float(look(&sum));

//:: the last warp by itself
//: VALUE = "sum(x) + 0 * x"
//: meets = []
    __shared__ int s[128];
    s[t] = x[i];
    __syncthreads();
    if (t < 64)
        s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        volatile int *u = s;
        int mine = u[t] + u[t + 32];
        u[t] = mine;
        u[t] = mine = mine + u[t + 16];
        u[t] = mine = mine + u[t + 8];
        u[t] = mine = mine + u[t + 4];
        u[t] = mine = mine + u[t + 2];
        u[t] = mine = mine + u[t + 1];
    }
    __syncthreads();
    y[i] = s[0];

//:: a scan that looks back
//: VALUE = "cumsum(x)"
//: n = 256
//: BLOCK = "32"
//: meets = []
    __shared__ int part, before;
    if (t == 0) {
        part = atomicAdd(&turn, 1);
        int all = 0;
        for (int k = 0; k < blockDim.x; ++k)
            all += x[part * blockDim.x + k];
        put(v + part, all);
        __threadfence();
        put(flags + part, 1);
        before = 0;
        for (int k = part - 1; k >= 0; --k) {
            int state;
            while ((state = look(flags + k)) == 0)
                ;
            __threadfence();
            if (state == 2) {
                before += look(v + 32 + k);
                break;
            }
            before += look(v + k);
        }
        put(v + 32 + part, before + all);
        __threadfence();
        put(flags + part, 2);
    }
    __syncthreads();
    int mine = before;
    for (int k = 0; k <= t; ++k)
        mine += x[part * blockDim.x + k];
    y[part * blockDim.x + t] = mine;

//:: all mark the same
//: VALUE = "x + 1"
//: meets = []
    if (x[i] > 0)
        put(&flag, 1);
    __syncthreads();
    y[i] = x[i] + look(&flag);

//:: the first finds the same as the last
//: VALUE = "x + 1"
//: meets = []
    const int seen = look(&flag);
    if (lane == 0)
        put(&flag, 1);
    y[i] = x[i] + (seen >= 0 ? 1 : 0);
