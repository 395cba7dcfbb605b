// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "new and delete of each thread's coefficients"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
__global__ void heap(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float *powers = new float[4];
    powers[0] = 1;
    for (int k = 1; k < 4; ++k)
        powers[k] = powers[k - 1] * x[i];
    float sum = 0;
    for (int k = 0; k < 4; ++k)
        sum += (k + 1) * powers[k];
    y[i] = sum;
    delete[] powers;
}
