# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel files that take more than one launch, whole, for tests on the executor and on a GPU."""

from pathlib import Path

#: A sum in two launches: each block leaves one partial sum, and one block adds those up.
TWO_PASS_SUM = """/*gpuprof
title = "Sum, then the sum of the sums"
operation = "total"
dimensions = ["n"]
default_sizes = "1000"
[arrays]
x = { shape = ["n"] }
y = { shape = ["1"], role = "out" }
[work]
flops = "n"
bytes = "n * real_bytes"
[check]
y = { value = "sum(x)", magnitude = "sum(abs(x))", relative = "8 * sqrt(n) * u" }

[parameters]
THREADS = 128

[workspace.partial]
shape = ["cdiv(n, 2 * THREADS)"]

[[launches]]
entry = "block_sums"
arguments = ["n", "x", "partial"]
block = ["THREADS"]
grid = ["cdiv(n, 2 * block_x)"]
dynamic_shared_bytes = "THREADS * real_bytes"

[[launches]]
entry = "block_sums"
arguments = ["cdiv(n, 2 * THREADS)", "partial", "y"]
block = ["THREADS"]
grid = ["1"]
dynamic_shared_bytes = "THREADS * real_bytes"

[[require]]
condition = "n <= 4 * THREADS * THREADS"
because = "the second launch has one block"
*/
extern "C" __global__ void block_sums(int n, const real *in, real *out)
{
    extern __shared__ real tile[];
    const int first = blockIdx.x * 2 * THREADS + threadIdx.x;
    real sum = first < n ? in[first] : 0;
    if (first + THREADS < n)
        sum += in[first + THREADS];
    tile[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = tile[0];
}
"""

#: Two functions of one module: the first leaves what the second needs in a variable of the module.
THROUGH_A_VARIABLE = """/*gpuprof
title = "Scaled by its first element"
operation = "scaled"
dimensions = ["n"]
default_sizes = "256"
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = { value = "x * x[0]", relative = "2 * u" }

[[launches]]
entry = "take_first"
arguments = ["x"]
block = [1]
grid = ["1"]

[[launches]]
entry = "scale"
arguments = ["n", "x", "y"]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
__device__ real first;

extern "C" __global__ void take_first(const real *x)
{
    first = x[0];
}

extern "C" __global__ void scale(int n, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = first * x[i];
}
"""


def write_two_pass_sum(directory: Path, *, old: str = "", new: str = "", name: str = "sums") -> Path:
    """The sum's file, with one text in it replaced."""
    assert old in TWO_PASS_SUM
    path = directory / f"{name}.cu"
    path.write_text(TWO_PASS_SUM.replace(old, new) if old else TWO_PASS_SUM)
    return path
