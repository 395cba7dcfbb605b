// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Hillis and Steele in one buffer: reads what another warp is writing"
arguments = ["columns", "x", "y"]

[launch]
block = [256]
grid = ["rows"]
*/
// executor: failed: shared-memory race
// gpu: any: the order of warps decides
__global__ void bad_one_buffer(int columns, const float *x, float *y)
{
    __shared__ float temp[256];
    const int i = threadIdx.x;
    temp[i] = i < columns ? x[blockIdx.x * columns + i] : 0;
    for (int offset = 1; offset < 256; offset *= 2) {
        __syncthreads();
        if (i >= offset)
            temp[i] += temp[i - offset]; // <- here
    }
    __syncthreads();
    if (i < columns)
        y[blockIdx.x * columns + i] = temp[i];
}
