# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What reads shared memory while the threads go on, in groups that they close and wait for.

That are products of matrices (`wgmma`), and the copy engine's copies to global memory. Such a copy has read
its source when its group is waited for with `.read`, and has written its target when it is waited for
without, or when its block ends. Neither happens before: so a wait that is missing shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.bulk_copies import BulkCopies
from gpuprof.executor.memory.global_accesses import Manner
from gpuprof.executor.memory.global_flights import BulkPlaces, CopyGroups, Flight
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.shared_memory import ChunkPattern

#: Where the pieces of a store go: each buffer with the pieces that it gets, and their places in it.
Targets = list[tuple[Buffer, NDArray[np.intp], NDArray[np.intp]]]


@dataclass(eq=False)
class SourceRead:
    """What one instruction reads; `group` is the number of the group it belongs to, in each lane."""

    pattern: ChunkPattern
    line: int
    group: NDArray[np.int64]
    reading: Bools


class SourceReads:
    """The reads in flight of one batch: what is read must stay as it is from what `begins` to what `ends`."""

    def __init__(self, copies: BulkCopies, warps: int, begins: Access, ends: Access) -> None:
        self._copies = copies
        self._shape = (copies.barriers.blocks, warps, WARP)
        self._begins, self._ends = begins, ends
        self._flying: list[SourceRead] = []
        self._groups = CopyGroups()
        self.commit = self._groups.close

    def start(self, pattern: ChunkPattern, line: int) -> SourceRead:
        """A read begins."""
        self._copies.events.touch(self._begins, pattern, line)
        lanes = np.broadcast_to(pattern.mask.lanes, self._shape)
        read = SourceRead(pattern, line, self._groups.open, lanes)
        self._flying.append(read)
        return read

    def due(self, read: SourceRead, mask: Mask, newest: int) -> Bools:
        """Return for which of the lanes in `mask` it belongs to a closed group, but for the `newest` ones."""
        return self._groups.due(read.group, mask, newest)

    def wait(self, mask: Mask, newest: int) -> None:
        """Finish all but the `newest` closed groups of the lanes in `mask`."""
        for read in self._flying:
            due = read.reading & self.due(read, mask, newest)
            if due.any():
                whole = np.array_equal(due, np.broadcast_to(read.pattern.mask.lanes, self._shape))
                pattern = read.pattern if whole else self._copies.part(read.pattern, due)
                self._copies.events.touch(self._ends, pattern, read.line)
                read.reading = read.reading & ~due
        self._flying = [read for read in self._flying if read.reading.any()]

    @property
    def unread(self) -> tuple[int, Bools] | None:
        """The line and the lanes of a read that nobody waited for, if there is one."""
        return (self._flying[0].line, self._flying[0].reading) if self._flying else None


@dataclass(frozen=True, eq=False)
class Combination:
    """How a copy changes what is there.

    `apply` changes elements of content, at places, by given ones, one after the other.
    """

    dtype: np.dtype[Any]
    apply: Callable[[Lanes, NDArray[np.intp], Lanes], None]


@dataclass(eq=False)
class _Store:
    """One copy from shared memory.

    `values` were there when it began; `combine` is None where they replace what is in the targets. No values
    move if it is `address_only`.
    """

    read: SourceRead
    targets: Targets
    values: Lanes
    combine: Combination | None
    flight: Flight
    address_only: bool


class BulkStores:
    """The copies from shared memory in flight of one batch."""

    def __init__(self, copies: BulkCopies, warps: int) -> None:
        self._copies = copies
        self._shape = (copies.barriers.blocks, warps, WARP)
        self._reads = SourceReads(copies, warps, Access.SOURCE, Access.SOURCED)
        self.commit = self._reads.commit
        self._flying: list[_Store] = []

    def start(
        self,
        pattern: ChunkPattern,
        targets: Targets,
        places: BulkPlaces,
        line: int,
        combine: Combination | None = None,
        *,
        address_only: bool = False,
    ) -> None:
        """Put a copy from shared memory to `places` in flight; see `_Store` for the other arguments."""
        read = self._reads.start(pattern, line)
        values = self._copies.shared.load_chunks(pattern)
        flight = Flight(places, line, read.reading, writes=True)
        if combine is None:
            self._copies.flights.add(flight)
        self._flying.append(_Store(read, targets, values, combine, flight, address_only))

    def wait(self, mask: Mask, newest: int, *, reads_only: bool = False) -> None:
        """Finish all but the `newest` closed groups of the lanes in `mask`, or only their reads."""
        self._reads.wait(mask, newest)
        if reads_only:
            return
        for copy in self._flying:
            due = copy.flight.waiting & self._reads.due(copy.read, mask, newest)
            if due.any():
                self._write(copy, due)
        self._flying = [copy for copy in self._flying if copy.flight.waiting.any()]
        self._copies.flights.settle()

    def end(self) -> None:
        """The blocks have ended: what is still to be written arrives before the launch is over."""
        for copy in self._flying:
            self._write(copy, copy.flight.waiting)
        self._flying = []

    @property
    def unread(self) -> tuple[int, Bools] | None:
        """The line and the lanes of a copy whose source nobody waited for, if there is one."""
        return self._reads.unread

    def _write(self, copy: _Store, due: Bools) -> None:
        pattern, line, combine = copy.read.pattern, copy.read.line, copy.combine
        rows = self._shape[0] if pattern.leading == 1 else 1
        values = np.broadcast_to(copy.values, (rows, len(pattern.start))).reshape(-1)
        pieces = self._per_piece(pattern, due).reshape(-1)
        order, tell = self._copies.events.order, self._copies.events.tell
        threads = self._copies.threads(pattern).reshape(-1) + order.first * order.block_threads
        told: dict[str, Any] = {"line": line, "address_only": copy.address_only, "mask": None}
        copy.flight.waiting = copy.flight.waiting & ~due
        for buffer, which, places in copy.targets:
            chosen = pieces[which]
            piece, place = which[chosen], places[chosen]
            given, who, size = values[piece], threads[piece], pattern.size
            if combine is None:
                told |= {"index": place, "by": who, "size": size, "manner": Manner.WRITE}
                tell("write", buffer, given, **told)
                if not copy.address_only:
                    buffer.store(place, given, size)
                continue
            each = size // combine.dtype.itemsize
            place = (place[:, None] * each + np.arange(each)).reshape(-1)
            given = np.ascontiguousarray(given)[:, None].view(combine.dtype).reshape(-1)
            told |= {"index": place, "by": np.repeat(who, each), "size": combine.dtype.itemsize}
            tell("update", buffer, **told, manner=Manner.STRONG_WRITE)
            buffer.combined = True
            if not copy.address_only:
                _combine(buffer, place, given, combine)

    def _per_piece(self, pattern: ChunkPattern, lanes: Bools) -> Bools:
        """Return for each piece whether its lane is true."""
        if pattern.leading == 1:
            return np.asarray(lanes[:, pattern.warp, pattern.lane])
        return np.asarray(lanes[pattern.block, pattern.warp, pattern.lane])[None]


def _combine(buffer: Buffer, place: NDArray[np.intp], given: Lanes, combine: Combination) -> None:
    """Change elements of global memory one after the other, as atomic operations do."""
    size = combine.dtype.itemsize
    content = buffer.view(size)
    combine.apply(content.view(combine.dtype), place, given)
    buffer.store(place, content[place], size)
