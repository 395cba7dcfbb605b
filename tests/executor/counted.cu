// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels whose machine code is read, all of it together.

//:: uneven
// Each thread adds up as many floats as the number of its warp says, and a little more.
extern "C" __global__ void uneven(const float *in, float *out, int n)
{
    const int turns = n + 5 * (threadIdx.x / 32) + blockIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < turns; i++)
        sum += in[i * 64 + threadIdx.x % 32];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

//:: parted
// Lanes part, and come together again.
extern "C" __global__ void parted(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float held[128];
    held[threadIdx.x] = in[i];
    __syncthreads();
    float value = 0;
    if (threadIdx.x % 4 == 1) {
        for (int k = 0; k < 9; k++)
            value += held[(threadIdx.x * k) % 128];
    } else if (threadIdx.x < 40) {
        value = held[127 - threadIdx.x];
    }
    __syncthreads();
    out[i] = value;
}

//:: divides
// Divides, for which machine code has a slow path that these values do not need.
extern "C" __global__ void divides(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] / in[i + 1];
}

//:: waits
// A warp waits for what another one stores late.
extern "C" __global__ void waits(const float *in, float *out)
{
    volatile float *flag = out + 1024;
    if (threadIdx.x == 32) {
        float sum = in[0];
        #pragma unroll 1
        for (int i = 0; i < 50; i++)
            sum = sum * in[1] + 1.0f;
        out[1] = sum;
        __threadfence();
        *flag = 7.0f;
    }
    if (threadIdx.x == 0)
        while (*flag != 7.0f)
            ;
    __syncthreads();
    out[2 + threadIdx.x] = out[1] + 1.0f;
}

//:: rows
extern "C" __global__ void rows(const float *in, float *out, int most)
{
    float sum = 0;
    const int last = threadIdx.x + (int)(threadIdx.x * 37 + 11) % most;
    for (int i = threadIdx.x; i < last; ++i)
        sum += in[64 * i];
    out[threadIdx.x] = sum;
}

//:: ends
extern "C" __global__ void ends(const float *in, float *out)
{
    float sum = 0;
    for (int i = threadIdx.x & 1 ? 0 : 4; i < 6; ++i)
        sum += in[64 * i];
    out[threadIdx.x] = sum;
}

//:: column
#define SUM here + in[west] + in[east] + in[south] + in[north] + 2 * above + 3 * below
extern "C" __global__ void column(const float *in, float *out, int turns, int width)
{
    int at = threadIdx.x, layer = 2 * width;
    int west = at == 0 ? at : at - 1, east = at == width - 1 ? at : at + 1, north = at, south = at + width;
    float above, here, below;
    above = here = in[at];
    below = in[at + layer];
    out[at] = SUM;
    at += layer, west += layer, east += layer, north += layer, south += layer;
    for (int i = 1; i < turns - 1; ++i) {
        above = here;
        here = below;
        below = in[at + layer];
        out[at] = SUM;
        at += layer, west += layer, east += layer, north += layer, south += layer;
    }
    above = here;
    here = below;
    out[at] = SUM;
}

//:: copies
extern "C" __global__ void copies(const float *in, float *out)
{
    __shared__ float kept[512];
    const int t = threadIdx.x;
    float sum = 0;
    for (int turn = 0; turn < 16; ++turn) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                             (unsigned)__cvta_generic_to_shared(kept + 128 * i + t)),
                         "l"(in + 512 * turn + 128 * i + t) : "memory");
        asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        sum += kept[(t * 7 + turn) % 512];
        __syncthreads();
    }
    out[t] = sum;
}

//:: overwritten
extern "C" __global__ void overwritten(const float *in, float *out)
{
    __shared__ float kept[64];
    float sum = 0;
    asm volatile(R"({
        .reg .pred p;
        .reg .u32 i;
        .reg .f32 x;
        .reg .u64 from;
        mov.u32 i, 0;
        mov.u64 from, %1;
        AGAIN:
        ld.global.f32 x, [from];
        st.shared.f32 [%2], x;
        add.f32 %0, %0, x;
        add.u64 from, from, 16;
        add.u32 i, i, 1;
        setp.lt.u32 p, i, 1001;
        @p bra AGAIN;
    })" : "+f"(sum)
        : "l"(in + threadIdx.x), "r"((unsigned)__cvta_generic_to_shared(kept + threadIdx.x))
        : "memory");
    out[threadIdx.x] = sum;
}

//:: parts
extern "C" __global__ void parts(const float *in, float *out)
{
    const int t = threadIdx.x;
    if (t % 32 == 7)
        return;
    if (t % 32 < 9)
        out[t] = 1;
    if (t % 2) {
        out[t + 256] = in[t];
        __threadfence();
        out[t + 256] = in[t + 1];
    } else {
        out[t + 512] = in[t];
        __threadfence();
    }
}

