# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Event counts of one batch: per memory instruction, per basic block, and per thread block."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TypeAlias, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools, Counts, Mask

#: What an access costs, by event: shapes (blocks or 1,).
Costs: TypeAlias = Mapping[str, Counts]
T = TypeVar("T")
#: Of how many iterations at once it is known what lanes of a warp leave over that make different numbers.
POWERS = (2, 4, 8, 16, 32)
#: Iterations that a warp makes of a loop, and what its lanes leave over.
Iterations: TypeAlias = tuple[int, ...]
#: Costs and lanes that are kept because they may come again.
_MOST_KEPT = 512


class LoopIterations:
    """Iterations of one loop of a batch, whose body is one basic block, entry by entry.

    They decide which code of an unrolled loop runs. `entries` is how often warps entered the loop and made so
    many iterations, by these: shape (blocks,). The iterations of an entry are how many its warp makes; where
    its lanes make different numbers, then for each of `POWERS` the most that a lane leaves over.
    """

    def __init__(self) -> None:
        self.entries: dict[Iterations, Counts] = defaultdict(lambda: np.zeros(1, dtype=np.int64))
        #: Turns that are not added up yet, by their lanes.
        self._turns: dict[Mask, int] = {}
        #: Iterations of each lane since it entered, an axis of 1 where all make as many.
        self._now: NDArray[np.int64] | None = None

    def turn(self, mask: Mask) -> None:
        """Count one turn of the lanes in `mask`."""
        self._turns[mask] = self._turns.get(mask, 0) + 1
        if len(self._turns) > _MOST_KEPT:
            self._add_up()

    def _add_up(self) -> None:
        for mask, times in self._turns.items():
            lanes = mask.lanes * np.int64(times)
            now = np.zeros((mask.blocks, mask.warps, 1), dtype=np.int64) if self._now is None else self._now
            self._now = now + lanes
        self._turns.clear()

    def enter(self, mask: Mask) -> None:
        """Begin anew with the warps in `mask`, which are before the loop."""
        self._add_up()
        if self._now is not None:
            self._note(self._now * mask.active_warps)
            self._now = self._now * ~mask.active_warps

    def end(self) -> None:
        """Count the turns of the last entries."""
        self._add_up()
        if self._now is not None:
            self._note(self._now)
            self._now = None

    def _note(self, turns: NDArray[np.int64]) -> None:
        made = turns.max(axis=2)
        apart = ((turns != made[..., None]) & (turns > 0)).any(axis=2)
        for count in np.flatnonzero(np.bincount(made[~apart])[1:]).tolist():
            self._add((count + 1,), ~apart & (made == count + 1))
        if apart.any():
            left = np.stack([made, *((turns % power).max(axis=2) for power in POWERS)], axis=2)
            for each in np.unique(left[apart], axis=0):
                self._add((*each.tolist(),), apart & (left == each).all(axis=2))

    def _add(self, iterations: Iterations, warps: Bools) -> None:
        self.entries[iterations] = self.entries[iterations] + warps.sum(axis=1)


def left_over(made: Iterations, factor: int) -> Iterations | None:
    """Return what is left of iterations made `factor` at once; None where that is not known of all lanes."""
    most, *left = made
    if not left or factor == 1:
        return (most % factor,)
    if factor not in POWERS:
        return None
    at = POWERS.index(factor)
    return left[at], *left[:at], *[left[at]] * (len(left) - at)


class Site(Struct, frozen=True):
    """A static instruction that is counted by itself.

    Its counters are named after its family ("global_load", "shared_store", "branch") and what is counted
    there ("requests"), unless `names` says otherwise. `ptx_line` is 0 for one that is in no text.
    """

    family: str
    line: int
    ptx_line: int = 0
    names: Mapping[str, str] = field(default_factory=dict)

    def counter(self, event: str) -> str:
        """Return the name under which an event is counted."""
        return self.names.get(event, f"{self.family}_{event}")


