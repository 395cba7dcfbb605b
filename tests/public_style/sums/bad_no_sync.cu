// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tree without a barrier between its levels"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
// executor: failed: shared-memory race
// gpu: any: a race that need not show
__global__ void bad_no_sync(int columns, const float *x, float *y)
{
    __shared__ float s[128];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += x[blockIdx.x * columns + i];
    s[threadIdx.x] = sum; // <- here
    for (int half = 64; half; half /= 2) {
        if (threadIdx.x < half)
            s[threadIdx.x] += s[threadIdx.x + half]; // <- here
    }
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = s[0];
}
