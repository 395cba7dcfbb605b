// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A grid-stride loop that takes a lambda"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["3"]
*/
template <typename F>
__device__ void for_each(int n, F f)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        f(i);
}

__global__ void grid_stride_lambda(int n, const float *x, float *y)
{
    const float c[4] = {1, 2, 3, 4};
    for_each(n, [=](int i) {
        float value = 0;
        for (int k = 3; k >= 0; --k)
            value = fmaf(value, x[i], c[k]);
        y[i] = value;
    });
}
