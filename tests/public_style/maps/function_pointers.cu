// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Functions called through a table in constant memory"
arguments = ["n", "x", "y"]

[launch]
block = [96]
grid = ["cdiv(n, block_x)"]
*/
typedef float (*function)(float);
__device__ __noinline__ float constant(float) { return 1; }
__device__ __noinline__ float linear(float x) { return 2 * x; }
__device__ __noinline__ float square(float x) { return 3 * x * x; }
__device__ __noinline__ float cubic(float x) { return 4 * x * x * x; }
__constant__ function terms[4] = {constant, linear, square, cubic};

__global__ void function_pointers(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < 4; ++k)
        sum += terms[(k + i) % 4](x[i]);
    y[i] = sum;
}
