// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "1,000 bytes of constant memory, of which every thread reads its own"
arguments = ["n", "x", "y"]

[launch]
block = [250]
grid = ["cdiv(n, block_x)"]
*/
struct Table {
    float c[250];
    constexpr Table() : c()
    {
        for (int i = 0; i < 250; ++i)
            c[i] = 1 + i % 4;
    }
};
__constant__ Table table;

__global__ void constant_1000(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int own = threadIdx.x / 4 * 4 % 248;
    float v = 0;
    for (int k = 3; k >= 0; --k)
        v = v * x[i] + table.c[own + k];
    y[i] = v;
}
