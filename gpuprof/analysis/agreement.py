# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor's counts beside the hardware's, and what explains each difference."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gpuprof.analysis import counts
from gpuprof.counters import COUNTERS, describe
from gpuprof.results import Counter, Measurement, Run

#: `arbitration`: cycles that neighbouring instructions lose to each other count as bank conflicts.
#: `passes`: L1's own count of sectors varies from pass to pass.
#: `least`: waiting threads poll again and again, and machine code has slow paths that the PTX does not show.
Kind = Literal["agrees", "arbitration", "passes", "predicated", "least", "incomparable", "unexplained"]

#: Nsight Compute shows two digits of a percentage.
_ROUNDING_PCT = 0.006
#: The L1 cache's own count of sectors, taken in another pass than the rest, was off by up to 0.38 %.
_PASSES = 0.005
_L1_COUNT = "l1tex__t_sectors"
#: Accesses whose wavefronts and bank conflicts explain each other.
_SHARED = ("shared_load", "shared_store")
#: The executor counts PTX branches at which lanes diverge; ptxas turns many into predicates.
_INCOMPARABLE = "branch_divergent_warps"
#: Of copies whose size is in a register, as `cp.async … 16, %size` says, Nsight Compute counts fewer in some
#: kernels, and others in a second run; the cause is not known.
_OF_PREDICATED = ("async_copy_sectors", "async_copy_shared_wavefronts")
_PREDICATED = re.compile(r"\bcp\.async\.c[ag]\.[\w.:]+\s*\[[^;\]]*\]\s*,\s*\[[^;\]]*\]\s*,\s*\d+\s*,\s*%")


@dataclass(frozen=True, slots=True)
class CounterComparison:
    """One counter of one case, counted by both, and what their difference is."""

    label: str
    executor: float
    hardware: float
    kind: Kind

    @property
    def difference_pct(self) -> float | None:
        """Hardware over executor, in percent; None where the executor counted none."""
        return 100.0 * (self.hardware - self.executor) / self.executor if self.executor else None


@dataclass(frozen=True, slots=True)
class CaseAgreement:
    """All counters of one case that both counted and that are not 0 on both sides."""

    case: Measurement
    comparisons: tuple[CounterComparison, ...]

    def of_kind(self, *kinds: Kind) -> tuple[CounterComparison, ...]:
        """The comparisons with one of these verdicts."""
        return tuple(item for item in self.comparisons if item.kind in kinds)

    @property
    def sampled(self) -> tuple[int, int] | None:
        """Blocks that the executor ran and blocks of the grid, where it did not run them all."""
        for counter in self.case.executor_counters.values():
            ran, whole = counter.sampled_blocks, counter.total_blocks
            if ran is not None and whole is not None and ran < whole:
                return ran, whole
        return None


def agreements(run: Run) -> tuple[CaseAgreement, ...]:
    """Every case that both the executor and Nsight Compute counted, in the order measured."""
    sources = {kernel.id: kernel.source or "" for kernel in run.kernels}
    found = (
        _agreement(case, _PREDICATED.search(sources.get(case.ran, "")) is not None) for case in run.cases
    )
    return tuple(item for item in found if item is not None)


def _agreement(case: Measurement, predicated: bool) -> CaseAgreement | None:
    both = _counted_twice(case)
    if not both:
        return None
    compared = [
        *(_compare(name, *pair, predicated) for name, pair in both.items() if not name.startswith(_SHARED)),
        *(item for space in _SHARED for item in _shared(space, both)),
    ]
    shown = tuple(item for item in compared if item.executor or item.hardware)
    return CaseAgreement(case, shown)


def _counted_twice(case: Measurement) -> dict[str, tuple[Counter, Counter]]:
    """Executor's and hardware's counter by name, in the order shown."""
    ours, theirs = case.executor_counters, case.counters
    return {
        name: (ours[name], theirs[name])
        for name in COUNTERS
        if name in ours
        and name in theirs
        and theirs[name].source == "ncu"
        and ours[name].value is not None
        and theirs[name].value is not None
    }


def _compare(name: str, ours: Counter, theirs: Counter, predicated: bool) -> CounterComparison:
    executor, hardware = ours.value or 0.0, theirs.value or 0.0
    kind = _judge(name, executor, hardware, theirs.metric or "")
    if kind == "unexplained" and ours.is_least and hardware > executor:
        kind = "least"
    if kind == "unexplained" and predicated and name in _OF_PREDICATED and hardware < executor:
        kind = "predicated"
    return CounterComparison(describe(name).label, executor, hardware, kind)


def _judge(name: str, executor: float, hardware: float, metric: str) -> Kind:
    if name == _INCOMPARABLE:
        return "incomparable"
    difference = abs(hardware - executor)
    if difference <= (_ROUNDING_PCT if name.endswith("_pct") else 0):
        return "agrees"
    if metric.startswith(_L1_COUNT) and difference <= _PASSES * executor:
        return "passes"
    if name == "async_copy_shared_bank_conflicts" and hardware > executor:
        return "arbitration"
    return "unexplained"


def _shared(space: str, both: dict[str, tuple[Counter, Counter]]) -> Iterator[CounterComparison]:
    """Wavefronts, bank conflicts, and what is left of the one without the other.

    What is left is decided by a kernel's addresses alone. The hardware adds cycles that neighbouring
    instructions lose to each other, and counts them among the bank conflicts.
    """
    names = (f"{space}_wavefronts", f"{space}_bank_conflicts")
    if any(name not in both for name in names):
        return
    (ours, theirs), (our_extra, their_extra) = (both[name] for name in names)
    executor, hardware = ours.value or 0.0, theirs.value or 0.0
    left = executor - (our_extra.value or 0.0), hardware - (their_extra.value or 0.0)
    surplus = (their_extra.value or 0.0) - (our_extra.value or 0.0)
    kind: Kind = "agrees"
    if left[0] != left[1] or surplus < 0 or surplus > counts.ARBITRATION * hardware:
        kind = "unexplained"
    elif surplus:
        kind = "arbitration"
    label = describe(names[0]).label
    alone: Kind = "agrees" if left[0] == left[1] else "unexplained"
    yield CounterComparison(f"{label} − bank conflicts", *left, alone)
    yield CounterComparison(label, executor, hardware, kind)
    yield CounterComparison(describe(names[1]).label, our_extra.value or 0.0, their_extra.value or 0.0, kind)
