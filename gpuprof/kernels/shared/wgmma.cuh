// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Products by a warpgroup, four warps whose first one's number is a multiple of four: operands lie in
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

// The same so many bytes further on within shared memory, which its lower half alone says.
static __device__ __forceinline__ unsigned long long further(unsigned long long tile, unsigned bytes)
{
    return tile & 0xffffffffull << 32 | (unsigned)tile + bytes / 16;
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
// Wait for so many threads of the block, those that multiply.
template <int COUNT> static __device__ __forceinline__ void meet_threads()
{
    asm volatile("barrier.sync 1, %0;" ::"n"(COUNT) : "memory");
}
// Wait for the other warps of the warpgroup.
static __device__ __forceinline__ void meet_warpgroup()
{
    asm volatile("barrier.sync %0, 128;" ::"r"(threadIdx.x / 128) : "memory");
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

// So many sums of a thread as operands.
#define PLACES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define PLACES_16 PLACES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define PLACES_24 PLACES_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define PLACES_32 PLACES_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define PLACES_40 PLACES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define PLACES_48 PLACES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define PLACES_56 PLACES_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define PLACES_64 PLACES_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define PLACES_72 PLACES_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define PLACES_80 PLACES_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define PLACES_88 PLACES_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define PLACES_96 PLACES_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define PLACES_104 PLACES_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define PLACES_112 PLACES_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define PLACES_120 PLACES_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define PLACES_128 PLACES_120 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_8(i)                                                                                                      \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]),            \
        "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUMS_16(i) SUMS_8(i), SUMS_8(i + 8)
#define SUMS_24(i) SUMS_16(i), SUMS_8(i + 16)
#define SUMS_32(i) SUMS_24(i), SUMS_8(i + 24)
#define SUMS_40(i) SUMS_32(i), SUMS_8(i + 32)
#define SUMS_48(i) SUMS_40(i), SUMS_8(i + 40)
#define SUMS_56(i) SUMS_48(i), SUMS_8(i + 48)
#define SUMS_64(i) SUMS_56(i), SUMS_8(i + 56)
#define SUMS_72(i) SUMS_64(i), SUMS_8(i + 64)
#define SUMS_80(i) SUMS_72(i), SUMS_8(i + 72)
#define SUMS_88(i) SUMS_80(i), SUMS_8(i + 80)
#define SUMS_96(i) SUMS_88(i), SUMS_8(i + 88)
#define SUMS_104(i) SUMS_96(i), SUMS_8(i + 96)
#define SUMS_112(i) SUMS_104(i), SUMS_8(i + 104)
#define SUMS_120(i) SUMS_112(i), SUMS_8(i + 112)
#define SUMS_128(i) SUMS_120(i), SUMS_8(i + 120)
// How many there are of so many columns, and the operands behind them.
#define OF_32 16, "%16", "%17", "%18", "%19", "%20", "%21"
#define OF_48 24, "%24", "%25", "%26", "%27", "%28", "%29"
#define OF_64 32, "%32", "%33", "%34", "%35", "%36", "%37"
#define OF_80 40, "%40", "%41", "%42", "%43", "%44", "%45"
#define OF_96 48, "%48", "%49", "%50", "%51", "%52", "%53"
#define OF_112 56, "%56", "%57", "%58", "%59", "%60", "%61"
#define OF_128 64, "%64", "%65", "%66", "%67", "%68", "%69"
#define OF_144 72, "%72", "%73", "%74", "%75", "%76", "%77"
#define OF_160 80, "%80", "%81", "%82", "%83", "%84", "%85"
#define OF_176 88, "%88", "%89", "%90", "%91", "%92", "%93"
#define OF_192 96, "%96", "%97", "%98", "%99", "%100", "%101"
#define OF_208 104, "%104", "%105", "%106", "%107", "%108", "%109"
#define OF_224 112, "%112", "%113", "%114", "%115", "%116", "%117"
#define OF_240 120, "%120", "%121", "%122", "%123", "%124", "%125"
#define OF_256 128, "%128", "%129", "%130", "%131", "%132", "%133"
// 64 rows by so many columns of sums are the products of 32 bytes of k, or these are added to them.
#define WGMMA(...) WGMMA_1(__VA_ARGS__)
#define WGMMA_1(COLUMNS, KIND, TURNED) WGMMA_2(COLUMNS, KIND, TURNED, OF_##COLUMNS)
#define WGMMA_2(...) WGMMA_3(__VA_ARGS__)
#define WGMMA_3(COLUMNS, KIND, TURNED, COUNT, A, B, ADD, ...)                                                          \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 "setp.ne.s32 add, " ADD ", 0;\n"                                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" #COLUMNS KIND " {" PLACES_##COUNT "}, " A ", " B                  \
                 ", add, 1, 1" TURNED ";\n"                                                                            \
                 "}"                                                                                                   \
                 : SUMS_##COUNT(0)                                                                                     \
                 : "l"(a), "l"(b), "r"((int)add))

#if TURNED
#define TURNS ", 1, 0"
#else
#define TURNS ", 0, 1"
#endif
#ifdef BK
// The same for a GEMM's tiles of BN columns and BK k: of 16-bit floats, B's rows along columns (turned, A's), or of bytes, B's rows
// along k as A's are.
// A thread has two neighbours of a row, and two of the row eight further down, of each eight columns.
static __device__ __forceinline__ void multiply_add(float (&sum)[BN / 2], unsigned long long a, unsigned long long b,
                                                    bool add)
{
    if constexpr (BK == 128)
        WGMMA(BN, "k32.f32.e4m3.e4m3", "");
    else if constexpr (is_bf16<real>)
        WGMMA(BN, "k16.f32.bf16.bf16", TURNS);
    else
        WGMMA(BN, "k16.f32.f16.f16", TURNS);
}
#endif

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
