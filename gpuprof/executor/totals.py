# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Add up a launch's event counts: for the whole grid by name, and for each source line."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.busiest import Busiest
from gpuprof.executor.decode import Program
from gpuprof.executor.lanes.tally import Event, Site, Tally
from gpuprof.executor.memory.coalescing import SECTOR_BYTES
from gpuprof.executor.program.flow import End
from gpuprof.executor.sampling import BlockList, Sample

Number = int | float


@dataclass
class LineCounters:
    """Event counts of one source line, over the whole grid.

    Requests and tensor instructions count warps; sectors have 32 bytes; FMAs count threads; tensor operations
    are multiplications and additions; passes are those that an SM's L1 data path makes at least.
    """

    global_load_requests: Number = 0
    global_load_sectors: Number = 0
    global_load_useful_bytes: Number = 0
    global_store_requests: Number = 0
    global_store_sectors: Number = 0
    global_store_useful_bytes: Number = 0
    shared_load_requests: Number = 0
    shared_load_wavefronts: Number = 0
    shared_load_bank_conflicts: Number = 0
    shared_store_requests: Number = 0
    shared_store_wavefronts: Number = 0
    shared_store_bank_conflicts: Number = 0
    async_copy_requests: Number = 0
    async_copy_sectors: Number = 0
    async_copy_useful_bytes: Number = 0
    async_copy_shared_wavefronts: Number = 0
    async_copy_shared_bank_conflicts: Number = 0
    global_atomic_requests: Number = 0
    global_atomic_sectors: Number = 0
    shared_atomic_requests: Number = 0
    local_load_requests: Number = 0
    local_store_requests: Number = 0
    l1_passes: Number = 0
    ffma_thread_instructions: Number = 0
    dfma_thread_instructions: Number = 0
    hmma_instructions: Number = 0
    imma_instructions: Number = 0
    dmma_instructions: Number = 0
    tensor_f16_operations: Number = 0
    tensor_bf16_operations: Number = 0
    tensor_tf32_operations: Number = 0
    tensor_f64_operations: Number = 0
    tensor_i8_operations: Number = 0
    barriers: Number = 0
    branch_divergent_warps: Number = 0

    def __add__(self, other: "LineCounters") -> "LineCounters":
        return LineCounters(**{name: getattr(self, name) + getattr(other, name) for name in COUNTED})

    @property
    def global_load_efficiency_pct(self) -> float | None:
        """Useful bytes as a share of the bytes that loads moved; None without loads."""
        return efficiency(self.global_load_useful_bytes, self.global_load_sectors)

    @property
    def global_store_efficiency_pct(self) -> float | None:
        """Useful bytes as a share of the bytes that stores moved; None without stores."""
        return efficiency(self.global_store_useful_bytes, self.global_store_sectors)


COUNTED = tuple(field.name for field in fields(LineCounters))

#: Which events of each family are shown, and under which name.
_NAMES: dict[str, dict[Event, str]] = {
    **{
        f"global_{kind}": {
            Event.REQUESTS: f"global_{kind}_requests",
            Event.SECTORS: f"global_{kind}_sectors",
            Event.USEFUL_BYTES: f"global_{kind}_useful_bytes",
        }
        for kind in ("load", "store")
    },
    **{
        f"shared_{kind}": {
            Event.REQUESTS: f"shared_{kind}_requests",
            Event.WAVEFRONTS: f"shared_{kind}_wavefronts",
            Event.CONFLICTS: f"shared_{kind}_bank_conflicts",
        }
        for kind in ("load", "store")
    },
    "async_copy": {
        Event.REQUESTS: "async_copy_requests",
        Event.SECTORS: "async_copy_sectors",
        Event.USEFUL_BYTES: "async_copy_useful_bytes",
    },
    "async_copy_shared": {
        Event.WAVEFRONTS: "async_copy_shared_wavefronts",
        Event.CONFLICTS: "async_copy_shared_bank_conflicts",
    },
    "global_atomic": {Event.REQUESTS: "global_atomic_requests", Event.SECTORS: "global_atomic_sectors"},
    "shared_atomic": {Event.REQUESTS: "shared_atomic_requests"},
    "local_load": {Event.REQUESTS: "local_load_requests"},
    "local_store": {Event.REQUESTS: "local_store_requests"},
    "ffma": {Event.THREADS: "ffma_thread_instructions"},
    "dfma": {Event.THREADS: "dfma_thread_instructions"},
    **{
        f"tensor_{kind}": {
            Event.REQUESTS: f"{pipe}_instructions",
            Event.OPERATIONS: f"tensor_{kind}_operations",
        }
        for kind, pipe in (
            *((kind, "hmma") for kind in ("f16", "bf16", "tf32")),
            ("f64", "dmma"),
            ("i8", "imma"),
        )
    },
    **{
        f"sparse_{kind}": {Event.REQUESTS: f"{pipe}_instructions"}
        for kind, pipe in (("f16", "hmma"), ("bf16", "hmma"), ("tf32", "hmma"), ("i8", "imma"))
    },
    **{
        f"wgmma_{kind}": {Event.OPERATIONS: f"tensor_{kind}_operations"}
        for kind in ("f16", "bf16", "tf32", "i8")
    },
    "branch": {Event.DIVERGED: "branch_divergent_warps"},
}


