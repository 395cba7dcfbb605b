# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Counters that executor and hardware count differently, without a known reason."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuprof.analysis import counts
from gpuprof.counters import COUNTERS, describe
from gpuprof.results import Counter, Measurement, Run

#: Nsight Compute shows two digits of a percentage.
_ROUNDING_PCT = 0.006
#: The L1 cache's own count of sectors, taken in another pass than the rest, was off by up to 0.38 %.
_PASSES = 0.005
_L1_COUNT = "l1tex__t_sectors"
#: Accesses whose wavefronts and bank conflicts explain each other.
_SHARED = ("shared_load", "shared_store")
#: Operations of the largest product that `mma.sync` makes in one instruction: `wgmma`, whose operands lie in
#: shared memory, makes several times as many.
_MMA_OPERATIONS = 2 * 16 * 8 * 16
#: The executor counts PTX branches at which lanes diverge; ptxas turns many into predicates.
_INCOMPARABLE = "branch_divergent_warps"
#: Of copies whose size is in a register, as `cp.async … 16, %size` says, Nsight Compute counts fewer in some
#: kernels, and others in a second run; the cause is not known.
_OF_PREDICATED = ("async_copy_sectors", "async_copy_shared_wavefronts")
_COPY = re.compile(r"\bcp\.async\.c[ag]\.")
_PREDICATED = re.compile(r"\bcp\.async\.c[ag]\.[\w.:]+\s*\[[^;\]]*\]\s*,\s*\[[^;\]]*\]\s*,\s*\d+\s*,\s*%")


@dataclass(frozen=True, slots=True)
class CounterDifference:
    """One counter of one case that executor and hardware count differently, without a known reason."""

    case: Measurement
    label: str
    executor: float
    hardware: float

    @property
    def pct(self) -> float | None:
        """Hardware over executor, in percent; None where the executor counted none."""
        return 100.0 * (self.hardware - self.executor) / self.executor if self.executor else None


def differences(run: Run) -> tuple[CounterDifference, ...]:
    """Every difference that is not explained, in the order measured."""
    sources = {kernel.id: kernel.source or "" for kernel in run.kernels}
    return tuple(found for case in run.cases for found in _of_case(case, sources.get(case.ran, "")))


def _of_case(case: Measurement, source: str) -> Iterator[CounterDifference]:
    both = _counted_twice(case)
    instructions = case.executor_counters.get("warp_instructions")
    waits = instructions is not None and instructions.has_waits
    for name, (ours, theirs) in both.items():
        if name.startswith(_SHARED) or _is_explained(name, ours, theirs, waits=waits):
            continue
        executor, hardware = ours.value or 0.0, theirs.value or 0.0
        fewer = name in _OF_PREDICATED and hardware < executor
        # Of code in files that it includes nothing is recorded.
        if not (fewer and (_PREDICATED.search(source) or not _COPY.search(source))):
            yield CounterDifference(case, describe(name).label, executor, hardware)
    for space in _SHARED:
        names = (f"{space}_wavefronts", f"{space}_bank_conflicts")
        late = space == "shared_load" and _multiplies_from_shared(case.executor_counters)
        if all(name in both for name in names) and not _explain_each_other(
            *(both[name] for name in names), late=late
        ):
            for name in names:
                ours, theirs = both[name]
                yield CounterDifference(case, describe(name).label, ours.value or 0.0, theirs.value or 0.0)


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


def _is_explained(name: str, ours: Counter, theirs: Counter, *, waits: bool) -> bool:
    """Whether two counts agree, or differ by what is known to tell them apart."""
    executor, hardware = ours.value or 0.0, theirs.value or 0.0
    difference = abs(hardware - executor)
    if name == _INCOMPARABLE or difference <= (_ROUNDING_PCT if name.endswith("_pct") else 0):
        return True
    if (theirs.metric or "").startswith(_L1_COUNT) and difference <= _PASSES * executor:
        return True
    # Neighbouring instructions lose cycles to each other, which count as conflicts; waiting threads poll
    # again and again, and machine code has slow paths that the PTX does not show.
    polls = ours.is_least or (waits and name.startswith("pipe_"))
    return hardware > executor and (polls or name == "async_copy_shared_bank_conflicts")


def _multiplies_from_shared(counters: Mapping[str, Counter]) -> bool:
    """Whether a kernel's products read shared memory themselves, as those of `wgmma` do."""
    of_kinds = (counters.get(f"tensor_{kind}_operations") for kind in ("f16", "bf16", "tf32", "e4m3"))
    operations = sum(one.value or 0 for one in of_kinds if one is not None)
    instructions = counters["hmma_instructions"].value if "hmma_instructions" in counters else None
    return operations > _MMA_OPERATIONS * (instructions or 0)


def _explain_each_other(
    wavefronts: tuple[Counter, Counter], conflicts: tuple[Counter, Counter], *, late: bool
) -> bool:
    """Whether wavefronts and bank conflicts differ only by what the hardware adds.

    What is left of the one without the other is decided by a kernel's addresses alone. The hardware adds
    cycles that neighbouring instructions lose to each other, and counts them among the bank conflicts. Those
    that loads are `late` by, as tensor cores read shared memory, it counts as wavefronts alone: an H200
    counted 5,523 for 4,096 loads without a conflict beside 1,024 `wgmma`, and 4,096 without them.
    """
    (executor, hardware), (ours, theirs) = (
        tuple(counter.value or 0.0 for counter in pair) for pair in (wavefronts, conflicts)
    )
    surplus = theirs - ours
    if late and hardware - theirs >= executor - ours and surplus >= 0:
        return True
    return executor - ours == hardware - theirs and 0 <= surplus <= counts.ARBITRATION * hardware
