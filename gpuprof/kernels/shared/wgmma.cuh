// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Products of 16-bit floats by a warpgroup, four warps whose first one's number is a multiple of four: operands lie in
// shared memory, in rows of 128 bytes whose 16-byte pieces are permuted by the row's number, as tensor copies do with
// swizzle_bytes = 128. Tiles start at multiples of 1024 bytes.

#include "tensor_core.cuh"

#define ROW 64 // elements of such a row

// A tile whose rows lie along k, ROW deep, as A's do. A later k within the rows starts so many bytes further on.
static __device__ __forceinline__ unsigned long long rows_of_k(unsigned address)
{
    return 1ull << 62 | 64ull << 32 | 1ull << 16 | (address & 0x3ffff) >> 4; // 1024 bytes from 8 rows to the next 8
}
// A tile whose rows lie along columns, as B's do: blocks of ROW columns, each `block` bytes after the other.
static __device__ __forceinline__ unsigned long long rows_of_columns(unsigned address, unsigned block)
{
    return 1ull << 62 | 64ull << 32 | (unsigned long long)(block >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// Before products whose sums the warps have touched otherwise.
static __device__ __forceinline__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void close_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Wait until all of the warpgroup's products but the last PENDING groups are done.
template <int PENDING> static __device__ __forceinline__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// Let the copy engine and the tensor cores see what this thread wrote to shared memory.
static __device__ __forceinline__ void publish_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// The warpgroup gives up registers, or takes those that others gave up.
template <int REGISTERS> static __device__ __forceinline__ void shrink_to()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> static __device__ __forceinline__ void grow_to()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

#define PLACES_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PLACES_64 \
    PLACES_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PLACES_96 \
    PLACES_64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PLACES_128 \
    PLACES_96 ", " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_8(i)                                                                                                      \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]),            \
        "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)
#define SUMS_64(i) SUMS_32(i), SUMS_32(i + 32)
#define SUMS_96(i) SUMS_64(i), SUMS_32(i + 64)
#define SUMS_128(i) SUMS_64(i), SUMS_64(i + 64)
#define WGMMA(TYPE, COLUMNS, COUNT, A, B, ONE)                                                                         \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 "setp.ne.s32 add, " ONE ", 0;\n"                                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE                                  \
                 " {" PLACES_##COUNT "}, " A ", " B ", add, 1, 1, 0, 1;\n"                                             \
                 "}"                                                                                                   \
                 : SUMS_##COUNT(0)                                                                                     \
                 : "l"(a), "l"(b), "r"((int)add))
#define WGMMA_OF_RUN(COLUMNS, COUNT, A, B, ONE)                                                                        \
    if constexpr (is_bf16<real>)                                                                                       \
        WGMMA("bf16", COLUMNS, COUNT, A, B, ONE);                                                                      \
    else                                                                                                               \
        WGMMA("f16", COLUMNS, COUNT, A, B, ONE)

// 64 rows and as many columns of sums as a thread has two of are the products of 16 k of A and of B, or these are added to
// them. A thread has two neighbours of a row, and two of the row eight further down, of each eight columns.
static __device__ __forceinline__ void multiply_add(float (&sum)[32], unsigned long long a, unsigned long long b,
                                                    bool add)
{
    WGMMA_OF_RUN("64", 32, "%32", "%33", "%34");
}
static __device__ __forceinline__ void multiply_add(float (&sum)[64], unsigned long long a, unsigned long long b,
                                                    bool add)
{
    WGMMA_OF_RUN("128", 64, "%64", "%65", "%66");
}
static __device__ __forceinline__ void multiply_add(float (&sum)[96], unsigned long long a, unsigned long long b,
                                                    bool add)
{
    WGMMA_OF_RUN("192", 96, "%96", "%97", "%98");
}
static __device__ __forceinline__ void multiply_add(float (&sum)[128], unsigned long long a, unsigned long long b,
                                                    bool add)
{
    WGMMA_OF_RUN("256", 128, "%128", "%129", "%130");
}

// Write a warpgroup's sums to C, at whose row m and column n the first one belongs.
template <int COUNT>
static __device__ __forceinline__ void write_sums(const float (&sum)[COUNT], int m, int n, int M, int N, float alpha,
                                                  float beta, real *C)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = m + threadIdx.x % 128 / 32 * 16 + half * 8 + lane / 4;
        if (row >= M)
            continue;
#pragma unroll
        for (int j = 0; j < COUNT / 4; ++j) {
            const int column = n + j * 8 + lane % 4 * 2;
            write2<true>(C + (size_t)row * N + column, N - column, alpha, sum[j * 4 + half * 2],
                         sum[j * 4 + half * 2 + 1], beta);
        }
    }
}
