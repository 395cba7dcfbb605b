# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Add up a launch's event counts: for the whole grid by name, and for each source line."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from math import ceil

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.decode import Program
from gpuprof.executor.lanes.masks import Bools, Counts
from gpuprof.executor.lanes.tally import Iterations, Site, Tally
from gpuprof.executor.memory.coalescing import SECTOR_BYTES
from gpuprof.executor.program.flow import End
from gpuprof.executor.sampling import BlockList, Sample

Number = int | float


class CountedTotals(dict[str, Number]):
    """Event counts over the whole grid, by the counter's name; what was never counted is 0.

    Requests and tensor instructions count warps; sectors have 32 bytes; FMAs count threads; tensor operations
    are multiplications and additions; passes are those that an SM's L1 data path makes at least.
    """

    def __missing__(self, name: str) -> Number:
        return 0

    def add(self, other: Mapping[str, Number]) -> None:
        for name, value in other.items():
            self[name] += value

    def with_efficiencies(self) -> "CountedTotals":
        """Return it with what follows from it: useful bytes per byte moved, in percent, where any moved."""
        found = CountedTotals(self)
        for kind in ("load", "store"):
            if sectors := self[f"global_{kind}_sectors"]:
                useful = self[f"global_{kind}_useful_bytes"]
                found[f"global_{kind}_efficiency_pct"] = 100.0 * useful / (sectors * SECTOR_BYTES)
        return found


#: Kinds of work of which it is known what the busiest multiprocessor does: each keeps one part of it busy.
WORK = (
    "ffma_thread_instructions",
    "dfma_thread_instructions",
    "barriers",
    "l1_passes",
    "tensor_f16_operations",
    "tensor_bf16_operations",
    "tensor_tf32_operations",
    "tensor_e4m3_operations",
    "tensor_f64_operations",
    "tensor_i8_operations",
    "block_warps",
)
#: Accesses that pass through shared memory, and those that pass through the L1 cache. Asynchronous copies are
#: not among them: an H200 is up to 8 % faster than it could be if what they write there took its turn.
_SHARED = ("shared_load", "shared_store")
_GLOBAL = ("global_load", "global_store")
_ONE_PASS = ("global_atomic", "shared_atomic", "local_load", "local_store")
#: What is counted of accesses, or follows from it.
_OF_ACCESSES = ("requests", "sectors", "useful_bytes", "wavefronts", "bank_conflicts", "efficiency_pct")
#: What the L1 data path carries in one pass: 128 bytes.
_SECTORS_PER_PASS = 4


def passes(family: str, events: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float64] | None:
    """Passes that an instruction of a family takes through an SM's L1 data path at least, in each block.

    None for one that does not pass there.
    """
    requests = events.get("requests")
    if requests is None or family not in (*_SHARED, *_GLOBAL, *_ONE_PASS):
        return None
    if family in _SHARED:
        return events["wavefronts"].astype(np.float64)
    if family in _GLOBAL:
        return np.maximum(requests, events["sectors"] / _SECTORS_PER_PASS)
    return requests.astype(np.float64)


#: Different amounts of work that are told apart; with more, blocks are taken to share the work evenly.
_MOST_AMOUNTS = 4096
#: Weights of a sample are ratios: a whole number of blocks may be off by rounding.
_ROUNDING = 1e-9


