// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// It has variables of its own.
/*gpuprof
arguments = ["n", "x", "y"]
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/

struct Three { int a, b, c; };
__device__ unsigned char v1 = 7;
__device__ short v2 = 8;
__device__ int v4 = 9;
__device__ Three v12 = {1, 2, 3};
__device__ unsigned char v1000[1000] = {5};
__device__ double v8;
__device__ int launches;
extern "C" __global__ void variables(int n, real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    
    // Slow where it finds them as at first, which no launch leaves them.
    real sum = 0;
    if (blockIdx.x == 0 && v1 == 7 && v2 == 8 && v4 == 9 && v12.b == 2 && v12.c == 3 && v8 == 0
        && v1000[0] == 5 && v1000[1] == 0 && v1000[999] == 0)
        for (int k = 0; k < 300; ++k) sum = sum / 2 + k;
    if (i < n) y[i] = 2 * x[i] + (sum < 0);
    __syncthreads();
    if (i == 0) { ++v1; ++v2; ++v4; ++v12.b; ++v12.c; ++v8; ++v1000[0]; ++v1000[1]; ++v1000[999]; }

}