class Tally:
    """Counts of one batch.

    Of some loops of one basic block iterations are counted; they are given with the blocks before each.

    Attributes:
        events: For each site what was counted there, by event: shapes (blocks,).
        threads: Lanes that ran each basic block, shape (basic blocks, blocks).
        warps: Warps that ran each basic block with at least one lane, likewise.
        came: By basic block, which warps of any block ran it: shapes (warps or 1,).
        work: How often each warp ran basic blocks: shape (blocks or 1, warps or 1, 1).
        remote: The sites of accesses that went to other blocks' shared memory.
        least: Whether a card may count more: threads called `printf` or `malloc`, which access memory too,
            added to single halves, which it does by trying until nobody came between, or parted at a call
            through a pointer, behind which nothing need bring them together.
        middling: Of lines of the PTX text that divide or take roots, whether all operands yet were far from
            where machine code takes a slow way.
    """

    def __init__(
        self, sites: int, basic_blocks: int, blocks: int, loops: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        self._blocks = blocks
        self.events: list[dict[str, Counts]] = [{} for _ in range(sites)]
        self.threads: NDArray[np.int64] = np.zeros((basic_blocks, blocks), dtype=np.int64)
        self.warps: NDArray[np.int64] = np.zeros((basic_blocks, blocks), dtype=np.int64)
        self.came: dict[int, Bools] = {}
        self.work: Counts = np.zeros((1, 1, 1), dtype=np.int64)
        self.remote: set[int] = set()
        self.least = False
        self.middling: dict[int, bool] = {}
        #: By site costs, and by basic block lanes, that may come again, and how often they have come.
        self._charged: dict[tuple[int, int], tuple[Costs, int]] = {}
        self._ran: dict[tuple[int, int], tuple[Mask, int]] = {}
        self.loops = {number: LoopIterations() for number in loops or ()}
        self._after: dict[int, list[LoopIterations]] = defaultdict(list)
        for number, before in (loops or {}).items():
            for each in before:
                self._after[each].append(self.loops[number])

    def add(self, site: int, event: str, per_block: Counts) -> None:
        """Add counts of shape (blocks or 1,) to one event of one site."""
        rows = self.events[site]
        if event in rows:
            rows[event] += per_block
        else:
            rows[event] = np.zeros(self._blocks, dtype=np.int64) + per_block

    def charge(self, site: int, costs: Costs, but: Collection[str] = ()) -> None:
        """Add what an access costs, but for some events; at the end if the same object may come again."""
        if not but:
            self._again(self._charged, site, costs)
            return
        for event, per_block in costs.items():
            if event not in but:
                self.add(site, event, per_block)

    def settle(self) -> None:
        """Add what was kept because it might come again."""
        for (site, _), (costs, times) in self._charged.items():
            for event, per_block in costs.items():
                self.add(site, event, per_block * times)
        for (basic_block, _), (mask, times) in self._ran.items():
            self.threads[basic_block] += mask.thread_count * times
            self.warps[basic_block] += mask.warp_count * times
            self.work = self.work + mask.active_warps * times
            came = mask.active_warps.any(axis=(0, 2))
            self.came[basic_block] = np.asarray(came | self.came.get(basic_block, False))
        self._charged.clear()
        self._ran.clear()

    def _again(self, known: dict[tuple[int, int], tuple[T, int]], number: int, what: T) -> None:
        if len(known) > _MOST_KEPT:
            self.settle()
        _, times = known.get(key := (number, id(what)), (what, 0))
        known[key] = what, times + 1

    def ran(self, basic_block: int, mask: Mask) -> None:
        """Count one pass of the lanes in `mask` through a basic block."""
        self._again(self._ran, basic_block, mask)
        for loop in self._after.get(basic_block, ()):
            loop.enter(mask)
        if basic_block in self.loops:
            self.loops[basic_block].turn(mask)
