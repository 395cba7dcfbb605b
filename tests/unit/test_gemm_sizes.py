# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the page about GEMM at many sizes says of the committed run is what that run holds."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_line_that_the_committed_run_gives():
    table = runpy.run_path(str(ROOT / "benchmarks" / "gemm_table.py"))
    (line,) = table["page"]([ROOT / "samples" / "gemm-by-size-h200.json"]).split("\n\n")[1:2]
    assert f"\n{line.strip()}\n" in (ROOT / "docs" / "gemm-sizes.md").read_text()
    assert "of 101" in line
