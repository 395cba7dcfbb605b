# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is told of kernels that are wrong, in any order, and what headers say of inputs and checks."""

import re
from pathlib import Path

import pytest
from cuda_sources import either, kernel_file, kernel_table, write_kernel_file
from problem_support import measured_file

from gpuprof.executor import Order

HEADER = """/*gpuprof
operation = "flipped"
dimensions = ["n"]
default_sizes = "1024"
arguments = ["x", "y", "SIZE"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "8 * n"
[check]
y = { value = "flip(x)", equal = true }
[launch]
block = [128]
grid = ["n // 128"]
*/
#include <cuda_pipeline.h>
__global__ void k(const float *x, float *y, int n)
{
    __shared__ float other[4], tile[132];
    const int t = threadIdx.x, at = blockIdx.x * 128 + t;
    other[t % 4] = 1;
"""


def reason(tmp_path, body, size="n"):
    path = tmp_path / "k.cu"
    path.write_text(HEADER.replace("SIZE", size) + body + "\n}\n")
    found = measured_file(path)
    assert found.outcome == "failed", found.reason
    return found.reason.replace(f"{path.name}", "")


FIRST = HEADER.count("\n") + 1
SECOND = FIRST + 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "tile[t] = x[n - 1 - at];\ny[at] = tile[t ^ 32] * other[0];",
            (
                f"line {FIRST + 1}: ",
                ", which thread (32, 0, 0) wrote since the last barrier: byte 128 of `tile`",
                f"`tile`, written in line {FIRST}, and a barrier is missing between lines {FIRST} and"
                f" {SECOND}",
            ),
        ),
        (
            "tile[t] = x[n - 1 - at];\nfloat v = tile[t];\ny[at] = tile[t ^ 32] * v * other[0];",
            (f"line {FIRST + 2}: ", f"`tile`, written in line {FIRST}, and"),
        ),
        (
            "for (int i = 0; i < 2; ++i) {\ntile[t] = x[n - 1 - (at ^ 32)];\n__syncthreads();\n"
            "y[at] = tile[t ^ 32] * other[0];\n}",
            (
                f"line {FIRST + 1}: ",
                f"byte 0 of `tile`, read in line {FIRST + 3}, and a barrier is missing behind line"
                f" {FIRST + 3},"
                f" before line {FIRST + 1} runs next",
            ),
        ),
        (
            "__shared__ float kept;\nif (t == 0) {\n__threadfence_block();\nkept = x[0];\n}\n"
            "y[at] = kept * other[0];",
            (" reads in line", f"a barrier is missing between lines {FIRST + 3} and {FIRST + 5} ("),
        ),
        (
            "__shared__ float kept;\nfor (int i = 0; i < 4; ++i) {\nif (t == 0) {\n__threadfence_block();\n"
            "kept = x[i];\n}\ny[at] = kept * other[0];\n__syncthreads();\n}",
            (" reads in line", f"a barrier is missing between lines {FIRST + 4} and {FIRST + 6} ("),
        ),
        (
            "tile[7] = t;\n__syncthreads();\ny[at] = tile[7] * other[0];",
            (
                f"line {FIRST}: ",
                ": element 7 of `tile`, written in line",
                "and two threads write it in that line",
            ),
        ),
        (
            "tile[t] = x[t];\n__syncthreads();\ntile[t] += tile[(t + 1) % 128];\n__syncthreads();\n"
            "y[at] = tile[t] * other[0];",
            (
                f"`tile`, read in line {FIRST + 2}, and written there by another thread: a barrier is missing"
                " between the two, or one atomic operation must do both",
            ),
        ),
        (
            "tile[t] = x[t];\n__syncthreads();\nfor (int step = 64; step > 0; step /= 2)\n"
            "if (t < step) tile[t] += tile[t + step];\n__syncthreads();\ny[at] = tile[0] * other[0];",
            (
                f"`tile`, written in line {FIRST + 3}, and read there by another thread: a barrier is missing"
                " between the two (",
            ),
        ),
        (
            "volatile float *twice = tile;\ntwice[t] = x[t];\n__syncthreads();\n"
            "tile[t] += tile[(t + 1) % 128];\n__syncthreads();\ny[at] = tile[t] * other[0];",
            (
                f" reads in line {FIRST + 3}, and nothing orders them: byte ",
                " of `tile`, a barrier is missing between the two, or one",
            ),
        ),
        (
            "if (t < 64) tile[t] = x[t];\n__syncthreads();\nfloat v = tile[t] * other[0];\n"
            "for (int i = 0; i < 4; ++i)\n"
            "v = v * v + i;\ny[at] = v;",
            (
                f"line {FIRST + 2}: thread (64, 0, 0)",
                "of shared memory, which was never written: byte 256 of `tile`;",
                f"; line {FIRST + 5} stores to y a value that depends on it",
            ),
        ),
        (
            "tile[t] = x[t];\n__syncthreads();\nconst float4 four = *(float4 *)(tile + t);\n"
            "y[at] = (four.x + four.y + four.z + four.w) * other[0];",
            (f"line {FIRST + 2}: thread (1, 0, 0)", "accesses 16 bytes at byte 4 of `tile`, which is not a"),
        ),
        (
            "auto put = [&](int i) {\ny[i] = x[n - 1 - at] + other[t % 4];\n};\nput(at + n);\nput(at);",
            (
                f"line {FIRST + 1}: ",
                f"; line {FIRST + 1} is of a function called in line {FIRST + 3} or {FIRST + 4}",
            ),
        ),
        (
            "*(float2 *)(y + 1 + t) = *(const float2 *)(x + 1 + t);",
            (f"line {FIRST}: ", "accesses 8 bytes at byte 4 of x, which is not a multiple of 8"),
        ),
        (
            "y[at] = 0;\n__pipeline_memcpy_async(tile + t, x + at, 2);",
            (
                f"line {SECOND}: ",
                "executes a trap, in line ",
                " of cuda_pipeline_primitives.h; -D _CUDA_PIPE",
            ),
        ),
        (
            "atomicAdd(y + n - 1 - at, 1);\nif (y[at] < 2) other[1] = 2;\ny[0] = other[1];",
            (
                f"line {SECOND}: ",
                "nothing orders them: benign only if either value will do; then read it as vol",
            ),
        ),
    ],
)
def test_array_lines_and_missing_barrier_are_named(tmp_path, body, words):
    told = reason(tmp_path, body)
    for part in words:
        assert part in told


