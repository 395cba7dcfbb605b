// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// One product of nvcuda::wmma by a warp: what it stores, and what each lane holds of every fragment. Output:
// 32 x 32 elements of D, 16 x 32 of the sums' fragments (C, then D), 32 x 32 of the factors' (A, then B).
#include <mma.h>
using namespace nvcuda;

constexpr int LD = 32;

template <class Multiplied, class AOrder, class BOrder, int M, int N, int K, class Sum, class Element>
__device__ void multiply(void *out, const Element *a, const Element *b, const Sum *c, Sum *d,
                         wmma::layout_t order)
{
    wmma::fragment<wmma::matrix_a, M, N, K, Multiplied, AOrder> of_a;
    wmma::fragment<wmma::matrix_b, M, N, K, Multiplied, BOrder> of_b;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> of_c;
    wmma::load_matrix_sync(of_a, a, LD);
    wmma::load_matrix_sync(of_b, b, LD);
    wmma::load_matrix_sync(of_c, c, LD, order);
    const int lane = threadIdx.x;
    Sum *sums = (Sum *)out + 1024;
    Element *factors = (Element *)(sums + 512);
    for (int i = 0; i < of_a.num_elements; ++i)
        factors[i * 32 + lane] = of_a.x[i];
    for (int i = 0; i < of_b.num_elements; ++i)
        factors[512 + i * 32 + lane] = of_b.x[i];
    for (int i = 0; i < of_c.num_elements; ++i)
        sums[i * 32 + lane] = of_c.x[i];
    wmma::mma_sync(of_c, of_a, of_b, of_c);
    for (int i = 0; i < of_c.num_elements; ++i)
        sums[256 + i * 32 + lane] = of_c.x[i];
    wmma::store_matrix_sync(d, of_c, LD, order);
}

template <class Multiplied, class AOrder, class BOrder, int M, int N, int K, class Sum, class Element>
__device__ void in_shared(void *out, const Element *a, const Element *b, const Sum *c, Element *factors,
                          Sum *sums, wmma::layout_t order)
{
    for (int i = threadIdx.x; i < 1024; i += 32) {
        factors[i] = a[i];
        factors[1024 + i] = b[i];
        sums[i] = c[i];
    }
    __syncthreads();
    multiply<Multiplied, AOrder, BOrder, M, N, K>(out, factors, factors + 1024, sums, sums, order);
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += 32)
        ((Sum *)out)[i] = sums[i];
}

#define KERNEL(NAME, MULTIPLIED, A, B, M, N, K, SUM, ELEMENT, ORDER)                                            \
    extern "C" __global__ void NAME(void *out, const ELEMENT *a, const ELEMENT *b, const SUM *c)                \
    {                                                                                                           \
        multiply<MULTIPLIED, A, B, M, N, K>(out, a, b, c, (SUM *)out, ORDER);                                   \
    }                                                                                                           \
    extern "C" __global__ void NAME##_shared(void *out, const ELEMENT *a, const ELEMENT *b, const SUM *c)       \
    {                                                                                                           \
        __shared__ __align__(128) unsigned char factors[2048 * sizeof(ELEMENT)], sums[1024 * sizeof(SUM)];      \
        in_shared<MULTIPLIED, A, B, M, N, K>(out, a, b, c, (ELEMENT *)factors, (SUM *)sums, ORDER);             \
    }
#define ORDERS(NAME, MULTIPLIED, M, N, K, SUM, ELEMENT)                                                         \
    KERNEL(NAME##_rr, MULTIPLIED, wmma::row_major, wmma::row_major, M, N, K, SUM, ELEMENT, wmma::mem_row_major) \
    KERNEL(NAME##_cc, MULTIPLIED, wmma::col_major, wmma::col_major, M, N, K, SUM, ELEMENT, wmma::mem_col_major) \
    KERNEL(NAME##_rc, MULTIPLIED, wmma::row_major, wmma::col_major, M, N, K, SUM, ELEMENT, wmma::mem_row_major)

ORDERS(f16_m16n16k16_f32, half, 16, 16, 16, float, half)
ORDERS(f16_m32n8k16_f32, half, 32, 8, 16, float, half)
ORDERS(f16_m8n32k16_f32, half, 8, 32, 16, float, half)
ORDERS(f16_m16n16k16_f16, half, 16, 16, 16, half, half)
ORDERS(f16_m32n8k16_f16, half, 32, 8, 16, half, half)
ORDERS(f16_m8n32k16_f16, half, 8, 32, 16, half, half)
ORDERS(bf16_m16n16k16_f32, __nv_bfloat16, 16, 16, 16, float, __nv_bfloat16)
ORDERS(bf16_m32n8k16_f32, __nv_bfloat16, 32, 8, 16, float, __nv_bfloat16)
ORDERS(bf16_m8n32k16_f32, __nv_bfloat16, 8, 32, 16, float, __nv_bfloat16)
ORDERS(s8_m16n16k16_s32, signed char, 16, 16, 16, int, signed char)
ORDERS(s8_m32n8k16_s32, signed char, 32, 8, 16, int, signed char)
ORDERS(s8_m8n32k16_s32, signed char, 8, 32, 16, int, signed char)
ORDERS(u8_m16n16k16_s32, unsigned char, 16, 16, 16, int, unsigned char)
ORDERS(tf32_m16n16k8_f32, wmma::precision::tf32, 16, 16, 8, float, float)
ORDERS(f64_m8n8k4_f64, double, 8, 8, 4, double, double)