//:: SUMS
extern "C" __global__ void sums(const float *in, float *out)
{
    out[threadIdx.x] = 0;
    for (int i = 0; i < ROWS; ++i)
        out[threadIdx.x] += in[i * 64 + threadIdx.x] * in[i];
}

//:: sums 64
//: frame = "SUMS"
//: ROWS = "64"

//:: sums 128
//: frame = "SUMS"
//: ROWS = "128"

//:: sums 256
//: frame = "SUMS"
//: ROWS = "256"

//:: PRODUCTS
extern "C" __global__ void products(const float4 *in, float *out, int turns)
{
    float sum = 0;
#pragma unroll UNROLLED
    for (int turn = 0; turn < turns; ++turn) {
        const float4 four = in[32 * turn + threadIdx.x];
        sum = fmaf(four.x, four.z, sum);
    }
    out[threadIdx.x] = sum;
}

//:: products 1
//: frame = "PRODUCTS"
//: UNROLLED = "1"

//:: products 4
//: frame = "PRODUCTS"
//: UNROLLED = "4"

//:: LOOKS_UP
__constant__ float table[32];
extern "C" __global__ void looks_up(const float *in, float *out)
{
    out[threadIdx.x] = table[threadIdx.x % WORDS];
}

//:: looks_up 1
//: frame = "LOOKS_UP"
//: WORDS = "1"

//:: looks_up 8
//: frame = "LOOKS_UP"
//: WORDS = "8"

//:: looks_up 32
//: frame = "LOOKS_UP"
//: WORDS = "32"

//:: HALVES
extern "C" __global__ void CLUSTER halves(const float *in, float *out)
{
    __shared__ float kept[2][512];
    const int t = threadIdx.x;
    float sum = 0;
    for (int turn = 0; turn < 9; ++turn)
        if (t < 64) {
            for (int i = 0; i < 8; ++i)
                kept[turn % 2][64 * i + t] = in[512 * turn + 64 * i + t];
            __syncthreads();
        } else {
            for (int i = 0; i < 8; ++i)
                if (turn > 0)
                    sum += kept[(turn + 1) % 2][64 * i + t - 64];
            __syncthreads();
        }
    if (t >= 64)
        out[t] = sum;
}

//:: halves
//: frame = "HALVES"
//: CLUSTER = ""

//:: halves of clusters
//: frame = "HALVES"
//: CLUSTER = "__cluster_dims__(2, 1, 1)"

//:: GRIDS
extern "C" __global__ void first(const float *in, float *out)
{
    WHAT
    out[threadIdx.x] = in[threadIdx.x];
}

//:: first nothing
//: frame = "GRIDS"
//: WHAT = ""

//:: first wait
//: frame = "GRIDS"
//: WHAT = 'asm volatile("griddepcontrol.wait;");'

//:: first launch_dependents
//: frame = "GRIDS"
//: WHAT = 'asm volatile("griddepcontrol.launch_dependents;");'

//:: DROPPED
extern "C" __global__ void dropped(const float *in, float *out)
{
    __shared__ float kept[32];
    float sum = 0;
    asm volatile(R"({
        .reg .pred p, q;
        .reg .u32 i;
        .reg .b32 a;
        .reg .f32 x, c, d, e, f;
        .reg .u64 from;
        mov.u32 i, 0;
        mov.u64 from, %1;
        mov.f32 c, 0f00000000;
        mov.f32 d, c;
        mov.f32 e, c;
        mov.f32 f, c;
        AGAIN:
        mov.f32 x, 0f00000000;
        setp.gt.u32 q, i, 2;
        BODY
        add.f32 %0, %0, x;
        add.u64 from, from, 512;
        add.u32 i, i, 1;
        setp.lt.u32 p, i, 9;
        @p bra AGAIN;
        add.f32 %0, %0, c;
    })" : "+f"(sum)
        : "l"(in + threadIdx.x), "r"((unsigned)__cvta_generic_to_shared(kept + threadIdx.x))
        : "memory");
    out[threadIdx.x] = sum;
}

//:: dropped stores
//: frame = "DROPPED"
//: executed = { LDG = 6, STS = 9, BAR = 9 }
@q ld.global.f32 x, [from];
st.shared.f32 [%2], x;
bar.sync 0;

//:: dropped volatile stores
//: frame = "DROPPED"
//: executed = { LDG = 9, STS = 6 }
ld.global.f32 x, [from];
@q st.volatile.shared.f32 [%2], x;

//:: dropped exchanges
//: frame = "DROPPED"
//: executed = { LDG = 6, SHFL = 6 }
@q ld.global.f32 x, [from];
shfl.sync.bfly.b32 x, x, 1, 31, 0xffffffff;

//:: dropped products
//: frame = "DROPPED"
//: executed = { STS = 9, LDS = 9, BAR = 18, HMMA = 9 }
st.shared.f32 [%2], x;
bar.sync 0;
ld.shared.b32 a, [%2];
bar.sync 0;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {c, d, e, f}, {a, a}, {a}, {c, d, e, f};
