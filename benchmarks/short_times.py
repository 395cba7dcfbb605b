# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Times of short kernels beside NVBench and Nsight Compute, which reads the GPU's own clock at start and end.

    python benchmarks/short_times.py measure DIR   on a GPU, with ncu: every case several times by both
    python benchmarks/short_times.py nvbench DIR   there, with cuda-bench: every case once by NVBench
    python benchmarks/short_times.py page DIR      anywhere: how well they agree by length, in Markdown
    python benchmarks/short_times.py data DIR      anywhere: every case, as docs/data/short-times-CARD.csv

Only kernels of one launch are taken: of several, Nsight Compute does not count what lies between them.
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from nvbench_times import nvbench_times, read_nvbench

import gpuprof
from gpuprof.counters import OF_NCU
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure.case import Case
from gpuprof.ncu import invocation, read
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run

#: What is timed: operation, kernels, sizes.
WHAT = (
    ("gemm", ("naive", "smem_tiled", "reg_8x8", "by_size"), (64, 128, 256, 512, 1024)),
    ("transpose", ("copy_row", "naive_row", "smem_padded", "smem_swizzled"), (128, 256, 512, 1024, 2048)),
    ("reduce", ("read_all", "last_block"), (4096, 65536, 262144, 1048576, 4194304)),
    (
        "softmax",
        ("copy", "block_row", "online", "smem_row"),
        ((64, 256), (64, 1024), (256, 1024), 1024, 2048),
    ),
)
TIMES = 3
_NVBENCH = "nvbench.json"
_DURATION = "ncu_duration_us"
#: Microseconds at which the summary's rows begin.
_EDGES = (0.0, 3.0, 5.0, 10.0, 30.0, 100.0, float("inf"))


@dataclass
class Row:
    """One case: what each measurement of it read, in microseconds.

    Args:
        event_us: By gpuprof, cold.
        pair_us: What was taken off for the events themselves.
        ncu_us: By Nsight Compute.
        nvbench_us: By NVBench, where it was asked.
    """

    event_us: list[float] = field(default_factory=list)
    pair_us: list[float] = field(default_factory=list)
    ncu_us: list[float] = field(default_factory=list)
    nvbench_us: float | None = None

    @property
    def times(self) -> tuple[float, float, float]:
        """The medians: gpuprof's time, the same with the events' own, Nsight Compute's."""
        time = median(self.event_us)
        return time, time + median(self.pair_us), median(self.ncu_us)


def measure(folder: Path) -> None:
    """Time every case on GPU 0, and ask Nsight Compute for nothing but its duration."""
    (wanted,) = next(row.metrics for row in OF_NCU if row.name == _DURATION)
    for module in (invocation, read):
        module.requested = lambda **_: wanted  # type: ignore[attr-defined]
    folder.mkdir(parents=True, exist_ok=True)
    for turn in range(TIMES):
        for operation, kernels, sizes in WHAT:
            gpuprof.profile(
                operation,
                kernels=kernels,
                sizes=list(sizes),
                device=0,
                ncu=True,
                seconds_per_case=0.1,
                lines=False,
                references=(),
                save=folder / f"{operation}-{turn}.json",
            )


def cases() -> dict[str, Case]:
    """Every case by operation, kernel and size."""
    found = {}
    for name, kernels, sizes in WHAT:
        ladder = shipped_ladder(name)
        for kernel in map(ladder.find, kernels):
            for size in sizes:
                extents = size if isinstance(size, tuple) else (size,) * len(ladder.operation.dimensions)
                problem = Problem.of(ladder.operation, extents, options=kernel.options)
                found[f"{name} {kernel.id} {problem.label}"] = Case.of(
                    kernel, problem, alternatives=ladder.kernels if kernel.choices else ()
                )
    return found


def rows_of(folder: Path) -> dict[tuple[str, str, str], Row]:
    """Every case by operation, kernel and size."""
    rows: dict[tuple[str, str, str], Row] = defaultdict(Row)
    for path in sorted(folder.glob("*-*.json")):
        for case in read_run(path).cases:
            duration = case.counters.get(_DURATION)
            if not (case.timing and case.timing.cold and duration and duration.value):
                continue
            row = rows[case.problem.operation, case.kernel, case.problem.label]
            row.event_us.append(case.timing.cold.median_us)
            row.pair_us.append(case.event_pair_us or 0.0)
            row.ncu_us.append(float(duration.value))
    if (folder / _NVBENCH).is_file():
        for name, time in read_nvbench(folder / _NVBENCH).items():
            operation, kernel, size = name.split()
            if (operation, kernel, size) in rows:
                rows[operation, kernel, size].nvbench_us = time
    return rows


def page(folder: Path) -> list[str]:
    """How well they agree, by length."""
    rows = rows_of(folder)
    lines = [
        "| Nsight Compute | cases | off by, median | 95 % within | at most | events and all, median"
        " | NVBench, median |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for low, high in pairwise(_EDGES):
        members = [row for row in rows.values() if low <= row.times[2] < high]
        within = [row.times for row in members]
        by_nvbench = [row.nvbench_us / row.times[2] - 1 for row in members if row.nvbench_us]
        if within:
            name = f"{low:g} to {high:g} µs" if high < _EDGES[-1] else f"from {low:g} µs"
            off = sorted(abs(time / ncu - 1) for time, _, ncu in within)
            raw = sorted(abs(raw / ncu - 1) for _, raw, ncu in within)
            figures = (median(off), off[round(0.95 * (len(off) - 1))], off[-1], median(raw))
            told = [*figures, *([median(map(abs, by_nvbench))] if by_nvbench else [])]
            shown = [f"{100 * figure:.1f} %" for figure in told]
            lines.append(f"| {name} | {len(off)} | " + " | ".join([*shown, *[""] * (5 - len(shown))]) + " |")
    return lines


def data(folder: Path) -> Iterator[tuple[str, ...]]:
    """Every case, in microseconds."""
    yield ("operation", "kernel", "size", "gpuprof_us", "ncu_us", "with_events_us", "nvbench_us")
    for (operation, kernel, size), row in rows_of(folder).items():
        time, raw, ncu = row.times
        by_nvbench = "" if row.nvbench_us is None else f"{row.nvbench_us:.2f}"
        yield operation, kernel, size, f"{time:.2f}", f"{ncu:.2f}", f"{raw:.2f}", by_nvbench


def main() -> None:
    """Measure, or print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "nvbench", "page", "data"))
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.what == "measure":
        measure(given.folder)
    elif given.what == "nvbench":
        given.folder.mkdir(parents=True, exist_ok=True)
        nvbench_times(cases(), given.folder / _NVBENCH)
    elif given.what == "page":
        print("\n".join(page(given.folder)))
    else:
        csv.writer(sys.stdout, lineterminator="\n").writerows(data(given.folder))


if __name__ == "__main__":
    main()
