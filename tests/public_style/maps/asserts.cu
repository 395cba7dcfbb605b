// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Asserts that hold"
arguments = ["n", "x", "y"]

[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/
#include <cassert>

__global__ void asserts(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(blockDim.x == 256 && "a block of 256");
    if (i < n) {
        const float v = x[i];
        assert(v >= -8 && v <= 8);
        y[i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
