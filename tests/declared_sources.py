# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels whose headers say much of inputs, checks, arguments and variables of the module."""

#: Keeps the positive numbers, in whatever order blocks come.
COMPACTION = """/*gpuprof
operation = "compaction"
dimensions = ["n"]
default_sizes = "3000"
arguments = ["x", "y", "count", "n"]
[arrays]
x = { shape = ["n"], dtype = "i32" }
y = { shape = ["n"], dtype = "i32", role = "inout" }
count = { shape = ["1"], dtype = "i32", role = "inout" }
[inputs]
x = "integers(-50, 50)"
y = "zeros"
count = "zeros"
[work]
bytes = "8 * n"
[check.parts]
positive = "x > 0"
[check.y]
value = "x[positive]"
unordered = true
[check.count]
value = "sum(positive)"
[launch]
block = [128]
grid = ["cdiv(n, 128)"]
*/
__global__ void keep(const int *x, int *y, int *count, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0)
        y[atomicAdd(count, 1)] = x[i];
}
"""
#: And where they stood, beside them.
PAIRS = (
    COMPACTION.replace('"count", "n"]', '"at", "count", "n"]')
    .replace("[inputs]", 'at = { shape = ["n"], dtype = "i32", role = "inout" }\n[inputs]\nat = "zeros"')
    .replace(
        "[check.count]",
        'together = ["at"]\n[check.at]\nvalue = "arange(n)[positive]"\nunordered = true\n'
        'together = ["y"]\n[check.count]',
    )
    .replace("int *count, int n)", "int *at, int *count, int n)")
    .replace(
        "        y[atomicAdd(count, 1)] = x[i];",
        """    {
        const int k = atomicAdd(count, 1);
        y[k] = x[i], at[k] = i;
    }""",
    )
)
#: Every row of a CSR matrix times a vector, with -inf where a row is empty.
SPMV = """/*gpuprof
operation = "spmv"
dimensions = ["rows", "columns", "nnz"]
default_sizes = "100x60x1500"
arguments = ["rows", "offsets", "indices", "values", "x", "y"]
[arrays]
offsets = { shape = ["rows + 1"], dtype = "i32" }
indices = { shape = ["nnz"], dtype = "i32" }
values = { shape = ["nnz"] }
x = { shape = ["columns"] }
y = { shape = ["rows"], role = "out" }
[inputs]
offsets = "csr_offsets(nnz)"
indices = "csr_columns(offsets, columns)"
values = "integers(-4, 5)"
x = "integers(-4, 5)"
[work]
bytes = "8 * nnz"
[check]
parts = { sums = "concatenate((zeros(1), cumsum(values * take(x, indices))))" }
y = { value = "take(sums, offsets[1:]) - take(sums, offsets[:-1])", equal = true }
[launch]
block = [64]
grid = ["cdiv(rows, 64)"]
*/
__global__ void spmv(
    int rows, const int *offsets, const int *indices, const float *values, const float *x, float *y)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i)
        sum += values[i] * x[indices[i]];
    y[row] = sum;
}
"""
#: Neighbours in one dimension, edges repeated; rows of three come in any order.
ROWS = """/*gpuprof
operation = "three"
dimensions = ["n"]
default_sizes = "200"
arguments = ["x", "y", "n"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n", "3"], role = "out" }
[inputs]
x = "sorted(0, 1)"
[work]
bytes = "16 * n"
[check.parts]
wide = "pad(x, 1, edge=True)"
three = "concatenate((reshape(wide[:-2], (n, 1)), reshape(x, (n, 1)), reshape(wide[2:], (n, 1))), axis=1)"
[check.y]
value = "three"
unordered = true
relative = "u"
[launch]
block = [64]
grid = ["cdiv(n, 64)"]
*/
__global__ void three(const float *x, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    y[3 * i + i % 3] = x[i];
    y[3 * i + (i + 1) % 3] = x[max(i - 1, 0)];
    y[3 * i + (i + 2) % 3] = x[min(i + 1, n - 1)];
}
"""

#: Weights in constant memory, a factor and a pointer of the module; a pointer into x, and bytes as words.
SYMBOLS = """/*gpuprof
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
[work]
bytes = "16 * n"
[check.y]
value = \"\"\"a * (weights[0] * x[:-2] + weights[1] * x[1:-1] + weights[2] * x[2:]) + 4
    + take(table, bytes[::4] % 4)\"\"\"
absolute = "16 * u"
[launch]
block = [128]
grid = ["cdiv(n, 128)"]
*/
#include <cstdint>
__constant__ float w[3];
namespace inner { __device__ double factor; }
__device__ float *entries;
__constant__ int64_t count;
__global__ void weighted(const float *x, const uint *words, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = inner::factor * (w[0] * x[i - 1] + w[1] * x[i] + w[2] * x[i + 1]) + count
            + entries[words[i] % 4];
}
"""

#: Rows found through an array of their addresses; what comes of them stays in variables of the module.
ADDRESSES = """/*gpuprof
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
"""

#: Structs by value: an image of OpenCV, a tensor's accessor, a vector; and the name of a function of CUDA's.
STRUCTS = """/*gpuprof
operation = "image"
dimensions = ["h", "w"]
default_sizes = "20x48"
arguments = ["{src, 3 * w as u64, w, h}", "{y, h, w, w, 1}", "{fx, fy, one}", "h"]
[arrays]
src = { shape = ["h", "w", "3"], dtype = "u8" }
y = { shape = ["h", "w"], role = "out" }
[scalars]
fx = { default = 0.5 }
fy = { default = 0.25 }
one = { default = 1.0 }
[work]
bytes = "7 * h * w"
[check]
y = { value = "fx * src[:, :, 0] + fy * src[:, :, 1] + one * src[:, :, 2]", relative = "4 * u" }
[launch]
block = [32, 4]
grid = ["cdiv(w, 32)", "cdiv(h, 4)"]
*/
#include <opencv2/core/cuda_types.hpp>
#include <torch/extension.h>
struct Place { int row, column; };
__global__ void norm(const cv::cuda::PtrStepSz<uchar3> src,
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> y, float3 f, int h)
{
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    Place at = {.row = i, .column = j};
    if (at.row >= src.rows || at.column >= src.cols)
        return;
    uchar3 pixel = src(at.row, at.column);
    y[at.row][at.column] = f.x * pixel.x + f.y * pixel.y + f.z * pixel.z;
}
"""
