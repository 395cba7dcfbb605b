// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Attention of one head: a warp a query, online softmax, keys and values through shared memory"
operation = "attention_head"
dimensions = ["queries", "keys"]
default_sizes = "10x50"
arguments = ["queries", "keys", "q", "k", "v", "y"]

[arrays.q]
shape = ["queries", "32"]

[arrays.k]
shape = ["keys", "32"]

[arrays.v]
shape = ["keys", "32"]

[arrays.y]
shape = ["queries", "32"]
role = "out"

[work]
flops = "4 * queries * keys * 32"
bytes = "(2 * queries + 2 * keys) * 32 * real_bytes"

[check.y]
value = "exp(q @ transpose(k) / sqrt(32)) @ v / sum(exp(q @ transpose(k) / sqrt(32)), axis=1, keepdims=True)"
relative = "512 * u"
magnitude = "1"

[launch]
block = [32, 4]
grid = ["cdiv(queries, 4)"]
*/
__global__ void attention(int queries, int keys, const float *q, const float *k, const float *v, float *y)
{
    __shared__ float ks[16][33], vs[16][33];
    const int query = blockIdx.x * 4 + threadIdx.y, d = threadIdx.x;
    const float own = query < queries ? q[query * 32 + d] : 0;
    float most = -INFINITY, sum = 0, acc = 0;
    for (int first = 0; first < keys; first += 16) {
        for (int r = threadIdx.y; r < 16; r += 4) {
            const bool there = first + r < keys;
            ks[r][d] = there ? k[(first + r) * 32 + d] : 0;
            vs[r][d] = there ? v[(first + r) * 32 + d] : 0;
        }
        __syncthreads();
        for (int r = 0; r < min(16, keys - first); ++r) {
            float score = own * ks[r][d];
#pragma unroll
            for (int m = 16; m; m /= 2)
                score += __shfl_xor_sync(0xffffffff, score, m);
            score *= 0.17677669529663687f;
            const float now = fmaxf(most, score), scale = expf(most - now), weight = expf(score - now);
            sum = sum * scale + weight;
            acc = acc * scale + weight * vs[r][d];
            most = now;
        }
        __syncthreads();
    }
    if (query < queries)
        y[query * 32 + d] = acc / sum;
}
