// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// What a device reaches: each kernel keeps one part of it busy and does next to nothing else. `rounds` is how often
// the body is repeated; what a round does is told beside each kernel. `sink` is written only where an impossible
// condition holds, so that nothing is optimised away.

#define UNROLL 32
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

// UNROLL * 8 multiply-adds a thread and round, in eight chains: more than their latency needs.
template <typename T> static __device__ void multiply_add(int rounds, T *sink)
{
    T sum[8];
    for (int i = 0; i < 8; ++i)
        sum[i] = (T)(threadIdx.x + i);
    const T factor = (T)0.999 + (T)threadIdx.x * (T)1e-9;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                sum[i] = sum[i] * factor + factor;
    T total = 0;
    for (int i = 0; i < 8; ++i)
        total += sum[i];
    if (total == (T)-1.25)
        sink[THREAD] = total;
}

extern "C" __global__ void fma_f32(int rounds, float *sink)
{
    multiply_add<float>(rounds, sink);
}

extern "C" __global__ void fma_f64(int rounds, double *sink)
{
    multiply_add<double>(rounds, sink);
}

// UNROLL * 4 integer instructions a thread and round; the assembler keeps each one.
extern "C" __global__ void alu(int rounds, unsigned *sink)
{
    unsigned a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
            asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(a) : "r"(b), "r"(c));
            asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(b) : "r"(c), "r"(d));
            asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(c) : "r"(d), "r"(a));
            asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(d) : "r"(a), "r"(b));
        }
    if ((a ^ b ^ c ^ d) == 0x9e3779b9u)
        sink[THREAD] = a;
}

// UNROLL * 4 special-function instructions a thread and round.
extern "C" __global__ void xu(int rounds, float *sink)
{
    float a = 1.0f + threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
            asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(a));
            asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(b));
            asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(c));
            asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(d));
        }
    if (a + b + c + d == -1.25f)
        sink[THREAD] = a;
}

// UNROLL loads of 16 bytes a thread and round, four wavefronts for each warp, without a bank conflict.
extern "C" __global__ void shared_loads(int rounds, float *sink)
{
    __shared__ float4 tile[1024];
    tile[threadIdx.x] = make_float4(1, 2, 3, 4);
    __syncthreads();
    const unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    float total = 0;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
            float4 got;
            asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(got.x), "=f"(got.y), "=f"(got.z), "=f"(got.w)
                         : "r"(at));
            total += got.x;
        }
    if (total == -1.25f)
        sink[THREAD] = total;
}

// UNROLL loads of 16 bytes a thread and round, all blocks of the same `bytes`, a power of two. From L1 where they
// are few; with `cg`, from L2.
#define LOADS(name, modifier)                                                                                          \
    extern "C" __global__ void name(int rounds, float *sink, const char *data, unsigned bytes)                         \
    {                                                                                                                  \
        float total = 0;                                                                                               \
        unsigned at = THREAD * 16u;                                                                                    \
        for (int round = 0; round < rounds; ++round)                                                                   \
            _Pragma("unroll") for (int step = 0; step < UNROLL; ++step)                                                \
            {                                                                                                          \
                float4 got;                                                                                            \
                asm volatile("ld.global." modifier ".v4.f32 {%0, %1, %2, %3}, [%4];"                                   \
                             : "=f"(got.x), "=f"(got.y), "=f"(got.z), "=f"(got.w)                                      \
                             : "l"(data + (at & (bytes - 1))));                                                        \
                total += got.x;                                                                                        \
                at += gridDim.x * blockDim.x * 16u;                                                                    \
            }                                                                                                          \
        if (total == -1.25f)                                                                                           \
            sink[THREAD] = total;                                                                                      \
    }
LOADS(l1_loads, "ca")
LOADS(l2_loads, "cg")

// Device memory, once over: `quads` elements of 16 bytes.
extern "C" __global__ void dram_reads(long long quads, const float4 *data, float *sink)
{
    float total = 0;
    const long long stride = (long long)gridDim.x * blockDim.x;
#pragma unroll 8
    for (long long i = THREAD; i < quads; i += stride) {
        const float4 got = __ldcs(data + i);
        total += got.x + got.y + got.z + got.w;
    }
    if (total == -1.25f)
        sink[THREAD] = total;
}

extern "C" __global__ void dram_writes(long long quads, float4 *data)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
#pragma unroll 8
    for (long long i = THREAD; i < quads; i += stride)
        __stcs(data + i, make_float4(1, 2, 3, 4));
}

extern "C" __global__ void dram_copies(long long quads, const float4 *from, float4 *to)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
#pragma unroll 8
    for (long long i = THREAD; i < quads; i += stride)
        __stcs(to + i, __ldcs(from + i));
}

// UNROLL atomic additions a thread and round: each thread its own of a power of two `words`, and all threads the same one.
extern "C" __global__ void atomics_apart(int rounds, unsigned *data, unsigned words)
{
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step)
            atomicAdd(data + ((THREAD + step * 32u) & (words - 1)), 1u);
}

extern "C" __global__ void atomics_together(int rounds, unsigned *data)
{
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step)
            asm volatile("red.global.add.u32 [%0], %1;" ::"l"(data), "r"(threadIdx.x + 1));
}

// UNROLL barriers a block and round.
extern "C" __global__ void barriers(int rounds)
{
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int step = 0; step < UNROLL; ++step)
            __syncthreads();
}

// Cycles of one dependent step after another, by one thread; `steps` of them. `ring` holds at each place the byte
// offset of the next.
extern "C" __global__ void latency_of_fma(int steps, float *sink, long long *cycles)
{
    float sum = steps;
    const float factor = 0.999f + steps * 1e-9f;
    const long long start = clock64();
#pragma unroll 64
    for (int i = 0; i < steps; ++i)
        asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(sum) : "f"(factor));
    *cycles = clock64() - start;
    if (sum == -1.25f)
        *sink = sum;
}

extern "C" __global__ void latency_of_shared(int steps, float *sink, long long *cycles)
{
    __shared__ unsigned ring[256];
    const unsigned base = (unsigned)__cvta_generic_to_shared(ring);
    for (int i = 0; i < 256; ++i)
        ring[i] = base + (i + 1) % 256 * 4;
    unsigned at = base;
    const long long start = clock64();
#pragma unroll 32
    for (int i = 0; i < steps; ++i)
        asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(at));
    *cycles = clock64() - start;
    if (at == 1)
        *sink = at;
}

#define CHASE(name, modifier)                                                                                          \
    extern "C" __global__ void name(int steps, float *sink, long long *cycles, const char *ring)                       \
    {                                                                                                                  \
        unsigned long long at = (unsigned long long)ring;                                                              \
        const unsigned long long first = at;                                                                           \
        unsigned long long next = 0;                                                                                   \
        const long long start = clock64();                                                                             \
        for (int i = 0; i < steps; ++i) {                                                                              \
            asm volatile("ld.global." modifier ".u64 %0, [%1];" : "=l"(next) : "l"(at));                               \
            at = first + next;                                                                                         \
        }                                                                                                              \
        *cycles = clock64() - start;                                                                                   \
        if (at == 1)                                                                                                   \
            *sink = at;                                                                                                \
    }
CHASE(latency_of_l1, "ca")
CHASE(latency_of_l2, "cg")