def test_a_size_that_no_int_holds_is_called_an_overflow(tmp_path):
    told = reason(tmp_path, "y[at] = x[n - 1 - at];", "n * n * 2048")
    assert "`int n`, a 4-byte integer, and 2147483648 is an overflow: the largest int is 2147483647" in told


KERNELS = kernel_table(Path(__file__).parent / "orders.cu")
#: Those that depend on the order, each with a right twin; and those that look as if they did.
PAIRS = {name: row for name, row in KERNELS.items() if row.told["meets"]}
RIGHT = {name: row for name, row in KERNELS.items() if not row.told["meets"]}


def names(kernels):
    """The first quickly, and all others where there is time."""
    first, *others = kernels
    return [first, *(pytest.param(name, marks=pytest.mark.deep) for name in others)]


def measured(tmp_path, kernel, *, right=True):
    path = tmp_path / "k.cu"
    path.write_text(either(kernel.text, first=not right))
    return measured_file(path, str(kernel.told["n"]))


@pytest.mark.parametrize("name", names(PAIRS))
def test_what_depends_on_the_order_is_told_with_an_element_and_both_lines(name, tmp_path):
    case = measured(tmp_path, PAIRS[name], right=False)
    assert case.outcome == "failed", case.reason
    lines = either(PAIRS[name].text, first=True).splitlines()
    ends = tuple(f"// {comment}" for comment in PAIRS[name].told["meets"])
    meeting = {number for number, line in enumerate(lines, 1) if line.endswith(ends)}
    explanation = case.explanation
    found = re.search(r" in line (\d+), and nothing orders the two: y\[\d+\] is ", explanation.text)
    assert found, explanation.text
    assert {explanation.line, int(found[1])} == meeting, explanation.text
    assert (explanation.cause, explanation.array) == ("race", "y")


@pytest.mark.parametrize("name", names(PAIRS))
def test_its_twin_is_right(name, tmp_path):
    case = measured(tmp_path, PAIRS[name])
    assert case.outcome == "ok", case.reason


@pytest.mark.parametrize("name", names(RIGHT))
def test_who_comes_first_does_not_matter(name, tmp_path):
    case = measured(tmp_path, RIGHT[name])
    assert case.outcome == "ok", case.reason


