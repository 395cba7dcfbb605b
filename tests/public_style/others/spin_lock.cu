// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Locks: a spin lock around a sum, taken by one thread of each block"
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
entry = "locked"
arguments = ["n", "x", "total"]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
__device__ int mutex = 0;

__device__ void lock(int *m)
{
    while (atomicCAS(m, 0, 1) != 0)
        __nanosleep(50);
    __threadfence();
}

__device__ void unlock(int *m)
{
    __threadfence();
    atomicExch(m, 0);
}

__global__ void clear(float *total) { *total = 0; }

__global__ void locked(int n, const float *x, float *total)
{
    __shared__ float s;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&s, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        lock(&mutex);
        *(volatile float *)total += s;
        unlock(&mutex);
    }
}
