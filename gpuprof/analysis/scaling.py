# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How each kernel's rate grows with the problem's size."""

from dataclasses import dataclass

from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Rung, build_ladder
from gpuprof.analysis.speed import rate, rate_at
from gpuprof.results import Run

#: Lines that one chart shows at once without becoming a thicket.
_MANY = 8


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One kernel at one size: its rate, and the rates at the 95th and 5th percentile of its time."""

    size: str
    edge: float
    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """One kernel over the sizes at which it has a speed.

    Of many kernels the references and the best of each study at the largest size are drawn from the start.
    """

    kernel: str
    is_reference: bool
    points: tuple[ScalingPoint, ...]
    is_shown: bool = True


def build_scaling(run: Run, group: Group) -> tuple[Series, ...]:
    """One series per kernel, in ladder order; empty when the group has a single size or no speeds."""
    if len(group.sizes) < 2:
        return ()
    found: dict[str, list[tuple[Rung, ScalingPoint]]] = {}
    for size in group.sizes:
        for rung in build_ladder(run, size).rungs:
            if rung.speed is not None:
                timing, problem, flops = rung.speed.timing, rung.case.problem, group.rate_is_flops
                point = ScalingPoint(
                    size=size.label,
                    edge=problem.edge,
                    rate=rate(rung.speed, flops),
                    low=rate_at(problem, timing.p95_us, flops),
                    high=rate_at(problem, timing.p05_us, flops),
                )
                found.setdefault(rung.kernel.id, []).append((rung, point))
    best = _best_of_each_study(found) if len(found) > _MANY else None
    series = [
        (
            held[0][0].is_reference,
            held[0][0].kernel.rung,
            Series(
                kernel,
                held[0][0].is_reference,
                tuple(point for _, point in held),
                is_shown=best is None or held[0][0].is_reference or kernel in best,
            ),
        )
        for kernel, held in found.items()
    ]
    return tuple(item for _, _, item in sorted(series, key=lambda entry: entry[:2]))


def _best_of_each_study(found: dict[str, list[tuple[Rung, ScalingPoint]]]) -> set[str]:
    """The kernel of each study with the highest rate at the largest size that it ran at."""
    best: dict[str, tuple[float, float, str]] = {}
    for kernel, held in found.items():
        rung, point = held[-1]
        if not rung.is_reference:
            score = (point.edge, point.rate, kernel)
            best[rung.kernel.study] = max(score, best.get(rung.kernel.study, score))
    return {kernel for _, _, kernel in best.values()}
