// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// GEMM's float64 reference on the device, for any element type of which `value_of` tells the number; never timed.

#define TILE 64
#define STEP 16
#define MICRO 4

// C = alpha*A@B + beta*C0 in float64, and |alpha|*|A|@|B| + |beta|*|C0| as each element's magnitude.
// Element (i, k) of A is A[i*a_row + k*a_col], likewise for B and C, so that one kernel serves both layouts.
// Block 16x16; each thread computes 4x4 elements, 16 apart, of a 64x64 tile.
extern "C" __global__ void reference_gemm(long long M, long long N, long long K, double alpha, const real *A, long long a_row,
                                          long long a_col, const real *B, long long b_row, long long b_col, double beta,
                                          const result_type *C0, long long c_row, long long c_col, double *expected,
                                          double *magnitude)
{
    __shared__ real As[TILE][STEP + 1];
    __shared__ real Bs[STEP][TILE + 1];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const long long row0 = (long long)blockIdx.y * TILE;
    const long long col0 = (long long)blockIdx.x * TILE;

    double sum[MICRO][MICRO] = {};
    double size[MICRO][MICRO] = {};
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int i = thread; i < TILE * STEP; i += 256) {
            const long long row = row0 + i / STEP;
            const int a_k = k0 + i % STEP;
            As[i / STEP][i % STEP] = row < M && a_k < K ? A[row * a_row + a_k * a_col] : real();
            const long long col = col0 + i % TILE;
            const int b_k = k0 + i / TILE;
            Bs[i / TILE][i % TILE] = col < N && b_k < K ? B[b_k * b_row + col * b_col] : real();
        }
        __syncthreads();
        for (int k = 0; k < STEP; ++k) {
#pragma unroll
            for (int i = 0; i < MICRO; ++i) {
#pragma unroll
                for (int j = 0; j < MICRO; ++j) {
                    const double product = value_of(As[ty + 16 * i][k]) * value_of(Bs[k][tx + 16 * j]);
                    sum[i][j] += product;
                    size[i][j] += fabs(product);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < MICRO; ++i) {
        for (int j = 0; j < MICRO; ++j) {
            const long long row = row0 + ty + 16 * i;
            const long long col = col0 + tx + 16 * j;
            if (row >= M || col >= N)
                continue;
            const long long at = row * c_row + col * c_col;
            const double old = beta == 0 ? 0.0 : value_of(C0[at]);
            expected[at] = alpha * sum[i][j] + beta * old;
            magnitude[at] = fabs(alpha) * size[i][j] + fabs(beta * old);
        }
    }
}
