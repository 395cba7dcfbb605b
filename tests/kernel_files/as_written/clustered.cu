// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "block_sums"
dimensions = ["n"]
arguments = ["x", "sums", "n"]

[arrays]
x = { shape = ["n"] }
sums = { shape = ["cdiv(n, 256)"], role = "out" }

[work]
bytes = "n * real_bytes"
flops = "n"

[check.sums]
value = "sum(reshape(x, (n // 256, 256)), axis=1)"
magnitude = "sum(abs(reshape(x, (n // 256, 256))), axis=1)"
relative = "32 * u"

[launch]
block = [256]
grid = ["cdiv(n, 256)"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) block_sum(const float *x, float *sums, int n)
{
    __shared__ float parts[256];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned other = cluster.block_rank() ^ 1;
    // Each block fetches what its neighbour sums.
    cluster.map_shared_rank(parts, other)[threadIdx.x] = x[(blockIdx.x ^ 1) * 256 + threadIdx.x];
    cluster.sync();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (float part : parts)
            sum += part;
        sums[blockIdx.x] = cluster.num_blocks() == 2 && cluster.thread_rank() % 256 == 0 ? sum : 0;
    }
}
