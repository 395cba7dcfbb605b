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
#include "lib/reduce.cuh"
__global__ void block_sum(const float *x, float *sums, int n)
{
    float sum = lib::block_sum<256>(x[blockIdx.x * 256 + threadIdx.x]);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}
