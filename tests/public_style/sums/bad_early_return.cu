// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Threads past the row's end return before a shuffle that names them"
arguments = ["rows", "columns", "x", "y"]

[launch]
block = [320]
grid = ["rows"]
*/
// executor: failed: shuffle from a lane that takes no part
// gpu: any: the lanes that are missing may count as zero
__global__ void bad_early_return(int rows, int columns, const float *x, float *y)
{
    __shared__ float warps[10];
    const int i = threadIdx.x;
    if (i >= columns)
        return;
    float v = x[blockIdx.x * columns + i];
    for (int offset = 16; offset; offset /= 2)
        v += __shfl_down_sync(0xffffffff, v, offset); // <- here
    if (i % 32 == 0)
        warps[i / 32] = v;
    __syncthreads();
    if (i == 0) {
        float sum = 0;
        for (int w = 0; w < 10; ++w)
            sum += warps[w];
        y[blockIdx.x] = sum; // <- here
    }
}
