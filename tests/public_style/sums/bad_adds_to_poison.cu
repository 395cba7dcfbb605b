// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Adds to an output that nobody cleared"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
// both: incorrect
__global__ void bad_adds_to_poison(int columns, const float *x, float *y)
{
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        atomicAdd(&y[blockIdx.x], x[blockIdx.x * columns + i]);
}