#: Kinds of work of which it is known what the busiest multiprocessor does: each keeps one part of it busy.
WORK = (
    "ffma_thread_instructions",
    "dfma_thread_instructions",
    "barriers",
    "l1_passes",
    "tensor_f16_operations",
    "tensor_bf16_operations",
    "tensor_tf32_operations",
    "tensor_f64_operations",
    "tensor_i8_operations",
)
#: Accesses that pass through shared memory, and those that pass through the L1 cache. Asynchronous copies are
#: not among them: an H200 is up to 8 % faster than it could be if what they write there took its turn.
_SHARED = ("shared_load", "shared_store")
_GLOBAL = ("global_load", "global_store")
_ONE_PASS = ("global_atomic", "shared_atomic", "local_load", "local_store")
#: What the L1 data path carries in one pass: 128 bytes.
_SECTORS_PER_PASS = 4


def passes(family: str, events: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Passes that one instruction takes through an SM's L1 data path at least, in each block.

    Args:
        family: Of the instruction's site.
        events: What was counted for it, shape (events, blocks).

    Returns:
        None for an instruction that does not pass there.
    """
    counted = events.astype(np.float64)
    requests: NDArray[np.float64] = counted[Event.REQUESTS]
    if family in _SHARED:
        requests = counted[Event.WAVEFRONTS]
    elif family in _GLOBAL:
        requests = np.maximum(requests, counted[Event.SECTORS] / _SECTORS_PER_PASS)
    elif family not in _ONE_PASS:
        return None
    return requests


def efficiency(useful_bytes: Number, sectors: Number) -> float | None:
    """Return useful bytes per byte moved, in percent; None when nothing was moved."""
    return 100.0 * useful_bytes / (sectors * SECTOR_BYTES) if sectors else None


def efficiencies(counters: Mapping[str, Number | None]) -> dict[str, float | None]:
    """Return the efficiencies that follow from counters by name."""
    return {
        f"global_{kind}_efficiency_pct": efficiency(
            counters[f"global_{kind}_useful_bytes"] or 0, counters[f"global_{kind}_sectors"] or 0
        )
        for kind in ("load", "store")
    }


class Totals:
    """Adds up the tallies of a launch's batches, weighted to the whole grid.

    Args:
        program: What ran.
        sample: The blocks that run.
        merged_atomics: Lines of the PTX text whose atomic operation one lane does for all of its warp.
    """

    def __init__(self, program: Program, sample: Sample, merged_atomics: Collection[int] = ()) -> None:
        self.program = program
        self._merged_atomics = merged_atomics
        self._sampled = sample.count < sample.total
        self._per_line: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        #: Warps and threads that ran each basic block, over the whole grid, each of shape (basic blocks,).
        self.block_warps, self.block_threads = np.zeros((2, len(program.blocks)))
        #: How often lanes of a warp parted at the end of each basic block, likewise.
        self.block_parted = np.zeros(len(program.blocks))
        #: How often warps entered a loop and made so many turns in it, by its basic block and by turns.
        self.loop_turns: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        #: What the first block of each stratum counted.
        self._seen: dict[int, NDArray[np.int64]] = {}
        self.exact = True
        self._busiest = Busiest(apart=sample.cluster != (1, 1, 1))

    def add(self, tally: Tally, blocks: BlockList) -> None:
        """Add the batch that ran these blocks."""
        weights = blocks.weights
        work: dict[str, NDArray[np.float64]] = {name: np.zeros(len(weights)) for name in WORK}
        for number, site in enumerate(self.program.sites):
            for event, name in _NAMES.get(site.family, {}).items():
                counted = tally.events[number, self._told_by(event, site)]
                self._add(site.line, name, counted @ weights)
                if name in work:
                    work[name] += counted
            passed = passes(site.family, tally.events[number])
            if passed is not None:
                self._add(site.line, "l1_passes", float(passed @ weights))
                work["l1_passes"] += passed
        self.block_warps += tally.warps @ weights
        self.block_threads += tally.threads @ weights
        for number, loop in tally.loops.items():
            loop.end()
            for turns, entries in loop.entries.items():
                self.loop_turns[number][turns] += float(entries @ weights)
        for number, block in enumerate(self.program.blocks):
            if block.site >= 0:
                self.block_parted[number] += tally.events[block.site, Event.DIVERGED] @ weights
            threads = tally.threads[number]
            for (family, line), times in block.fused.items():
                name = _NAMES[family][Event.THREADS]
                self._add(line, name, float(threads @ weights * times))
                if name in work:
                    work[name] += threads * times
            if block.end is End.BARRIER:
                self._add(block.line, "barriers", tally.warps[number] @ weights)
                work["barriers"] += tally.warps[number]
        for name, done in work.items():
            self._busiest.add(name, done, weights)
        if self._sampled:
            self._compare(tally, blocks.strata)

    def _told_by(self, event: Event, site: Site) -> Event:
        """Return the event that tells another: an atomic that one lane does for its warp takes one sector."""
        if (
            event is Event.SECTORS
            and site.family == "global_atomic"
            and site.ptx_line in self._merged_atomics
        ):
            return Event.REQUESTS
        return event

    def busiest(self, multiprocessors: int) -> dict[str, float]:
        """Return the least that the busiest of so many multiprocessors does of each kind of work."""
        return {name: self._busiest.least(name, multiprocessors) for name in WORK}

    def _add(self, line: int, name: str, value: float) -> None:
        if value:
            self._per_line[line][name] += float(value)

    def _compare(self, tally: Tally, strata: NDArray[np.int64]) -> None:
        """Blocks of one stratum stand for each other only if every count of theirs is the same."""
        counts = np.concatenate([tally.events.reshape(-1, len(strata)), tally.threads, tally.warps])
        for i, stratum in enumerate(strata):
            expected = self._seen.setdefault(int(stratum), counts[:, i].copy())
            self.exact = self.exact and np.array_equal(expected, counts[:, i])

    def lines(self) -> dict[int, LineCounters]:
        """Return the counters of each source line that has any."""
        return {
            line: LineCounters(**{name: _whole(value) for name, value in values.items()})
            for line, values in sorted(self._per_line.items())
        }

    @staticmethod
    def names_of(families: Iterable[str]) -> list[str]:
        """Return the counters of some families of accesses, efficiencies included."""
        names = [name for family in sorted(families) for name in _NAMES.get(family, {}).values()]
        return names + [f"{family}_efficiency_pct" for family in sorted(families) if "global" in family]

    def counters(self) -> dict[str, Number | None]:
        """Return the counters of the whole grid by name, with the two efficiencies."""
        total = LineCounters()
        for values in self._per_line.values():
            for name, value in values.items():
                setattr(total, name, getattr(total, name) + value)
        exact: dict[str, Number | None] = {name: getattr(total, name) for name in COUNTED}
        result: dict[str, Number | None] = {name: _whole(getattr(total, name)) for name in COUNTED}
        return result | efficiencies(exact)


def _whole(value: float) -> Number:
    """Weights are ratios, so sums of equal counts can miss an integer by rounding only."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= 1e-9 * max(1.0, abs(value)) else value
