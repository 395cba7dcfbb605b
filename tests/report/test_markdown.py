# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The Markdown report: whole tables, and nothing in a text can break out of its cell."""

import re

import pytest
import snapshot
from synthetic_runs import RUNS, hostile_run

from gpuprof.report.markdown import render_markdown


@pytest.mark.parametrize("name", RUNS)
def test_snapshot(name: str) -> None:
    snapshot.check(f"markdown-{name}.md", render_markdown(RUNS[name]()))


@pytest.mark.parametrize("name", RUNS)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", render_markdown(RUNS[name]()), re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def test_the_columns_of_a_readme() -> None:
    text = render_markdown(RUNS["referenced"]())
    assert "| Kernel | Time | TFLOP/s | vs cuBLAS | % of limit | Registers | Occupancy |" in text
    assert "| Kernel | Time | GB/s | vs cuBLAS geam | % of limit | Registers | Occupancy |" in text
    assert "| **`reg_2x1`** | 9.92 ms | 13.9 | 0.267× | 20.7 | 40 | 100 % |" in text
    assert "| `numpy` (NumPy on the CPU) | 181 ms \\~ | 0.759 | 0.0146× | – | – | – |" in text


def test_a_case_without_figures_has_its_reason_below() -> None:
    text = render_markdown(RUNS["gemm"]())
    assert "| `smem_panel` | ✗ failed | – | – | – | – | – |" in text
    assert "- `smem_panel` failed: The block needs 1,048,576 bytes" in text


def test_the_kernel_that_was_chosen_stands_beside_the_one_that_chose() -> None:
    text = render_markdown(RUNS["chosen"]())
    assert "| **`by_size`** → `float4_4x4` | 4.42 ms |" in text
    assert "- `by_size` skipped: by\\_size names no kernel for this size on this device." in text


def test_hostile_strings_stay_text() -> None:
    text = render_markdown(hostile_run())
    assert "<img" not in text
    assert "&lt;img src=x" in text
