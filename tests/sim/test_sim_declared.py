# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a header can say of inputs, checks and arguments, executed: one file a row."""

import pytest
from cuda_sources import kernel_file, write_kernel_file
from problem_support import measured_file


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
