# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A sweep over launch shapes as a matrix: one kernel at one size, block.x across and block.y down."""

from dataclasses import dataclass

from gpuprof.analysis.figure import Subject
from gpuprof.analysis.figures import FIGURES
from gpuprof.analysis.groups import Group, SizeSlice
from gpuprof.results import Measurement, Run


@dataclass(frozen=True, slots=True)
class Cell:
    """One block of a sweep.

    Args:
        case: The best case with that block, over tile parameters.
        value: The figure that colours it, None where the case has none.
        is_best: No other block of the sweep is better.
    """

    case: Measurement
    value: float | None
    is_best: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """All blocks of one kernel at one size.

    Args:
        kernel: The kernel's id.
        size: The size's label.
        metric: Key of the figure that is compared.
        xs: block.x values, ascending.
        ys: block.y values, ascending.
        cells: Rows by `ys`, columns by `xs`; None where no such block was asked for.
    """

    kernel: str
    size: str
    metric: str
    xs: tuple[int, ...]
    ys: tuple[int, ...]
    cells: tuple[tuple[Cell | None, ...], ...]

    @property
    def all_cells(self) -> tuple[Cell, ...]:
        """Every block that ran, row by row."""
        return tuple(cell for row in self.cells for cell in row if cell is not None)

    @property
    def lower_is_better(self) -> bool:
        """True for a cost, such as traffic."""
        return FIGURES[self.metric].better == "lower"


def build_sweeps(run: Run, group: Group) -> tuple[Sweep, ...]:
    """Every kernel and size of a group that ran with more than one block."""
    sweeps = []
    for size in group.sizes:
        for kernel in dict.fromkeys(case.kernel for case in size.cases):
            sweep = _sweep(run, group, size, kernel)
            if sweep is not None:
                sweeps.append(sweep)
    return tuple(sweeps)


def _sweep(run: Run, group: Group, size: SizeSlice, kernel: str) -> Sweep | None:
    cases = [case for case in size.cases if case.kernel == kernel]
    blocks = {(case.block[0], case.block[1]) for case in cases}
    if len(blocks) < 2 or _follow_from_parameters(cases):
        return None
    metric = _metric(run, group)
    sign = -1.0 if FIGURES[metric].better == "lower" else 1.0
    best: dict[tuple[int, int], tuple[float, Measurement]] = {}
    for case in cases:
        value = _value(run, case, metric)
        score = float("-inf") if value is None else sign * value
        key = (case.block[0], case.block[1])
        if key not in best or score > best[key][0]:
            best[key] = (score, case)
    top = max(score for score, _ in best.values())
    xs, ys = sorted({x for x, _ in blocks}), sorted({y for _, y in blocks})

    def cell(x: int, y: int) -> Cell | None:
        if (x, y) not in best:
            return None
        score, case = best[x, y]
        value = _value(run, case, metric)
        return Cell(case, value, is_best=value is not None and score == top)

    return Sweep(
        kernel, size.label, metric, tuple(xs), tuple(ys), tuple(tuple(cell(x, y) for x in xs) for y in ys)
    )


def _follow_from_parameters(cases: list[Measurement]) -> bool:
    """Whether each set of parameters ran with one block only: then the parameters are what was swept."""
    sets = {tuple(case.params.items()): case.block for case in cases}
    return len(sets) > 1 and all(sets[tuple(case.params.items())] == case.block for case in cases)


def _metric(run: Run, group: Group) -> str:
    if run.backend == "gpu":
        return "gflops" if group.rate_is_flops else "gbps"
    return "sector_ratio" if run.backend == "sim" else "theoretical_occupancy_pct"


def _value(run: Run, case: Measurement, metric: str) -> float | None:
    if metric == "sector_ratio" and case.outcome != "ok":
        return None
    return FIGURES[metric].value(Subject(run, case))
