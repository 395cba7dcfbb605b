# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is told of kernels that are wrong, in any order, and what headers say of inputs and checks."""

import re
from pathlib import Path

import pytest
from cuda_sources import either, kernel_file, kernel_table, line_of, write_kernel_file
from problem_support import measured_file

from gpuprof.executor import Order

TOLD = kernel_table(Path(__file__).parent / "told.cu")


@pytest.mark.parametrize("name", TOLD)
def test_array_lines_and_missing_barrier_are_named(tmp_path, name):
    text = TOLD[name].text
    path = tmp_path / "k.cu"
    path.write_text(text)
    found = measured_file(path)
    assert found.outcome == "failed", found.reason
    first = line_of(text, "other[t % 4] = 1;") + 1
    for words in TOLD[name].told["words"]:
        named = re.sub(r"\{(\d+)\}", lambda number: str(first + int(number[1])), words)
        assert named in found.reason.replace(path.name, "")


KERNELS = kernel_table(Path(__file__).parent / "orders.cu")
#: Those that depend on the order, each with a right twin; and those that look as if they did.
PAIRS = {name: row for name, row in KERNELS.items() if row.told["meets"]}


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


@pytest.mark.parametrize("name", names(KERNELS))
def test_where_the_order_does_not_matter_it_is_right(name, tmp_path):
    case = measured(tmp_path, KERNELS[name])
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


def test_what_may_hold_anything_has_any_shape(tmp_path):
    path = write_kernel_file(tmp_path, "compaction", 'value = "x[positive]"', 'value = "zeros(0)"')
    path.write_text(path.read_text().replace('y = { shape = ["n"]', 'y = { shape = ["2", "n // 2"]'))
    found = measured_file(path)
    assert found.outcome == "ok", found.reason


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
