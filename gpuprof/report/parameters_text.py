# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a sweep over parameters found, in one sentence: the best set, and what it gains over the default."""

from gpuprof.analysis import numbers
from gpuprof.analysis.groups import Group
from gpuprof.analysis.parameters import (
    ParameterSweep,
    Params,
    Point,
    build_parameter_sweeps,
    is_clear_gain,
)
from gpuprof.analysis.status import status_of
from gpuprof.results import Run

_MOST_NAMED = 3


def parameter_lines(run: Run, group: Group, size: str) -> tuple[str, ...]:
    """One sentence for each kernel that ran with several sets of parameters at a size."""
    return tuple(
        sweep_sentence(run, sweep) for sweep in build_parameter_sweeps(run, group) if sweep.size == size
    )


def sweep_sentence(run: Run, sweep: ParameterSweep) -> str:
    """For example `Best of 4 sets of parameters of mine: BM=64 BN=128, 2.31 ms; 1.24× as fast as …`."""
    count, best = len(sweep.points), sweep.best
    kind = f"of parameters of {sweep.kernel}"
    of = f"of {count} {'set' if count == 1 else 'sets'} {kind}"
    if not best:
        return f"None {of} gave a figure to compare."
    first = best[0]
    assert first.value is not None
    value = sweep.figure.write(first.value)
    if len(best) == count and count > 1:
        return f"All {count} sets {kind} have the same {sweep.figure.phrase}: {value}."
    named = " or ".join(format_params(sweep, point) for point in best[:_MOST_NAMED])
    more = f" or {len(best) - _MOST_NAMED} more" if len(best) > _MOST_NAMED else ""
    word = "Best" if sweep.metric == "median_us" else f"{_superlative(sweep)} {sweep.figure.phrase}"
    return f"{word} {of}: {named}{more}, {value}; {_against_default(run, sweep, first)}."


def format_params(sweep: ParameterSweep, point: Point) -> str:
    """The parameters of a point that have several values, as users type them."""
    return _typed({name: point.case.params[name] for name in sweep.names})


def _typed(params: Params) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def _superlative(sweep: ParameterSweep) -> str:
    return "Least" if sweep.figure.better == "lower" else "Most"


def _against_default(run: Run, sweep: ParameterSweep, best: Point) -> str:
    default, told = sweep.default_point, _typed(sweep.default)
    if any(point.is_default for point in sweep.best):
        return "that is the default" if len(sweep.best) == 1 else "the default is among them"
    if not sweep.default:
        return "what its default is, this file does not say"
    if default is None:
        return f"the default, {told}, did not run"
    if default.value is None or best.value is None:
        return f"the default, {told}, gave none: {status_of(run, default.case).word}"
    if sweep.metric != "median_us":
        return f"the default, {told}, has {sweep.figure.write(default.value)}"
    if not is_clear_gain(run, best.case, default.case):
        return f"within the noise of the default, {told}"
    return f"{numbers.ratio(default.value / best.value)} as fast as the default, {told}"
