# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""GEMM at many sizes: what the page says is what the committed run holds, and by_size takes what was fast."""

import csv
import math
import runpy
from pathlib import Path

from problem_support import Gemm, ladder

from gpuprof.devices.cards import load_card
from gpuprof.kernels.shape import choose

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_line_that_the_committed_run_gives():
    table = runpy.run_path(str(ROOT / "benchmarks" / "gemm_table.py"))
    (line,) = table["page"]([ROOT / "samples" / "gemm-by-size-h200.json"]).split("\n\n")[1:2]
    assert f"\n{line.strip()}\n" in (ROOT / "docs" / "gemm-sizes.md").read_text()
    assert "of 197 " in line


def test_by_size_takes_what_was_fast_with_at_most_ten_rules_a_type():
    kernels = ladder("gemm")
    choosers = [one for one in kernels if one.choices]
    types = {one.id: one.dtypes for one in kernels}
    for name, dtype, sizes, reached in (
        ("gemm-sizes-h200", "f32", 197, 1.194),
        ("gemm-sizes-f64-h200", "f64", 64, 1.041),
        ("gemm-sizes-bf16-h200", "bf16", 35, 1.072),
        ("gemm-sizes-f16-h200", "f16", 35, 1.062),
        ("gemm-sizes-tf32-h200", "tf32", 35, 1.164),
        ("gemm-sizes-e4m3-h200", "e4m3", 34, 0.994),
    ):
        (kernel,) = (one for one in choosers if any(dtype in types[other.kernel] for other in one.choices))
        assert len({choice.when for choice in kernel.choices if dtype in types[choice.kernel]}) <= 10
        factors: dict[str, dict[str, float]] = {}
        with (ROOT / "docs" / "data" / f"{name}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                factors.setdefault(row["size"], {})[row["kernel"]] = float(row["over_cublas"])
        total = 0.0
        for size, timed in factors.items():
            extents = [int(part) for part in size.split("x")]
            problem = Gemm(
                *(extents if len(extents) == 3 else 3 * extents), dtype, kernel.options.get("layout", "row")
            )
            total += math.log(timed[choose(kernel, kernels, problem, load_card(name[-4:])).id])
        assert len(factors) == sizes
        assert math.exp(total / sizes) > 0.99 * reached
