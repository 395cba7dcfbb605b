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

#if __CUDA_ARCH_FEAT_SM90_ALL
#define SUMS_8(i)                                                                                                      \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]),            \
        "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)

#define TWICE(text) text text
#define PRODUCT(product, TURNS)                                                                                        \
    "wgmma.mma_async.sync.aligned.m64n256" product                                                                     \
    " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "                     \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "             \
    "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "             \
    "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "             \
    "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "                 \
    "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1" TURNS ";\n"

// Eight products of 64 x 32 bytes by 32 bytes x 256 a warpgroup and round, of which a block has two. Operands are
// random numbers between 1 and 2 of either sign: a word of them has ONE, and random bits where VARIED has ones. Zeros
// would switch few transistors, and let the clock stay higher than a kernel's own data does. They are one statement,
// as the compiler takes long for each with so many operands.
#define TENSOR(name, product, TURNS, ONE, VARIED)                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 1) name(int rounds, float *sink)                                 \
    {                                                                                                                  \
        __shared__ __align__(1024) unsigned operands[2560];                                                            \
        for (int i = threadIdx.x; i < 2560; i += 256) {                                                                \
            unsigned bits = (i + 1) * 0x9e3779b9u;                                                                     \
            bits = (bits ^ bits >> 16) * 0x85ebca6bu;                                                                  \
            bits = (bits ^ bits >> 13) * 0xc2b2ae35u;                                                                  \
            operands[i] = ONE | ((bits ^ bits >> 16) & VARIED);                                                        \
        }                                                                                                              \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                                   \
        __syncthreads();                                                                                               \
        /* Cores of 8 rows by 16 bytes: 128 bytes from one to the next, 256 to the next 8 rows. */                     \
        const unsigned at = (unsigned)__cvta_generic_to_shared(operands);                                              \
        const unsigned long long a = 16ull << 32 | 8ull << 16 | at >> 4;                                               \
        const unsigned long long b = a + (2048 >> 4);                                                                  \
        float sum[128] = {};                                                                                           \
        _Pragma("unroll 1") for (int round = 0; round < rounds; ++round)                                               \
        {                                                                                                              \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                    \
            asm volatile(TWICE(TWICE(TWICE(PRODUCT(product, TURNS))))                                                  \
                         : SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96)                                           \
                         : "l"(a), "l"(b));                                                                            \
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");           \
        }                                                                                                              \
        float total = 0;                                                                                               \
        for (int i = 0; i < 128; ++i)                                                                                  \
            total += sum[i];                                                                                           \
        if (total == -1.25f)                                                                                           \
            sink[THREAD] = total;                                                                                      \
    }
TENSOR(tensor_f16, "k16.f32.f16.f16", ", 0, 0", 0x3c003c00u, 0x83ff83ffu)
TENSOR(tensor_bf16, "k16.f32.bf16.bf16", ", 0, 0", 0x3f803f80u, 0x807f807fu)
TENSOR(tensor_tf32, "k8.f32.tf32.tf32", "", 0x3f800000u, 0x807fe000u)
TENSOR(tensor_e4m3, "k32.f32.e4m3.e4m3", "", 0x38383838u, 0x87878787u)
#endif

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

extern "C" __global__ void nothing()
{
}
