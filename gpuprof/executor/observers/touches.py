# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An access to shared memory spread over threads and granules: who touches which bytes."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.memory.accesses import Access, Entry, Signal
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern

# Who touched a granule in the current interval, as one integer: 0 nobody; 1 … 16384 that thread of the
# cluster, plus one; the following stand for several threads of one warp, ordered by __syncwarp or not, and of
# several warps.
ORDERED = 20_000
UNORDERED = 30_000
SEVERAL_WARPS = -1
_WARPS = 10_000

Owners = NDArray[np.int32]
T = TypeVar("T", bound=np.generic)

#: A granule that an access touches: its row among the access's threads, and its place in that thread's bytes.
Hit = tuple[int, int]


def warp_of(owner: Owners) -> Owners:
    """Return the warp of each owner that is a thread, or threads of one warp."""
    return np.where(owner >= ORDERED, owner % _WARPS, (owner - 1) // 32)


def is_thread(owner: int) -> bool:
    """Tell whether an owner is one thread."""
    return 0 < owner < ORDERED


def name_of(owner: int, layout: ClusterLayout) -> str:
    """Return what a message calls an owner."""
    if is_thread(owner):
        return layout.thread(owner - 1)
    return "several threads" if owner == SEVERAL_WARPS else f"a thread of {layout.warp(owner % _WARPS)}"


class Touch:
    """One log entry spread over threads (rows) and the granules that each touches (columns).

    A read at one address by all lanes of a warp, or by the same lane of all warps, needs one row, not one
    for each thread: nothing that is asked here can tell its threads apart.
    """

    def __init__(self, entry: Entry, granule: int, blocks: int) -> None:
        self.entry = entry
        self.granule = granule
        pattern = entry.pattern.copy if isinstance(entry.pattern, Signal) else entry.pattern
        assert pattern is not None
        self.warps = pattern.mask.warps
        self.lead = (1, 1)
        if isinstance(pattern, ChunkPattern):
            self._place_chunks(pattern, blocks)
        else:
            self._place_lanes(pattern, blocks, merge=entry.access is Access.READ)
        self.granules = self.start[:, None] // granule + np.arange(pattern.size // granule)
        self.rows = self.block[:, None]
        owner = (self.warp * 32 + self.lane + 1).astype(np.int32)
        if self.lead[0] > 1:
            owner = np.full_like(owner, SEVERAL_WARPS)
        elif self.lead[1] > 1:
            owner = (UNORDERED + self.warp).astype(np.int32)
        self.owner = owner[:, None]
        self._flat: NDArray[np.intp] | None = None

    def _place_lanes(self, pattern: SharedPattern, blocks: int, *, merge: bool) -> None:
        shape: tuple[int, ...] = (blocks, self.warps, 32)
        lanes = pattern.mask.lanes
        if merge and pattern.mask.whole:
            _, warps, width = pattern.address.shape
            shape = (blocks, warps, width)
            self.lead = (self.warps // warps, 32 // width)
            lanes = np.ones(
                (1, 1, 1), dtype=np.bool_
            )  # the mask may be written out for lanes that are merged
        address = np.broadcast_to(pattern.address, shape)
        self.block, self.warp, self.lane = np.nonzero(np.broadcast_to(lanes, shape))
        self.start = address[self.block, self.warp, self.lane]

    def _place_chunks(self, pattern: ChunkPattern, blocks: int) -> None:
        times = blocks if pattern.leading == 1 else 1
        self.block = pattern.block if times == 1 else np.repeat(np.arange(blocks), len(pattern.start))
        self.warp, self.lane, self.start = (
            np.tile(part, times) for part in (pattern.warp, pattern.lane, pattern.start)
        )

    def held(self, table: NDArray[T]) -> NDArray[T]:
        """Return what a table, of shape (blocks, granules), holds of every touched granule."""
        return table.take(self.flat(table.shape[1]))

    def flat(self, granules: int) -> NDArray[np.intp]:
        """Return the number of every touched granule, among those of all blocks, which have so many each."""
        if self._flat is None:
            self._flat = self.rows * granules + self.granules
        return self._flat

    def repeated(self) -> Hit | None:
        """Return the first granule that an earlier row touches too."""
        rows, columns = self.granules.shape
        if rows < 2:
            return None
        _, first = np.unique(self.flat(int(self.granules.max()) + 1), return_index=True)
        again = np.ones(rows * columns, dtype=np.bool_)
        again[first] = False
        return first_hit(again.reshape(rows, columns))

    def conflict(self, owners: Owners, settled: Bools | None = None, only: Bools | None = None) -> Hit | None:
        """Return the first touched granule that another thread, not ordered with this one, has touched.

        Not where what was done before is `settled`; and of the lanes that are true in `only`, if that is
        given.
        """
        held = self.held(owners)
        hit = held != 0
        if not hit.any():
            return None
        ordered = held == ORDERED + self.warp.astype(np.int32)[:, None]
        several = (self.owner >= UNORDERED) | (self.owner == SEVERAL_WARPS)
        hit &= ((held != self.owner) | several) & ~(ordered & (self.owner != SEVERAL_WARPS))
        if settled is not None:
            hit &= ~settled
        if only is not None:
            lanes = only if len(owners) > 1 else only.any(axis=0, keepdims=True)
            shape = (len(owners), self.warps, 32)
            hit &= np.broadcast_to(lanes, shape)[self.block, self.warp, self.lane][:, None]
        return first_hit(hit)

    def position(self, hit: Hit, met: int = 0) -> tuple[tuple[int, int, int], int]:
        """Return ((block, warp, lane), byte address) of a hit.

        Of the threads that a row stands for, another one is named than the owner that it `met`.
        """
        row, column = hit
        block, warp, lane = int(self.block[row]), int(self.warp[row]), int(self.lane[row])
        if met > 0 and warp_of(np.array([met], dtype=np.int32))[0] == warp:
            if self.lead[0] > 1:
                warp += 1
            elif self.lead[1] > 1 and met == warp * 32 + lane + 1:
                lane += 1
        return (block, warp, lane), int(self.start[row]) + column * self.granule

    def at(self, owners: Owners, hit: Hit) -> int:
        """Return who touched the granule of a hit."""
        row, column = hit
        return int(owners[self.block[row], self.granules[row, column]])

    def put(self, where: NDArray[T], value: int) -> None:
        """Set every touched granule."""
        where[self.rows, self.granules] = value

    def put_owner(self, owners: Owners, settled: Bools | None = None) -> None:
        """Add these threads to who touched each granule; where others are settled, they alone count now."""
        held = self.held(owners)
        if settled is not None:
            held = np.where(settled, 0, held)
        after = np.where(held == 0, self.owner, held)
        other = (held != 0) & (held != self.owner)
        if other.any():
            after = np.where(other, self._together(held), after)
        owners[self.rows, self.granules] = after
        # Threads of this very access that share a granule: the last one won, and the others are missing.
        won = self.held(owners)
        lost = (won != after) & (won != SEVERAL_WARPS)
        if lost.any():
            row = np.nonzero(lost)[0]
            both = self._together(won)[lost]
            owners[self.block[row], self.granules[lost]] = both
            apart = both == SEVERAL_WARPS
            owners[self.block[row[apart]], self.granules[lost][apart]] = SEVERAL_WARPS

    def _together(self, held: Owners) -> Owners:
        """Return who it is when these threads join those that `held` names."""
        warp = self.warp.astype(np.int32)[:, None]
        same = (held > 0) & (warp_of(held) == warp) & (self.owner > 0)
        # What __syncwarp ordered no longer matters inside the warp, and this thread stands for it outside.
        ordered = held == ORDERED + warp
        together = np.where(same, np.where(ordered, self.owner, UNORDERED + warp), SEVERAL_WARPS)
        return together.astype(np.int32)


def first_hit(hit: Bools) -> Hit | None:
    """Return the first of a touch's granules that is true, if any is."""
    if not hit.any():
        return None
    row, column = np.argwhere(hit)[0]
    return int(row), int(column)
