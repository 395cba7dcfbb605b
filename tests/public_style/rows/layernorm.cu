// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Layer normalisation: a warp a row, mean and variance by cg::reduce"
operation = "layernorm"
dimensions = ["rows", "columns"]
default_sizes = "6x250"
arguments = ["columns", "x", "gain", "shift", "y"]

[arrays.x]
shape = ["rows", "columns"]

[arrays.gain]
shape = ["columns"]

[arrays.shift]
shape = ["columns"]

[arrays.y]
shape = ["rows", "columns"]
role = "out"

[inputs]
x = "normal(1, 2)"

[work]
flops = "8 * rows * columns"
bytes = "(2 * rows * columns + 2 * columns) * real_bytes"

[check.y]
value = "(x - mean(x, axis=1, keepdims=True)) / sqrt(var(x, axis=1, keepdims=True) + 1e-5) * gain + shift"
relative = "64 * u"
magnitude = "10"

[launch]
block = [32]
grid = ["rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void layernorm(int C, const float *__restrict__ inp, const float *__restrict__ weight,
    const float *__restrict__ bias, float *__restrict__ out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    const float *x = inp + blockIdx.x * C;
    float sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size())
        sum += x[i];
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float m = sum / C;
    sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        float diff = x[i] - m;
        sum += diff * diff;
    }
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float s = rsqrtf(sum / C + 1e-5f);
    for (int c = warp.thread_rank(); c < C; c += warp.size()) {
        float n = s * (__ldcs(x + c) - m);
        __stcs(out + blockIdx.x * C + c, n * weight[c] + bias[c]);
    }
}
