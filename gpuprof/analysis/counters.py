# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The counters of the results contract in plain words, and the ratios that compare kernels fairly."""

from dataclasses import dataclass
from typing import Literal

from gpuprof.results import Counter, Measurement

#: Bytes of one sector, the unit in which L1, L2 and device memory exchange data.
SECTOR_BYTES = 32
WARP_LANES = 32

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """One counter for the reader.

    Args:
        label: Full name.
        short: Name for a narrow column and for sentences.
        better: Which direction is good for the same work.
        meaning: One sentence.
    """

    label: str
    short: str
    better: Better
    meaning: str


#: In the order shown.
COUNTERS: dict[str, CounterInfo] = {
    "global_load_requests": CounterInfo(
        "Global load requests", "load requests", "lower", "Warp-level load instructions sent to memory."
    ),
    "global_load_sectors": CounterInfo(
        "Global load sectors", "load sectors", "lower", "32-byte sectors that those requests touched."
    ),
    "global_load_efficiency_pct": CounterInfo(
        "Global load efficiency",
        "load efficiency",
        "higher",
        "Distinct bytes that lanes used, as a share of the bytes of the sectors touched.",
    ),
    "global_load_throughput_gbps": CounterInfo(
        "Global load throughput",
        "load throughput",
        "neither",
        "Bytes per second served to loads, mostly by the caches; it is not device-memory traffic.",
    ),
    "global_store_requests": CounterInfo(
        "Global store requests", "store requests", "lower", "Warp-level store instructions sent to memory."
    ),
    "global_store_sectors": CounterInfo(
        "Global store sectors", "store sectors", "lower", "32-byte sectors that those requests touched."
    ),
    "global_store_efficiency_pct": CounterInfo(
        "Global store efficiency",
        "store efficiency",
        "higher",
        "Distinct bytes that lanes wrote, as a share of the bytes of the sectors touched.",
    ),
    "global_store_throughput_gbps": CounterInfo(
        "Global store throughput", "store throughput", "neither", "Bytes per second that stores sent."
    ),
    "shared_load_wavefronts": CounterInfo(
        "Shared load wavefronts",
        "shared load wavefronts",
        "lower",
        "Passes through shared memory that loads took.",
    ),
    "shared_store_wavefronts": CounterInfo(
        "Shared store wavefronts",
        "shared store wavefronts",
        "lower",
        "Passes through shared memory that stores took.",
    ),
    "shared_load_bank_conflicts": CounterInfo(
        "Shared load bank conflicts",
        "load bank conflicts",
        "lower",
        "Extra passes because lanes of a warp wanted different words of one bank.",
    ),
    "shared_store_bank_conflicts": CounterInfo(
        "Shared store bank conflicts",
        "store bank conflicts",
        "lower",
        "Extra passes because lanes of a warp wrote different words of one bank.",
    ),
    "ffma_thread_instructions": CounterInfo(
        "FFMA thread-instructions",
        "FFMAs",
        "neither",
        "Fused multiply-adds over all threads; each is two floating-point operations.",
    ),
    "barriers": CounterInfo("Barriers", "barriers", "lower", "Times a warp reached a block-wide barrier."),
    "branch_divergent_warps": CounterInfo(
        "Divergent branches", "divergent branches", "lower", "Branches at which lanes of one warp parted."
    ),
}


def info(name: str) -> CounterInfo:
    """What is known of a counter; a foreign one is shown by its own name."""
    return COUNTERS.get(name) or CounterInfo(
        name, name, "neither", "A counter that gpuprof does not describe."
    )


def names_in(cases: tuple[Measurement, ...]) -> tuple[str, ...]:
    """Every counter name that occurs, known ones first and in the order shown."""
    found = {name for case in cases for name in case.counters}
    return tuple(name for name in COUNTERS if name in found) + tuple(sorted(found - COUNTERS.keys()))


def value(case: Measurement, name: str) -> float | None:
    """A counter's value, or None where it was not measured."""
    counter: Counter | None = case.counters.get(name)
    return counter.value if counter else None


def total(case: Measurement, *names: str) -> float | None:
    """The sum of several counters, or None unless at least one was measured and none is unmeasured."""
    held = [case.counters[name].value for name in names if name in case.counters]
    known = [item for item in held if item is not None]
    return sum(known) if known and len(known) == len(held) else None


def global_sectors(case: Measurement) -> float | None:
    """Sectors of global loads and stores together."""
    return total(case, "global_load_sectors", "global_store_sectors")


def sector_ratio(case: Measurement) -> float | None:
    """Bytes of all sectors requested over the fewest bytes the problem can move; 1 is ideal.

    Requests are counted before the caches, so this is traffic into L1 and not into device memory.
    """
    sectors = global_sectors(case)
    return None if sectors is None else sectors * SECTOR_BYTES / case.problem.min_bytes


def useful_warp_steps(case: Measurement) -> float:
    """The problem's work in warp-wide steps: 32 FMAs for a GEMM, 32 moved elements for a transpose."""
    problem = case.problem
    return (problem.flops / 2 if problem.flops else problem.arrays[-1].elements) / WARP_LANES


def shared_wavefronts_per_step(case: Measurement) -> float | None:
    """Shared-memory passes per warp-wide step of useful work."""
    wavefronts = total(case, "shared_load_wavefronts", "shared_store_wavefronts")
    return None if wavefronts is None else wavefronts / useful_warp_steps(case)


def bank_conflicts(case: Measurement) -> float | None:
    """Extra shared-memory passes of loads and stores together."""
    return total(case, "shared_load_bank_conflicts", "shared_store_bank_conflicts")


def bank_conflicts_per_step(case: Measurement) -> float | None:
    """Extra shared-memory passes per warp-wide step of useful work."""
    conflicts = bank_conflicts(case)
    return None if conflicts is None else conflicts / useful_warp_steps(case)


def conflict_share_pct(case: Measurement) -> float | None:
    """Bank conflicts as a share of all shared-memory passes; None without shared accesses."""
    conflicts = bank_conflicts(case)
    wavefronts = total(case, "shared_load_wavefronts", "shared_store_wavefronts")
    return 100.0 * conflicts / wavefronts if conflicts is not None and wavefronts else None


def sampled(case: Measurement) -> tuple[int, int] | None:
    """Blocks executed and blocks of the grid, where the counts were scaled up from a sample."""
    for counter in case.counters.values():
        ran, whole = counter.sampled_blocks, counter.total_blocks
        if ran is not None and whole is not None and ran < whole:
            return ran, whole
    return None
