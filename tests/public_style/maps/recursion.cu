// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Horner's rule by recursion, to a depth that differs among threads"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
__device__ __noinline__ float horner(float x, int k, int most)
{
    return k > most ? 0 : (k <= 4 ? k : 0) + x * horner(x, k + 1, most);
}

__global__ void recursion(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = horner(x[i], 1, 4 + i % 3);
}
