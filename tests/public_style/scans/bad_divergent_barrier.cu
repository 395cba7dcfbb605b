// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A barrier inside a branch that only some warps take"
arguments = ["columns", "x", "y"]

[launch]
block = [256]
grid = ["rows"]
*/
// executor: failed
// gpu: any: a card may let it pass
__global__ void bad_divergent_barrier(int columns, const float *x, float *y)
{
    __shared__ float temp[2][256];
    int out = 0;
    const int i = threadIdx.x;
    temp[0][i] = i < columns ? x[blockIdx.x * columns + i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
        const int in = out;
        out = 1 - out;
        if (i >= offset) {
            temp[out][i] = temp[in][i] + temp[in][i - offset];
            __syncthreads(); // <- here
        } else {
            temp[out][i] = temp[in][i]; // <- here
        }
    }
    if (i < columns)
        y[blockIdx.x * columns + i] = temp[out][i];
}
