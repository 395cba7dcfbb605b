# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far GEMMs of a results file are off a float64 reference, and how fast: FP32 from TF32 beside cuBLAS.

    gpuprof gemm -k streamk,tf32x3_mma,tf32x3 --sizes 1024,2048,4096,8192 --json RUN.json      on a GPU
    python benchmarks/gemm_errors.py RUN.json                                                  anywhere

The largest error of any element of C, as it is, and as a share of its |A||B| in unit roundoffs of the type of
sums; beside it what the check allows.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from gpuprof.problems.dtypes import ELEMENT_TYPES, SUM, of_run
from gpuprof.reading import read_run
from gpuprof.results import Measurement, Run


def rows(run: Run) -> Iterator[str]:
    """Lines of a Markdown table, the cases in the file's order."""
    yield "| size | kernel | largest error | of \\|A\\|\\|B\\|, in u | allowed | TFLOP/s | |"
    yield "|---|---|---|---|---|---|---|"
    for case in run.cases:
        verification, timing = case.verification, case.timing
        if (
            verification is None
            or verification.max_rel_error is None
            or timing is None
            or timing.cold is None
        ):
            continue
        u = ELEMENT_TYPES[of_run(SUM, case.problem.dtype)].roundoff
        errors = f"{verification.max_abs_error:.2g} | {verification.max_rel_error / u:.2g}"
        rate = f"{case.problem.flops / timing.cold.median_us / 1e6:.3g}"
        cells = (case.problem.label, f"`{case.kernel}`", errors, f"{verification.bound / u:.0f}", rate)
        yield f"| {' | '.join(cells)} | {_over_library(run, case)} |"


def _over_library(run: Run, case: Measurement) -> str:
    """How much faster than the library a case is; empty for the library, and without one."""
    for other in run.cases:
        beside = other.kernel.startswith("cublas") and other.problem.sizes == case.problem.sizes
        if beside and other is not case and case.timing and other.timing:
            one, library = case.timing.cold, other.timing.cold
            return f"{library.median_us / one.median_us:.2f}x" if one and library else ""
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    print("\n".join(rows(read_run(parser.parse_args().results))))