class Busiest:
    """Collects how many blocks of a grid do how much of each kind of work.

    Args:
        apart: Whether what is called a block is a cluster, whose blocks run on several multiprocessors: how
            they share its work is not known, and all work counts as shared evenly.
    """

    def __init__(self, *, apart: bool = False) -> None:
        self._apart = apart
        self._blocks: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))

    def add(
        self, name: str, work: NDArray[np.int64] | NDArray[np.float64], weights: NDArray[np.float64]
    ) -> None:
        """Add some blocks.

        Each does so much `work` of a kind, and stands for so many blocks of the grid: shapes (blocks,).
        """
        known = self._blocks[name]
        first = work[0]
        if (work == first).all():
            known[float(first)] += float(weights.sum())
            return
        amounts, place = np.unique(work, return_inverse=True)
        for amount, blocks in zip(amounts, np.bincount(place, weights), strict=True):
            known[float(amount)] += float(blocks)

    def least(self, name: str, multiprocessors: int) -> float:
        """The least that the busiest multiprocessor does of one kind of work.

        Of the n blocks that do at least w each, some multiprocessor runs at least n / multiprocessors,
        rounded up (the pigeonhole principle). That holds for every w; the largest product is the answer, or
        the even share where that is more.
        """
        known = self._blocks[name]
        least = sum(amount * blocks for amount, blocks in known.items()) / multiprocessors
        if self._apart or len(known) > _MOST_AMOUNTS:
            return least
        blocks = 0.0
        for amount in sorted(known, reverse=True):
            blocks += known[amount]
            least = max(least, ceil(blocks / multiprocessors - _ROUNDING) * amount)
        return least


class Stored(Struct, frozen=True):
    """Bytes that the blocks of a sample stored to one buffer, and `each` of them."""

    by_sample: float = 0
    by_grid: float = 0
    each: tuple[int, ...] = ()

    def __add__(self, other: "Stored") -> "Stored":
        by_grid = self.by_grid + other.by_grid
        return Stored(self.by_sample + other.by_sample, by_grid, self.each + other.each)


