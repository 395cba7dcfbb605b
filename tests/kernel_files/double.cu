// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Doubles an array: NAME and BODY take the place of what tests say.
/*gpuprof
arguments = ["n", "x", "y"]
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__device__ int launches;
extern "C" __global__ void NAME(int n, real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
