// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tree over shared memory of which the end was never written"
arguments = ["columns", "x", "y"]

[launch]
block = [512]
grid = ["rows"]
*/
// executor: failed: uninitialised shared read
// gpu: any: whatever was there may be 0
__global__ void bad_uninitialised(int columns, const float *x, float *y)
{
    __shared__ float s[512];
    const int i = threadIdx.x;
    if (i < columns)
        s[i] = x[blockIdx.x * columns + i];
    __syncthreads();
    for (int half = 256; half; half /= 2) {
        if (i < half)
            s[i] += s[i + half]; // <- here
        __syncthreads();
    }
    if (i == 0)
        y[blockIdx.x] = s[0]; // <- here
}
