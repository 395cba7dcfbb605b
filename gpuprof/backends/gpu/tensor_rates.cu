// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tensor cores of compute capability 9.0 reach, as rates.cu has it of the other parts of a device: apart from
// those, since compiling these takes as long.

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
            sink[blockIdx.x * blockDim.x + threadIdx.x] = total;                                                       \
    }
TENSOR(tensor_f16, "k16.f32.f16.f16", ", 0, 0", 0x3c003c00u, 0x83ff83ffu)
TENSOR(tensor_bf16, "k16.f32.bf16.bf16", ", 0, 0", 0x3f803f80u, 0x807f807fu)
TENSOR(tensor_tf32, "k8.f32.tf32.tf32", "", 0x3f800000u, 0x807fe000u)
TENSOR(tensor_e4m3, "k32.f32.e4m3.e4m3", "", 0x38383838u, 0x87878787u)
