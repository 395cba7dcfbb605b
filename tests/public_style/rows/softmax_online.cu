// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Softmax in one pass over each row: a pair of maximum and sum, by cub::BlockReduce"
operation = "softmax_rows"
dimensions = ["rows", "columns"]
default_sizes = "4x333"
arguments = ["columns", "x", "y"]

[arrays.x]
shape = ["rows", "columns"]

[arrays.y]
shape = ["rows", "columns"]
role = "out"

[inputs]
x = "normal(0, 3)"

[work]
flops = "5 * rows * columns"
bytes = "2 * rows * columns * real_bytes"

[check]
y = "exp(x - max(x, axis=1, keepdims=True)) / sum(exp(x - max(x, axis=1, keepdims=True)), axis=1, keepdims=True)"
relative = "256 * u"
absolute = "2 * tiny"

[launch]
block = [64]
grid = ["rows"]
*/
#include <cub/block/block_reduce.cuh>

struct __align__(8) MD {
    float m, d;
};

struct Join {
    __device__ __forceinline__ MD operator()(MD a, MD b) const
    {
        const bool a_bigger = a.m > b.m;
        const MD big = a_bigger ? a : b, small = a_bigger ? b : a;
        return {big.m, big.d + small.d * __expf(small.m - big.m)};
    }
};

__global__ void softmax_online(int V, const float *__restrict x, float *__restrict y)
{
    x += blockIdx.x * V, y += blockIdx.x * V;
    using BlockReduce = cub::BlockReduce<MD, 64, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    __shared__ typename BlockReduce::TempStorage temp_storage;
    __shared__ MD total;
    MD partial = {-3.4e38f, 0.f};
    for (int i = threadIdx.x; i < V; i += 64)
        partial = Join()(partial, MD{x[i], 1.f});
    const MD all = BlockReduce(temp_storage).Reduce(partial, Join());
    if (threadIdx.x == 0)
        total = all;
    __syncthreads();
    const float inverse = __fdividef(1.f, total.d);
    for (int i = threadIdx.x; i < V; i += 64)
        y[i] = __expf(x[i] - total.m) * inverse;
}
