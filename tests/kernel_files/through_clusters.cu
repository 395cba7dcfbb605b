// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Each block fetches the factors of its neighbour in the cluster, and takes its own from there.
/*gpuprof
title = "Factors by way of the neighbour"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["2 * cdiv(columns, 2 * block_x)", "cdiv(rows, block_y)"]
*/
__device__ real *neighbour(real *own)
{
    unsigned long long place;
    asm volatile("{ .reg .b32 r; mov.u32 r, %%cluster_ctarank; xor.b32 r, r, 1; mapa.u64 %0, %1, r; }"
                 : "=l"(place) : "l"(own));
    return reinterpret_cast<real *>(place);
}

__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
KERNEL(int rows, int columns, const real *x, const real *w, real *y)
{
    __shared__ real factors[32];
    const int theirs = (blockIdx.x ^ 1) * 32 + threadIdx.x;
    if (threadIdx.y == 0)
        factors[threadIdx.x] = theirs < columns ? w[theirs] : 0;
    meet(); // first
    const real factor = neighbour(factors)[threadIdx.x]; // read
    meet(); // second
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (row < rows && column < columns)
        y[(size_t)row * columns + column] = x[(size_t)row * columns + column] * factor; // store
}
