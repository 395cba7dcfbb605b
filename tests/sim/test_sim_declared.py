# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a header can say of inputs, checks and arguments, executed: one file a row."""

import pytest
from problem_support import measured_file

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


@pytest.mark.parametrize(
    ("source", "change", "outcome", "words"),
    [
        (COMPACTION, ("", ""), "ok", ""),
        (COMPACTION, ("x[i] > 0)", "x[i] > 1)"), "incorrect", "of y, in whatever order, are wrong: 0"),
        (COMPACTION, ("] = x[i]", "] = max(x[i], 3)"), "incorrect", "of y, in whatever order, are wrong: 3"),
        (COMPACTION, ('role = "inout" }\ncount', 'role = "out" }\ncount'), "ok", ""),
        (SPMV, ("", ""), "ok", ""),
        (SPMV, ("sum = 0", "sum = 1"), "incorrect", "ll 100 elements are wrong"),
        (ROWS, ("", ""), "ok", ""),
        (ROWS, ("i - 1, 0", "i - 2, 0"), "incorrect", "of 600 elements of y are wrong: in ascending order"),
        (
            ROWS,
            ("y[3 * i + i % 3]", "if (i != 7) y[3 * i + i % 3]"),
            "incorrect",
            "1 of 600 elements of y were",
        ),
    ],
)
def test_declared_inputs_and_checks(tmp_path, source, change, outcome, words):
    path = tmp_path / "k.cu"
    replaced = source.replace('y = "zeros"\n', "") if '"out" }\ncount' in change[1] else source
    path.write_text(replaced.replace(*change) if change[0] else replaced)
    found = measured_file(path)
    assert found.outcome == outcome, found.reason
    assert words in (found.reason or "")


def test_results_without_order_are_judged_by_the_whole_grid(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(COMPACTION)
    found = measured_file(path, blocks=4)
    assert found.outcome == "ok", found.reason
    assert found.verification.checked_elements > 1000
