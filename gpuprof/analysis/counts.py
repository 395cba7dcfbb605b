# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reading a case's counters, and the ratios that compare kernels fairly."""

from collections.abc import Mapping

from gpuprof.bounds.parts import SECTOR_BYTES, WARP_LANES
from gpuprof.counters import COUNTERS
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.results import Counter, Measurement

#: Counters without a description that are shown: each is a column, and a foreign file may have thousands.
MOST_FOREIGN = 100
#: Most that arbitration adds to the wavefronts of one kind of access, as a share of them: 13 % was seen.
ARBITRATION = 0.15

#: Every way to touch global memory, and every way to pass through shared memory.
GLOBAL_REQUESTS = (
    "global_load_requests",
    "global_store_requests",
    "async_copy_requests",
    "global_atomic_requests",
)
GLOBAL_SECTORS = (
    "global_load_sectors",
    "global_store_sectors",
    "async_copy_sectors",
    "global_atomic_sectors",
)
SHARED_PASSES = ("shared_load_wavefronts", "shared_store_wavefronts")
SHARED_WAVEFRONTS = (*SHARED_PASSES, "async_copy_shared_wavefronts")
BANK_CONFLICTS = (
    "shared_load_bank_conflicts",
    "shared_store_bank_conflicts",
    "async_copy_shared_bank_conflicts",
)


def held(case: Measurement) -> Mapping[str, Counter]:
    """A case's counters: those measured with it, and the executor's where it only annotated a GPU run."""
    measured = {name: counter for name, counter in case.counters.items() if counter.value is not None}
    return {**case.counters, **case.executor_counters, **measured}


def has_any(case: Measurement) -> bool:
    """True when any counter of a case has a value, whoever counted."""
    return any(counter.value is not None for counter in held(case).values())


def find(case: Measurement, name: str) -> Counter | None:
    """One of them, without gathering the others; None where the case has none of that name."""
    measured = case.counters.get(name)
    if measured is not None and measured.value is not None:
        return measured
    return case.executor_counters.get(name, measured)


def names_in(cases: tuple[Measurement, ...]) -> tuple[str, ...]:
    """Every counter name that occurs, known ones first, in the order shown, then some foreign ones."""
    found = {name for case in cases for name in held(case)}
    return tuple(name for name in COUNTERS if name in found) + tuple(
        sorted(found - COUNTERS.keys())[:MOST_FOREIGN]
    )


def value(case: Measurement, name: str) -> float | None:
    """A counter's value, or None where it was not measured."""
    counter = find(case, name)
    return counter.value if counter else None


def known(case: Measurement, *names: str) -> float:
    """The sum of those of several counters that were measured; 0 where none was."""
    return sum(value(case, name) or 0.0 for name in names)


def total(case: Measurement, *names: str) -> float | None:
    """The sum of several counters, or None unless at least one was measured and none is unmeasured."""
    values = [counter.value for name in names if (counter := find(case, name)) is not None]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def sector_ratio(case: Measurement) -> float | None:
    """Bytes of all sectors requested over the fewest bytes the problem can move; 1 is ideal.

    Requests are counted before the caches, so this is traffic into L1 and not into device memory.
    """
    sectors = total(case, *GLOBAL_SECTORS)
    return None if sectors is None else sectors * SECTOR_BYTES / case.problem.min_bytes


def useful_warp_steps(case: Measurement) -> float:
    """The problem's work in warp-wide steps: 32 FMAs, or without arithmetic 32 elements read and written."""
    problem = case.problem
    known = ELEMENT_TYPES.get(problem.dtype)
    moved = problem.min_bytes / (2 * (known.nbytes if known else 4))
    return (problem.flops / 2 if problem.flops else moved) / WARP_LANES


def per_step(case: Measurement, *names: str) -> float | None:
    """The sum of several counters per warp-wide step of useful work."""
    counted = total(case, *names)
    return None if counted is None else counted / useful_warp_steps(case)


def address_conflicts(case: Measurement, *kinds: str) -> float | None:
    """Bank conflicts that a kernel's addresses cause, of the accesses named: `load`, `store`.

    The hardware counts the cycles that neighbouring instructions lose to each other as bank conflicts too.
    The executor's count goes first for that reason; without it, a count that such losses alone may explain
    is None.
    """
    found = 0.0
    for kind in kinds:
        names = (f"shared_{kind}_wavefronts", f"shared_{kind}_bank_conflicts")
        ours = case.executor_counters.get(names[1])
        if ours is not None and ours.value is not None:
            found += ours.value
            continue
        wavefronts, extra = (value(case, name) for name in names)
        if wavefronts is None or extra is None:
            return None
        counted = find(case, names[1])
        if counted is not None and counted.source == "ncu" and 0 < extra <= ARBITRATION * wavefronts:
            return None
        found += extra
    return found


def sampled(case: Measurement) -> tuple[int, int] | None:
    """Blocks executed and blocks of the grid, where the counts were scaled up from a sample."""
    for counter in held(case).values():
        ran, whole = counter.sampled_blocks, counter.total_blocks
        if ran is not None and whole is not None and ran < whole:
            return ran, whole
    return None


def stalls(case: Measurement) -> tuple[tuple[str, float], ...]:
    """Where the cycles of resident warps went, in percent by the counter, the largest share first."""
    names = [name for name in case.counters if name.startswith("stall_") and name in COUNTERS]
    spent = {name: share for name in names if (share := value(case, name))}
    whole = sum(spent.values())
    return tuple(
        sorted(((name, 100 * share / whole) for name, share in spent.items()), key=lambda one: -one[1])
    )
