# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a header can say of inputs, checks and arguments, executed: one file a row."""

import pytest
from declared_sources import ADDRESSES, COMPACTION, PAIRS, ROWS, SPMV, STRUCTS, SYMBOLS
from problem_support import measured_file


@pytest.mark.parametrize(
    ("source", "change", "outcome", "words"),
    [
        (COMPACTION, ("", ""), "ok", ""),
        (COMPACTION, ("x[i] > 0)", "x[i] > 1)"), "incorrect", "of y, in whatever order, are wrong: 0"),
        (COMPACTION, ("] = x[i]", "] = max(x[i], 3)"), "incorrect", "of y, in whatever order, are wrong: 3"),
        (COMPACTION, ('role = "inout" }\ncount', 'role = "out" }\ncount'), "ok", ""),
        (PAIRS, ("", ""), "ok", ""),
        (
            PAIRS,
            ("at[k] = i", "at[k] = x[i ^ 1] > 0 ? i ^ 1 : i"),
            "incorrect",
            "what stands beside them",
        ),
        (SPMV, ("", ""), "ok", ""),
        (SPMV, ("sum = 0", "sum = 1"), "incorrect", "ll 100 elements are wrong"),
        (ROWS, ("", ""), "ok", ""),
        (SYMBOLS, ("", ""), "ok", ""),
        (SYMBOLS, ("w[1] * x[i]", "w[1] * x[i - 1]"), "incorrect", "elements"),
        (SYMBOLS, ("w[3]", "w[2]"), "failed", "symbol w cannot be set: weights has 12 bytes, and w 8"),
        (SYMBOLS, ('x + 1"', 'x + n + 2"'), "failed", "an array of 4098 elements, which has none at 4098"),
        (
            SYMBOLS,
            ("bytes as u32", "bytes as u64"),
            "failed",
            "uint *words`, a pointer, and bytes is an array of",
        ),
        (SYMBOLS, ("count =", "nothing ="), "failed", "sets nothing, and k.cu has no such variable"),
        (ADDRESSES, ("", ""), "ok", ""),
        (ADDRESSES, ("ends[0][row]", "ends[0][row / 2]"), "incorrect", "elements of sums"),
        (ADDRESSES, ("if (threadIdx.x == 0)", "if (threadIdx.x == 0 && row)"), "incorrect", "sums[0]"),
        (ADDRESSES, ("each[9]", "each[10]"), "failed", "sums has 36 bytes, and of::each 40"),
        (ADDRESSES, ('["rows"], addr', '["rows + 1"], addr'), "skipped", "no addresses of equal parts of x"),
        (STRUCTS, ("", ""), "ok", ""),
        (STRUCTS, ("fy, one}", "one, fy}"), "incorrect", "960 elements"),
        (STRUCTS, ("w as u64, w, h}", "w as u64}"), "failed", "w as u64} is a struct of 16 bytes"),
        (
            STRUCTS,
            ('"{fx, fy, one}", "h"', '"h", "{fx, fy, one}"'),
            "failed",
            "a struct of 12 bytes, and h is",
        ),
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
