// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Hillis and Steele, between two buffers"
arguments = ["columns", "x", "y"]

[launch]
block = [256]
grid = ["rows"]
*/
__global__ void hillis_steele(int columns, const float *x, float *y)
{
    __shared__ float temp[2][256];
    int in = 1, out = 0;
    const int i = threadIdx.x;
    temp[out][i] = i < columns ? x[blockIdx.x * columns + i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
        out = 1 - out, in = 1 - out;
        temp[out][i] = temp[in][i] + (i >= offset ? temp[in][i - offset] : 0);
        __syncthreads();
    }
    if (i < columns)
        y[blockIdx.x * columns + i] = temp[out][i];
}
