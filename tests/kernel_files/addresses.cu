// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Rows found through an array of their addresses; what comes of them stays in variables of the module.
/*gpuprof
operation = "sums"
dimensions = ["rows", "columns"]
default_sizes = "8x512"
arguments = ["ends", "columns"]
[arrays]
x = { shape = ["rows", "columns"] }
z = { shape = ["columns"] }
total = { shape = ["1"], role = "inout" }
sums = { shape = ["rows + 1"], role = "out" }
[inputs]
x = "integers(0, 9)"
z = "integers(0, 9)"
total = "ones"
[workspace]
row = { shape = ["rows"], addresses = ["x"] }
ends = { addresses = ["row", "z"] }
[symbols]
whole = "total"
"of::each" = "sums"
[work]
bytes = "4 * rows * columns"
[check]
total = { value = "1 + sum(x)", equal = true }
sums = { value = "concatenate((sum(x, axis=1), f32(reshape(sum(z), 1))))", equal = true }
[launch]
block = [128]
grid = ["rows + 1"]
*/
__device__ float whole;
namespace of { __device__ float each[9]; }
__global__ void sums(const float *const *const *ends, int columns)
{
    const int row = blockIdx.x;
    const float *from = row < gridDim.x - 1 ? ends[0][row] : (const float *)ends[1];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += from[i];
    if (threadIdx.x == 0)
        of::each[row] = 0;
    __syncthreads();
    atomicAdd(&of::each[row], sum);
    if (row < gridDim.x - 1)
        atomicAdd(&whole, sum);
}
