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
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
__global__ void block_sum(const float *x, float *sums, int n)
{
    __shared__ float parts[8];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    float sum = x[blockIdx.x * 256 + block.thread_rank()];
    for (int i = warp.size() / 2; i > 0; i /= 2)
        sum += warp.shfl_down(sum, i);
    if (warp.thread_rank() == 0)
        parts[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        sum = 0;
        for (float part : parts)
            sum += part;
        sums[blockIdx.x] = sum;
    }
}
