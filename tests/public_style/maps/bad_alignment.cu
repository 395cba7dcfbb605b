// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "float2 from an odd element"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, 2 * block_x)"]
*/
// both: failed
__global__ void bad_alignment(int n, const float *x, float *y)
{
    const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i == 0)
        y[0] = 1 + x[0] * (2 + x[0] * (3 + x[0] * 4));
    if (i + 2 >= n)
        return;
    const float2 v = *reinterpret_cast<const float2 *>(x + i + 1); // <- here
    y[i + 1] = 1 + v.x * (2 + v.x * (3 + v.x * 4));
    y[i + 2] = 1 + v.y * (2 + v.y * (3 + v.y * 4));
}
