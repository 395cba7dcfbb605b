# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a sweep over blocks or parameters found, in one sentence: the best, what it gains, and why."""

from gpuprof.analysis import numbers
from gpuprof.analysis.changes import changed_counts
from gpuprof.analysis.groups import Group
from gpuprof.analysis.limits import limits_of, shifts
from gpuprof.analysis.models import modelled_text
from gpuprof.analysis.parameters import (
    ParameterPoint,
    ParameterSweep,
    Params,
    build_parameter_sweeps,
)
from gpuprof.analysis.speed import differ, speed_of
from gpuprof.analysis.status import status_of
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent

_MOST_NAMED = 3


def parameter_lines(run: Run, group: Group, size: str) -> tuple[str, ...]:
    """One sentence for each kernel that ran with several blocks or sets of parameters at a size."""
    return tuple(
        sweep_sentence(run, sweep) for sweep in build_parameter_sweeps(run, group) if sweep.size == size
    )


def sweep_sentence(run: Run, sweep: ParameterSweep) -> str:
    """For example `Best of 4 sets of parameters of mine: BM=64 BN=128, 2.31 ms; 1.24× as fast as …`."""
    count, best = len(sweep.points), sweep.best
    one, of = ("block", "") if sweep.is_of_blocks else ("set", "parameters of ")
    kind = f"{one if count == 1 else f'{one}s'} of {of}{sweep.kernel}"
    if not best:
        return f"None of {count} {kind} gave a figure to compare."
    first = best[0]
    assert first.value is not None
    value = sweep.figure.write(first.value)
    if len(best) == count and count > 1:
        if sweep.metric == "model_us" and first.case.model:
            return f"The model cannot tell {count} {kind} from each other: {modelled_text(first.case.model)}."
        return f"All {count} {kind} have the same {sweep.figure.phrase}: {value}."
    named = " or ".join(format_params(sweep, point) for point in best[:_MOST_NAMED])
    more = f" or {len(best) - _MOST_NAMED} more" if len(best) > _MOST_NAMED else ""
    word = "Best" if sweep.metric == "median_us" else f"{_superlative(sweep)} {sweep.figure.phrase}"
    return f"{word} of {count} {kind}: {named}{more}, {value}; {_against(run, sweep, first)}."


def format_params(sweep: ParameterSweep, point: ParameterPoint) -> str:
    """The parameters of a point that have several values, as users type them; or its block."""
    if sweep.is_of_blocks:
        return format_extent(point.case.block)
    return _typed({name: point.case.params[name] for name in sweep.names})


def _typed(params: Params) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def _superlative(sweep: ParameterSweep) -> str:
    return "Least" if sweep.figure.better == "lower" else "Most"


def _against(run: Run, sweep: ParameterSweep, best: ParameterPoint) -> str:
    """The best beside the default, or beside the worst where no default is known."""
    if any(point.is_default for point in sweep.best):
        return "that is the default" if len(sweep.best) == 1 else "the default is among them"
    if not sweep.default:
        others = [point for point in sweep.points if point.value is not None and not point.is_best]
        if not others:
            return "no other gave a figure"
        worst = max(others, key=lambda point: abs((point.value or 0.0) - (best.value or 0.0)))
        return _beside(run, sweep, best, worst, f"the worst, {format_params(sweep, worst)}")
    told = f"the default, {_typed(sweep.default)}"
    if sweep.default_point is None:
        return f"{told}, did not run"
    return _beside(run, sweep, best, sweep.default_point, told)


def _beside(run: Run, sweep: ParameterSweep, best: ParameterPoint, other: ParameterPoint, told: str) -> str:
    if other.value is None or best.value is None:
        return f"{told}, gave none: {status_of(run, other.case).word}"
    if sweep.metric != "median_us":
        return f"{told}, has {sweep.figure.write(other.value)}"
    if not differ(speed_of(run, other.case), speed_of(run, best.case)):
        return f"within the noise of {told}"
    return (
        f"{numbers.ratio(other.value / best.value)} as fast as {told}{_because(run, other.case, best.case)}"
    )


def _because(run: Run, other: Measurement, best: Measurement) -> str:
    """Which bounds and counts differ; empty where nothing was counted."""
    before, after = limits_of(run, other), limits_of(run, best)
    moved = [*shifts(before, after)] if before and after else []
    moved += [change.text for change in changed_counts(run, other, best)]
    return f": {'; '.join(moved)}" if moved else ""
