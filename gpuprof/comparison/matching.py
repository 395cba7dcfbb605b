# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which case of one run belongs to which of another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuprof.comparison.surroundings import differences
from gpuprof.errors import InputError
from gpuprof.results import Measurement, Run
from gpuprof.statistics import with_round
from gpuprof.text import format_extent

Key = tuple[Any, ...]
KeyOf = Callable[[Run, Measurement], Key]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cases that are compared, or one alone; and in words what block or parameter differs."""

    base: Measurement | None
    new: Measurement | None
    moved: tuple[str, ...] = ()


def match(base: Run, new: Run) -> list[Pair]:
    """Pair the cases of two runs: those of the new run in its order, then those that only the base has.

    Cases belong together that agree in operation, sizes, element type, scalars, options, kernel, parameters,
    block and, in a run on several devices, the device: of several cards of one name the first belongs to the
    first. A kernel of which each run has just one case at a
    problem is paired too: then its block or its parameters were changed.
    """
    several = max(len(run.devices) for run in (base, new)) > 1

    def problem(run: Run, case: Measurement) -> Key:
        key = (case.problem.key, case.kernel)
        name = run.devices[case.device].name
        place = sum(other.name == name for other in run.devices[: case.device])
        return (*key, name, place) if several else key

    def whole(run: Run, case: Measurement) -> Key:
        launch = case.block if case.has_launch and not case.chosen else None
        params = None if case.chosen else tuple(sorted(case.params.items()))
        return (*problem(run, case), launch, params)

    olds = _by_key(base, whole)
    # What occurs twice is paired first with first.
    of_new = {
        index: old
        for key, indices in _by_key(new, whole).items()
        for old, index in zip(olds.get(key, ()), indices, strict=False)
    }
    moved: dict[int, tuple[str, ...]] = {}
    olds = _by_key(base, problem)
    for key, indices in _by_key(new, problem).items():
        candidates = olds.get(key, [])
        if len(indices) == len(candidates) == 1 and indices[0] not in of_new:
            of_new[indices[0]] = candidates[0]
            moved[indices[0]] = _moved(base.cases[candidates[0]], new.cases[indices[0]])
    pairs = [
        Pair(base.cases[of_new[index]] if index in of_new else None, case, moved.get(index, ()))
        for index, case in enumerate(new.cases)
    ]
    used = set(of_new.values())
    return [*pairs, *(Pair(case, None) for index, case in enumerate(base.cases) if index not in used)]


def _by_key(run: Run, key: KeyOf) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for index, case in enumerate(run.cases):
        found.setdefault(key(run, case), []).append(index)
    return found


def _moved(base: Measurement, new: Measurement) -> tuple[str, ...]:
    """What tells a case from another of the same kernel and problem."""
    moved = []
    if base.block != new.block:
        moved.append(f"block {format_extent(base.block)} → {format_extent(new.block)}")
    for name in dict.fromkeys((*base.params, *new.params)):
        old, now = base.params.get(name), new.params.get(name)
        if old != now:
            moved.append(f"{name} {'–' if old is None else old} → {'–' if now is None else now}")
    return tuple(moved)


def pooled(runs: Sequence[Run], name: str) -> Run:
    """One run with the rounds of several; a case that one of them lacks, or that failed in one, shows it.

    The first of them gives everything but times.

    Raises:
        InputError: They are of different code, or of devices or clocks that must not be compared.
    """
    first, *others = runs
    cases = list(first.cases)
    places = {id(case): index for index, case in enumerate(first.cases)}
    for other in others:
        misleading = [difference for difference in differences(first, other) if difference.misleads]
        if misleading:
            raise InputError(
                f"The results files in {name} are not rounds of one run: {misleading[0].text}.",
                fix="Keep files of one device and one way to measure in a folder.",
            )
        for pair in match(first, other):
            if pair.base is None or pair.new is None or pair.moved:
                continue
            if pair.base.source_hash != pair.new.source_hash:
                raise InputError(
                    f"The results files in {name} are not rounds of one run: the source of {pair.new.kernel}"
                    " differs.",
                    fix="Keep files of one version of the kernels in a folder.",
                )
            index = places[id(pair.base)]
            cases[index] = with_round(cases[index], pair.new, first.devices[cases[index].device])
    return replace(first, cases=tuple(cases), complete=all(run.complete for run in runs))
