// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Dynamic shared memory for half of the threads"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
dynamic_shared_bytes = "4 * 64"
*/
// executor: failed: out of bounds
// gpu: any: shared memory is given in larger portions
__global__ void bad_overrun_dynamic(int columns, const float *x, float *y)
{
    extern __shared__ float s[];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 128)
        sum += x[blockIdx.x * columns + i];
    s[threadIdx.x] = sum; // <- here
    __syncthreads();
    for (int half = 64; half; half /= 2) {
        if (threadIdx.x < half)
            s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = s[0];
}
