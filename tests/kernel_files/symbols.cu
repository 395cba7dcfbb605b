// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Weights in constant memory, a factor and a pointer of the module; a pointer into x, and bytes as words.
/*gpuprof
operation = "weighted"
dimensions = ["n"]
default_sizes = "4096"
arguments = ["x + 1", "bytes as u32", "y", "n"]
[arrays]
weights = { shape = ["3"] }
table = { shape = ["4"] }
bytes = { shape = ["4 * n"], dtype = "u8" }
x = { shape = ["n + 2"] }
y = { shape = ["n"], role = "out" }
[scalars.a]
default = 0.5
[symbols]
w = "weights"
"inner::factor" = "a"
entries = "&table"
count = "n // 1024"
shift = 0.25
[work]
bytes = "16 * n"
[check.y]
value = """a * (weights[0] * x[:-2] + weights[1] * x[1:-1] + weights[2] * x[2:]) + 4.25
    + take(table, bytes[::4] % 4)"""
absolute = "16 * u"
[launch]
block = [128]
grid = ["cdiv(n, 128)"]
*/
#include <cstdint>
__constant__ float w[3], nobody_reads[3];
namespace inner { __device__ double factor; }
__device__ float *entries, shift;
__constant__ int64_t count;
__global__ void weighted(const float *x, const uint *words, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = inner::factor * (w[0] * x[i - 1] + w[1] * x[i] + w[2] * x[i + 1]) + count + shift
            + entries[words[i] % 4];
}
