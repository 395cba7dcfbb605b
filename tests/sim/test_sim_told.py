# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a row says of a kernel that breaks a rule in shared memory, or accesses an array at a wrong place."""

import pytest
from problem_support import measured_file

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