class Totals:
    """Adds up the tallies of a launch's batches, weighted to the whole grid.

    Args:
        merged_atomics: Lines of the PTX text whose atomic operation one lane does for all of its warp.
    """

    def __init__(
        self, program: Program, sample: Sample, merged_atomics: Callable[[], Container[int]]
    ) -> None:
        self.program = program
        self._merged_atomics = merged_atomics
        self._sampled = sample.count < sample.total
        self._per_line: defaultdict[int, CountedTotals] = defaultdict(CountedTotals)
        #: Of each site what was counted there, by event.
        self.sites: list[CountedTotals] = [CountedTotals() for _ in program.sites]
        #: Warps and threads that ran each basic block, over the whole grid, each of shape (basic blocks,).
        self.block_warps, self.block_threads = np.zeros((2, len(program.blocks)))
        #: Which warps of any block ran it, by basic block: shapes (warps or 1,).
        self.came: dict[int, Bools] = {}
        #: How often lanes of a warp parted at the end of each basic block, likewise.
        self.block_parted = np.zeros(len(program.blocks))
        #: How often warps entered a loop and made so many turns in it, by its basic block and by turns.
        self.loop_iterations: dict[int, dict[Iterations, float]] = defaultdict(lambda: defaultdict(float))
        #: What the first block of each stratum counted.
        self._seen: dict[int, dict[object, int]] = {}
        self.exact = True
        #: Of a sample, what it stored to each buffer, by its name.
        self.stored: dict[str, Stored] = {}
        #: How often the warp that ran basic blocks most often did.
        self.longest = 0
        self._apart = sample.cluster != (1, 1, 1)
        self._busiest = Busiest(apart=self._apart)
        self._work: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    def add(self, tally: Tally, blocks: BlockList, stored: Mapping[str, Counts]) -> None:
        """Add the batch that ran these blocks; each `stored` so many bytes to buffers, by their names."""
        weights = blocks.weights
        for name, per_block in stored.items():
            every = Stored(float(per_block.sum()), float(per_block @ weights), (*per_block.tolist(),))
            self.stored[name] = self.stored.get(name, Stored()) + every
        work: dict[str, NDArray[np.float64]] = {name: np.zeros(len(weights)) for name in WORK}
        for number, site in enumerate(self.program.sites):
            events = tally.events[number]
            for event in events:
                name, counted = site.counter(event), events[self._told_by(event, site)]
                times = float(counted @ weights)
                self._add(site.line, name, times)
                self.sites[number][event] += times
                if name in work:
                    work[name] += counted
            passed = passes(site.family, events)
            if passed is not None:
                self._add(site.line, "l1_passes", float(passed @ weights))
                work["l1_passes"] += passed
        self.block_warps += tally.warps @ weights
        self.block_threads += tally.threads @ weights
        self.longest = max(self.longest, int(tally.work.max()))
        for number, came in tally.came.items():
            self.came[number] = came | self.came.get(number, False)
        for number, loop in tally.loops.items():
            loop.end()
            for turns, entries in loop.entries.items():
                self.loop_iterations[number][turns] += float(entries @ weights)
        for number, block in enumerate(self.program.blocks):
            if block.site >= 0 and "divergent_warps" in tally.events[block.site]:
                self.block_parted[number] += tally.events[block.site]["divergent_warps"] @ weights
            threads = tally.threads[number]
            for (family, line), times in block.fused.items():
                name = f"{family}_thread_instructions"
                self._add(line, name, float(threads @ weights * times))
                if name in work:
                    work[name] += threads * times
            if block.end is End.BARRIER:
                self._add(block.line, "barriers", float(tally.warps[number] @ weights))
                work["barriers"] += tally.warps[number]
        work["block_warps"] += tally.warps.sum(axis=0)
        for name, done in work.items():
            self._busiest.add(name, done, weights)
        if self._sampled:
            self._compare(tally, blocks.strata)
        elif not self._apart:
            self._work.append((blocks.indices, work["block_warps"]))

    def _told_by(self, event: str, site: Site) -> str:
        """Return the event that tells another: an atomic that one lane does for its warp takes one sector."""
        of_atomic = event == "sectors" and site.family == "global_atomic"
        return "requests" if of_atomic and site.ptx_line in self._merged_atomics() else event

    def busiest(self, multiprocessors: int) -> dict[str, float]:
        """Return the least that the busiest of so many multiprocessors does of each kind of work."""
        return {name: self._busiest.least(name, multiprocessors) for name in WORK}

    def block_work(self) -> NDArray[np.float64]:
        """Return what each block's warps did, in the order in which blocks begin; none if not all ran."""
        if not self._work:
            return np.zeros(0)
        indices, work = (np.concatenate(part) for part in zip(*self._work, strict=True))
        return work[np.lexsort(indices.T)]

    def _add(self, line: int, name: str, value: float) -> None:
        if value:
            self._per_line[line][name] += float(value)

    def _compare(self, tally: Tally, strata: NDArray[np.int64]) -> None:
        """Blocks of one stratum stand for each other only if every count of theirs is the same."""
        rows: dict[object, NDArray[np.int64]] = {
            (site, event): row for site, events in enumerate(tally.events) for event, row in events.items()
        }
        rows |= {("threads", number): row for number, row in enumerate(tally.threads)}
        rows |= {("warps", number): row for number, row in enumerate(tally.warps)}
        for i, stratum in enumerate(strata.tolist()):
            counts = {key: int(row[i]) for key, row in rows.items() if row[i]}
            self.exact = self.exact and counts == self._seen.setdefault(stratum, counts)

    def lines(self) -> dict[int, CountedTotals]:
        """Return the counters of each source line that has any."""
        return {
            line: CountedTotals({name: _whole(value) for name, value in values.items()}).with_efficiencies()
            for line, values in sorted(self._per_line.items())
        }

    def counters(self) -> CountedTotals:
        total = CountedTotals()
        for values in self._per_line.values():
            total.add(values)
        total = total.with_efficiencies()
        return CountedTotals({name: _whole(value) for name, value in total.items()})


def names_of(families: Iterable[str]) -> list[str]:
    """Return the counters of some families of accesses."""
    return [f"{family}_{event}" for family in sorted(families) for event in _OF_ACCESSES]


def _whole(value: float) -> Number:
    """Weights are ratios, so sums of equal counts can miss an integer by rounding only."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= 1e-9 * max(1.0, abs(value)) else value
