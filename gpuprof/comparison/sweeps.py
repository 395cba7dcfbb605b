# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Of several points of a kernel who is best, and who cannot be told apart from the best."""

from collections.abc import Mapping
from typing import TypeVar

from gpuprof.analysis.groups import Group, kernel_record
from gpuprof.analysis.kinds import is_reference
from gpuprof.analysis.models import too_near
from gpuprof.analysis.tuned import (
    TunedRow,
    TunedSize,
    basis_of,
    ranked,
    value_of,
    values_of,
)
from gpuprof.comparison.judging import judge, times_of
from gpuprof.results import By, Measurement, Run

Key = TypeVar("Key")

#: Bounds within this share are one: counts of a sample of blocks are no closer.
_ALIKE_BOUNDS = 1e-3


def tied(cases: Mapping[Key, Measurement], by: By) -> list[Key]:
    """The best of some cases, then those that cannot be told apart from it by what decides.

    By times those are it that are not slower for certain, by their rounds.
    """
    values = {key: value for key, case in cases.items() if (value := value_of(case, by)) is not None}
    order = sorted(values, key=lambda key: values[key])
    if not order:
        return []
    best = cases[order[0]]

    def is_near(key: Key) -> bool:
        if by == "time":
            return judge(times_of(best), times_of(cases[key])).verdict != "regressed"
        if by == "model" and best.model and (other := cases[key].model):
            return too_near(best.model, other)
        return values[key] <= values[order[0]] * (1 + _ALIKE_BOUNDS)

    return [order[0], *(key for key in order[1:] if is_near(key))]


def swept(run: Run, group: Group) -> tuple[tuple[str, TunedSize], ...]:
    """Every kernel of a group that ran at a size with several blocks or sets of parameters."""
    found = []
    for size in group.sizes if run.backend != "none" else ():
        for kernel in dict.fromkeys(case.kernel for case in size.cases):
            cases = [case for case in size.cases if case.kernel == kernel]
            if not is_reference(run, cases[0]) and not any(case.chosen for case in cases):
                found += [(kernel, points)] if (points := _points(run, size.heading, cases)) else []
    return tuple(found)


def _points(run: Run, label: str, cases: list[Measurement]) -> TunedSize | None:
    sets = {tuple(case.params.items()): case.block for case in cases}
    names = [name for name in cases[0].params if len({case.params.get(name) for case in cases}) > 1]
    # A block that follows from parameters tells nothing that they do not.
    with_block = any(sets[tuple(case.params.items())] != case.block for case in cases)
    if not names and not with_block:
        return None
    by: By = "time" if run.backend == "gpu" else basis_of(cases)
    ties, default = tied(dict(enumerate(cases)), by), dict(kernel_record(run, cases[0].kernel).parameters)
    return ranked(
        label,
        by,
        [
            TunedRow(
                case,
                values_of(case, names, with_block=with_block),
                value_of(case, by),
                number in ties,
                bool(default) and not with_block and dict(case.params) == default,
            )
            for number, case in enumerate(cases)
        ],
    )
