// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Shuffles and barriers of the lanes that a ballot chose"
arguments = ["columns", "x", "y"]

[launch]
block = [32]
grid = ["rows"]
*/
__global__ void masks(int columns, const float *x, float *y)
{
    __shared__ float s[32];
    float sum = 0;
    const unsigned lane = threadIdx.x;
    for (int first = 0; first < columns; first += 32) {
        const unsigned mask = __ballot_sync(~0u, first + lane < columns);
        if (first + lane < columns) {
            float v = x[blockIdx.x * columns + first + lane];
            if (mask == ~0u) {
                for (int d = 16; d; d /= 2)
                    v += __shfl_down_sync(mask, v, d);
            } else {
                s[lane] = v;
                __syncwarp(mask);
                if (lane == 0)
                    for (int k = 1; k < __popc(mask); ++k)
                        v += s[k];
            }
            sum += v;
        }
        __syncwarp();
    }
    if (lane == 0)
        y[blockIdx.x] = sum;
}
