// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Whole panels in shared memory"
problem = "gemm"
rung = 20
study = "A"
aliases = ["gemmOnGPU2DShareMem"]
idea = "A block keeps its whole row panel of A and column panel of B in shared memory, then multiplies from there."
after = "naive"
change = "Products read their operands from shared memory: shared_load_wavefronts and shared_store_wavefronts appear, while global_load_requests stay, since every thread still copies its whole row and column."
bottleneck = "Shared memory grows with K: one block soon takes a whole SM, then no longer fits at all."
reference = "Study A, gemmOnGPU2DShareMem"
dtypes = ["f32", "f64"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_requests = "stays"
shared_load_wavefronts = "rises"
shared_bytes = "rises"

[launch]
block = [32, 32]
any_block = true
grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]
dynamic_shared_bytes = "(block_y * K + K * block_x) * real_bytes"

[candidates]
block = [[8, 8], [16, 8], [16, 16], [32, 8], [32, 16], [32, 32]]

[[published]]
size = "128"
time_ms = 0.036865

[[published]]
size = "4096"
note = "code: 1, reason: invalid argument (1 MiB of shared memory)"
*/

extern "C" __global__ void smem_panel(int M, int N, int K, real alpha, const real *A, const real *B, real beta,
                                      real *C)
{
    // Coordinates.
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col = blockIdx.x * blockDim.x + tx; // 0 .. N-1
    const int row = blockIdx.y * blockDim.y + ty; // 0 .. M-1

    // Shared memory: As[blockDim.y][K], then Bs[K][blockDim.x].
    extern __shared__ real panels[];
    real *As = panels + (size_t)ty * K;
    real *Bs = panels + (size_t)blockDim.y * K + tx;

    // Pointers.
    const real *a = A + (size_t)row * K;
    const real *b = B + col;
    real *c = C + (size_t)row * N + col;

    // Load: every thread stores its whole row and its whole column. The threads of one row (and of one column)
    // store the same values to the same places; that redundancy is what the next rung removes.
    for (int k = 0; k < K; ++k) {
        if (row < M)
            As[k] = a[k];
        if (col < N)
            Bs[(size_t)k * blockDim.x] = b[(size_t)k * N];
    }
    __syncthreads();
    if (row >= M || col >= N)
        return;

    // Compute.
    real sum = 0;
    for (int k = 0; k < K; ++k)
        sum += As[k] * Bs[(size_t)k * blockDim.x];

    // Write back.
    *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