@pytest.mark.parametrize(
    ("source", "change", "outcome", "words"),
    [
        ("compaction", ("", ""), "ok", ""),
        ("compaction", ("x[i] > 0)", "x[i] > 1)"), "incorrect", "of y, in whatever order, are wrong: 0"),
        (
            "compaction",
            ("] = x[i]", "] = max(x[i], 3)"),
            "incorrect",
            "of y, in whatever order, are wrong: 3",
        ),
        ("compaction", ('role = "inout" }\ncount', 'role = "out" }\ncount'), "ok", ""),
        ("pairs", ("", ""), "ok", ""),
        ("pairs", ("at[k] = i", "at[k] = x[i ^ 1] > 0 ? i ^ 1 : i"), "incorrect", "what stands beside them"),
        ("spmv", ("", ""), "ok", ""),
        ("spmv", ("sum = 0", "sum = 1"), "incorrect", "ll 100 elements are wrong"),
        ("three", ("", ""), "ok", ""),
        ("symbols", ("", ""), "ok", ""),
        ("symbols", ("w[1] * x[i]", "w[1] * x[i - 1]"), "incorrect", "elements"),
        (
            "symbols",
            ('\nw = "weights"', ""),
            "incorrect",
            "Nobody sets w (line 33): what the host copies there is",
        ),
        ("symbols", ("w[3]", "w[2]"), "failed", "symbol w cannot be set: weights has 12 bytes, and w 8"),
        ("symbols", ('x + 1"', 'x + n + 2"'), "failed", "an array of 4098 elements, which has none at 4098"),
        (
            "symbols",
            ("bytes as u32", "bytes as u64"),
            "failed",
            "*words`, a pointer, and bytes is an array of",
        ),
        ("symbols", ("int64_t count", "float count"), "ok", ""),
        ("symbols", ('"n // 1024"', "0.5"), "failed", "0.5 is no integer, and count is no float or double"),
        ("symbols", ("count =", "nothing ="), "failed", "sets nothing, and k.cu has no such variable"),
        ("addresses", ("", ""), "ok", ""),
        ("addresses", ("ends[0][row]", "ends[0][row / 2]"), "incorrect", "elements of sums"),
        ("addresses", ("if (threadIdx.x == 0)", "if (threadIdx.x == 0 && row)"), "incorrect", "sums[0]"),
        ("addresses", ("each[9]", "each[10]"), "failed", "sums has 36 bytes, and of::each 40"),
        (
            "addresses",
            ('["rows"], addr', '["rows + 1"], addr'),
            "skipped",
            "no addresses of equal parts of x",
        ),
        ("structs", ("", ""), "ok", ""),
        ("structs", ("fx, fy, one}", "fx as f32, fy, one as f32}"), "ok", ""),
        ("structs", ("fx, fy, one}", "fx as f64, fy, one}"), "failed", "fy, one} is a struct of 16 bytes"),
        ("structs", ("fy, one}", "one, fy}"), "incorrect", "960 elements"),
        ("structs", ("w as u64, w, h}", "w as u64}"), "failed", "w as u64} is a struct of 16 bytes"),
        ("structs", ('"{fx, fy, one}", "h"', '"h", "{fx, fy, one}"'), "failed", "of 12 bytes, and h is"),
        (
            "three",
            ("i - 1, 0", "i - 2, 0"),
            "incorrect",
            "of 600 elements of y are wrong: in ascending order",
        ),
        ("three", ("y[3 * i + i % 3]", "if (i != 7) y[3 * i + i % 3]"), "incorrect", "1 of 600 elements"),
    ],
)
def test_declared_inputs_and_checks(tmp_path, source, change, outcome, words):
    text = kernel_file(source, *change)
    path = tmp_path / "k.cu"
    path.write_text(text.replace('y = "zeros"\n', "") if '"out" }\ncount' in change[1] else text)
    found = measured_file(path)
    assert found.outcome == outcome, found.reason
    assert words in (found.reason or "")


def test_results_without_order_are_judged_by_the_whole_grid(tmp_path):
    found = measured_file(write_kernel_file(tmp_path, "compaction"), blocks=4)
    assert found.outcome == "ok", found.reason
    assert found.verification.checked_elements > 1000


def test_in_one_order_blocks_come_one_after_the_other_and_what_it_shows_is_shown_again():
    order = Order(0, times=1.0, left=3196)
    blocks, warps_parts = order.divided(20, 1, 160)
    assert blocks > 1
    assert warps_parts == 1
    order.left, order.taken = 1467, 1590
    assert order.again().left == 3057
