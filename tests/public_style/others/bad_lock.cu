// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A sum over blocks without its lock"
operation = "locked_sum"
dimensions = ["n"]
default_sizes = "640"

[arrays.x]
shape = ["n"]

[arrays.total]
shape = ["1"]
role = "out"

[inputs]
x = "integers(-8, 9)"

[work]
flops = "n"
bytes = "n * real_bytes"

[check]
total = { value = "reshape(sum(x), 1)", equal = true }

[[launches]]
entry = "clear"
arguments = ["total"]
block = [1]
grid = ["1"]

[[launches]]
entry = "unlocked"
arguments = ["n", "x", "total"]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
// executor: failed: race
// gpu: any: blocks may come one after another
__global__ void clear(float *total) { *total = 0; }

__global__ void unlocked(int n, const float *x, float *total)
{
    __shared__ float s;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&s, x[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        *total += s; // <- here
}
