// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "An assert that one element breaks"
arguments = ["n", "x", "y"]

[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/
// both: failed
#include <assert.h>

__global__ void bad_assert(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        assert(x[i] < 8); // <- here
        y[i] = 1 + x[i] * (2 + x[i] * (3 + x[i] * 4));
    }
}
