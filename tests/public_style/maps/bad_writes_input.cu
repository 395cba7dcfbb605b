// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Scales its input in place on the way"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
// executor: failed
// gpu: incorrect: one of its inputs
__global__ void bad_writes_input(int n, float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float v = x[i];
    y[i] = 1 + v * (2 + v * (3 + v * 4));
    x[i] = v * v; // <- here
}
