# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An access to shared memory spread over threads and granules: who touches which bytes."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.memory.accesses import Access, Entry, Signal
from gpuprof.executor.memory.shared_memory import ChunkPattern
from gpuprof.executor.memory.warp_rows import changes, grouped

#: A stamp says when a warp touched something last, in which line, and which of its lanes did: from 1, or
#: `SEVERAL` of them with nothing to order them. It is 0 where none did.
SEVERAL = 33
#: Some of them whose values a shuffle of the warp took: only other warps' stores may disturb these reads.
EXCHANGED = 34
_LANE_BITS, MOMENT_SHIFT = 6, 30
_LANE, _REST = (1 << _LANE_BITS) - 1, (1 << MOMENT_SHIFT) - 1

#: What accesses do to a place, in a message; all others write.
_DOES = {
    Access.READ: "reads",
    Access.EXCHANGED: "reads",
    Access.ATOMIC: "changes",
    Access.COPY: "starts a copy to",
    Access.MBARRIER: "uses the mbarrier at",
    Access.ARRIVED: "uses the mbarrier at",
    Access.SOURCE: "starts a bulk copy of",
    Access.MULTIPLIED: "multiplies",
}

Stamps = NDArray[np.int64]
T = TypeVar("T", bound=np.generic)

#: A granule that an access touches: its row among the access's threads, and its place in that thread's bytes.
Hit = tuple[int, int]


def lane_of(stamps: Stamps) -> Stamps:
    """Return which lane each stamp tells of."""
    return np.asarray(stamps & _LANE)


def line_of(stamp: int) -> int:
    """Return the source line of a stamp."""
    return (stamp & _REST) >> _LANE_BITS


def stamped(moment: int, line: int, lanes: NDArray[Any]) -> Stamps:
    """Return the stamps of lanes at one moment."""
    return np.asarray(moment << MOMENT_SHIFT | line << _LANE_BITS | lanes, dtype=np.int64)


class StampSets:
    """Sets of a stamp for each warp, by number; number 0 is that of nobody."""

    def __init__(self, warps: int) -> None:
        self._rows: Stamps = np.zeros((1, warps), dtype=np.int64)
        self._count = 1

    def __getitem__(self, numbers: NDArray[Any]) -> Stamps:
        return np.asarray(self._rows[numbers])

    def copy(self) -> "StampSets":
        result = StampSets(0)
        result._rows, result._count = self.rows.copy(), self._count
        return result

    @property
    def rows(self) -> Stamps:
        return self._rows[: self._count]

    def add(self, rows: Stamps) -> NDArray[np.int32]:
        """Take sets; return their numbers."""
        which, distinct = grouped(rows)
        first, self._count = self._count, self._count + len(distinct)
        if self._count > len(self._rows):
            self._rows = np.concatenate(
                [self._rows[:first], np.zeros((self._count, rows.shape[1]), np.int64)]
            )
        self._rows[first : self._count] = rows[distinct]
        return np.where(rows.any(axis=1), which + first, 0).astype(np.int32)


class Touch:
    """One log entry spread over threads (rows) and the granules that each touches (columns).

    `lanes` are those of the rows, from 1.
    """

    def __init__(self, entry: Entry, granule: int, blocks: int) -> None:
        self.entry = entry
        self.granule = granule
        pattern = entry.pattern.copy if isinstance(entry.pattern, Signal) else entry.pattern
        assert pattern is not None
        self.warps = pattern.mask.warps
        if isinstance(pattern, ChunkPattern):
            each = pattern.told_apart(blocks)
            self.block, self.warp, self.lane, self.start = each.block, each.warp, each.lane, each.start
        else:
            shape = (blocks, self.warps, WARP)
            self.block, self.warp, self.lane = np.nonzero(np.broadcast_to(pattern.mask.lanes, shape))
            self.start = np.broadcast_to(pattern.address, shape)[self.block, self.warp, self.lane]
        self.granules = self.start[:, None] // granule + np.arange(pattern.size // granule)
        self.rows = self.block[:, None]
        self.lanes = self.lane + 1
        self._flat: NDArray[np.intp] | None = None

    def held(self, table: NDArray[T]) -> NDArray[T]:
        """Return what a table, of shape (blocks, granules), holds of every touched granule."""
        return table.take(self.flat(table.shape[1]))

    def flat(self, granules: int) -> NDArray[np.intp]:
        """Return the number of every touched granule, among those of all blocks, which have so many each."""
        if self._flat is None:
            self._flat = self.rows * granules + self.granules
        return self._flat

    def by_granule(self, granules: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the touched granules of all blocks, which have so many each, and the row of each touch.

        Those of one granule stand together; the second tells where each one's begin.
        """
        flat = self.flat(granules).reshape(-1)
        order = np.argsort(flat, kind="stable")
        begins = changes(flat[order]).nonzero()[0]
        return flat[order[begins]], begins, order // self.granules.shape[1]

    @property
    def does(self) -> str:
        if self.entry.access not in (Access.BULK, Access.REDUCTION):
            return _DOES.get(self.entry.access, "writes")
        bulk = isinstance(self.entry.pattern, ChunkPattern)
        return f"starts {'a bulk copy' if bulk else 'an asynchronous store'} to"

    def repeated(self) -> Bools:
        """Return which granules an earlier row touches too."""
        again = np.ones(self.granules.shape, dtype=np.bool_)
        _, first = np.unique(self.flat(int(self.granules.max(initial=0)) + 1), return_index=True)
        again.reshape(-1)[first] = False
        return again

    def position(self, hit: Hit) -> tuple[tuple[int, int, int], int]:
        """Return ((block, warp, lane), byte address) of a hit."""
        row, column = hit
        block, warp, lane = (int(part[row]) for part in (self.block, self.warp, self.lane))
        return (block, warp, lane), int(self.start[row]) + column * self.granule

    def put(self, where: NDArray[T], value: int) -> None:
        """Set every touched granule."""
        where[self.rows, self.granules] = value


def first_hit(hit: Bools) -> Hit | None:
    """Return the first of a touch's granules that is true, if any is."""
    if not hit.any():
        return None
    row, column = np.argwhere(hit)[0]
    return int(row), int(column)
