# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cp.async.bulk`: what the copy engine moves between global and shared memory while the threads go on.

In a cluster of blocks that is also what goes to other blocks' shared memory: copies from shared memory, and
what `st.async` and `red.async` bring. A copy to shared memory arrives once some thread has waited for its
mbarrier in vain, and not before; a copy from there is done when its group is waited for. So a wait that is
missing shows, and the race detector knows which bytes are in flight.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Counts, Mask, narrowed
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.global_flights import BulkPlaces, Flight, GlobalFlights
from gpuprof.executor.memory.mbarriers import Columns, Mbarriers, by_parity
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import (
    ChunkPattern,
    SharedMemory,
    SharedPattern,
)

#: Chunks of all remembered patterns together.
_REMEMBERED_CHUNKS = 1 << 20


class _Load(Struct, eq=False):
    """One copy to shared memory, of some lanes.

    `land` brings it there, and is None when it has; `column` is the mbarrier that counts its bytes, and
    `phase` that barrier's when the copy was started or, if later, arrived. It is `replaced` when another one
    to the same place has started.
    """

    pattern: ChunkPattern | SharedPattern
    land: Callable[[], None] | None
    bytes_moved: Counts
    column: int
    phase: NDArray[np.int64]
    observers: Bools
    flight: Flight | None = None
    replaced: bool = False

    @property
    def arrived(self) -> bool:
        return self.land is None


@dataclass(frozen=True, eq=False)
class TrackedArrival:
    """An arrival of some lanes at mbarriers that waits for what they copy by `cp.async`.

    `land` lets what lanes had started by then land, for those that are true.
    """

    columns: Columns
    mask: Mask
    land: Callable[[Bools], None]
    line: int


class BulkCopies:
    """The bulk copies in flight of one batch, and the threads that have waited for those that arrived."""

    def __init__(
        self,
        shared: SharedMemory,
        events: Events,
        barriers: Mbarriers,
        warps: int,
        flights: GlobalFlights,
    ) -> None:
        self.shared = shared
        self.flights = flights
        self.events = events
        self.barriers = barriers
        self._shape = (barriers.blocks, warps, WARP)
        self._loads: list[_Load] = []
        self._patterns: Kept[ChunkPattern] = Kept(_REMEMBERED_CHUNKS, lambda pattern: len(pattern.start))
        self.tracked: list[TrackedArrival] = []
        #: Bytes of copies in flight that bring nothing else, for each block's barriers; None before any.
        self._valueless: NDArray[np.int64] | None = None

    def pattern(
        self, address: Lanes, length: Lanes, mask: Mask, swizzle_bytes: int = 0, row_bytes: int = 0
    ) -> ChunkPattern:
        """Return the pattern of a stretch in each lane: the same object for the same lanes and addresses."""
        address, length, lanes = (uniform_blocks(part) for part in (address, length, mask.lanes))
        key = (
            *(address.tobytes(), address.shape, length.tobytes(), length.shape, lanes.tobytes(), lanes.shape),
            (swizzle_bytes, row_bytes),
        )
        block_bytes = self.shared.block_bytes
        return self._patterns.of(
            key, lambda: ChunkPattern(address, length, mask.of(lanes), block_bytes, swizzle_bytes, row_bytes)
        )

    def load(self, pattern: ChunkPattern, values: Lanes, column: int, line: int, source: BulkPlaces) -> None:
        """Put a copy of `source` to shared memory in flight; its bytes will count for barrier `column`."""

        def land() -> None:
            self.shared.store_chunks(pattern, values)

        self.events.touch(Access.BULK, pattern, line)
        lanes = np.broadcast_to(pattern.mask.lanes, self._shape)
        copy = self._begin(pattern, land, pattern.bytes_moved, column, line)
        copy.flight = self.flights.add(Flight(line, lanes, source))
        # Who sees the copy's bytes arrive is behind what it has read of global memory.
        for parity, part in self._by_parity(column, lanes):
            signal = self.events.signals.of(self._whole_warps(part), (column, parity))
            self.events.order.synchronise(Access.RELEASE, signal, line)

    def load_shared(
        self, pattern: ChunkPattern, source: ChunkPattern, values: Lanes, column: int, line: int
    ) -> None:
        """Put a copy from shared memory to that of another block of the cluster in flight."""

        def land() -> None:
            self.shared.store_chunks(pattern, values)
            self.events.touch(Access.SOURCED, source, line)

        self.events.touch(Access.SOURCE, source, line)
        self.events.touch(Access.BULK, pattern, line)
        lanes = self._whole_warps(pattern.mask.lanes)
        self.events.synchronise(Access.PASSED, lanes, (column, 0), line, pattern)
        self._begin(pattern, land, pattern.bytes_moved, column, line)

    def store_async(
        self, pattern: SharedPattern, land: Callable[[], None], column: int, line: int, *, reduces: bool
    ) -> None:
        """Put what lanes store to other blocks in flight; `land` brings it there."""
        self.events.touch(Access.REDUCTION if reduces else Access.BULK, pattern, line)
        self._begin(pattern, land, pattern.mask.thread_count * pattern.size, column, line)

    def _begin(
        self,
        pattern: ChunkPattern | SharedPattern,
        land: Callable[[], None],
        bytes_moved: Counts,
        column: int,
        line: int,
    ) -> _Load:
        if self.events.order.layout.several:
            for parity, part in self._by_parity(column, self._whole_warps(pattern.mask.lanes)):
                self.events.synchronise(Access.STARTED, self._whole_warps(part), (column, parity), line)
        phases = self.barriers.phase[:, column].copy()
        nobody = np.zeros((1, 1, 1), dtype=np.bool_)
        for old in [load for load in self._loads if load.pattern is pattern]:
            old.replaced = True
            if old.arrived:
                self._loads.remove(old)
        self._loads.append(_Load(pattern, land, bytes_moved, column, phases, nobody))
        return self._loads[-1]

    def bring(self, columns: Columns, mask: Mask, transfer_bytes: Lanes) -> None:
        """Put a copy of each lane in flight that moves no values; its bytes will count for its barrier."""
        sent = self.barriers.summed(columns, mask, transfer_bytes)
        if self._valueless is not None:
            before = self._valueless
            sent[:, : before.shape[1]] += before
        self._valueless = sent

    def deliver(self, which: Columns, lanes: Bools) -> NDArray[np.intp]:
        """Let all copies arrive that count for barriers of some lanes.

        Those that bring no values arrive in the blocks of these lanes only.

        Returns the different barriers.
        """
        shape = (len(self.barriers.phase), *which.shape[1:])
        rows, *_ = places = np.nonzero(np.broadcast_to(narrowed(lanes, shape), shape))
        asked = np.broadcast_to(which, shape)[places]
        columns = np.unique(asked)
        self._deliver_tracked(columns)
        if self._valueless is not None and (waits := asked < self._valueless.shape[1]).any():
            arrived = np.zeros_like(self._valueless)
            place = rows[waits], asked[waits]
            arrived[place] = self._valueless[place]
            if arrived.any():
                self._valueless -= arrived
                self.barriers.receive(arrived)
        for copy in self._loads:
            if copy.land is not None and copy.column in columns:
                copy.land()
                copy.land = None
                if copy.flight is not None:
                    copy.flight.waiting = np.zeros((1, 1, 1), dtype=np.bool_)
                # Where more was on its way than announced, the phase that it was started in may be over.
                copy.phase = self.barriers.phase[:, copy.column].copy()
                arrived = np.zeros_like(self.barriers.transfer)
                arrived[:, copy.column] = copy.bytes_moved
                self.barriers.receive(arrived)
        self.flights.settle()
        return columns

    def _deliver_tracked(self, columns: NDArray[np.intp]) -> None:
        """Let threads arrive at some of these barriers, by the copies that they wait for."""
        waiting, self.tracked = self.tracked, []
        for arrival in waiting:
            due = np.asarray(np.isin(arrival.columns, columns) & arrival.mask.lanes)
            if due.any():
                arrival.land(due)
                mask, phases = arrival.mask.of(due), self.barriers.at(self.barriers.phase, arrival.columns)
                self.arrived(arrival.columns, mask, phases, arrival.line)
                one = np.ones((1, 1, 1), dtype=np.int64)
                self.barriers.arrive(self.barriers.summed(arrival.columns, mask, one))
            left = arrival.mask.lanes & ~due
            if left.any():
                self.tracked.append(replace(arrival, mask=arrival.mask.of(left)))

    def observe(self, columns: Columns, mask: Mask, passed: Bools, live: Bools, line: int) -> None:
        """Threads in `mask`, those that `passed`, have seen a phase of each one's barrier end."""
        if not self.events.listeners:
            self._loads = [copy for copy in self._loads if not copy.arrived]
            return
        for column, part in mask.of(passed).divided(columns):
            self._observe(column, self._whole_warps(part.lanes), live, line)

    def _observe(self, column: int, lanes: Bools, live: Bools, line: int) -> None:
        for parity, part in self._by_parity(column, lanes):  # the phase before has ended
            self.events.synchronise(Access.ACQUIRE, part, (column, 1 - parity), line)
        phase = self.barriers.phase[:, column]
        kept: list[_Load] = []
        for copy in self._loads:
            if copy.column == column and copy.arrived:
                done = copy.phase < phase
                seen = uniform_blocks(lanes & done[:, None, None])
                new = seen & ~copy.observers
                if new.any() and not copy.replaced:
                    copy.observers = copy.observers | seen
                    if not (live & ~seen).any():
                        seen = np.ones((1, *self._shape[1:]), dtype=np.bool_)
                    self.events.synchronise(Access.OBSERVED, seen, (column, 0), line, copy.pattern)
                if not (live & ~copy.observers).any():
                    continue
            kept.append(copy)
        self._loads = kept

    def arrived(self, columns: Columns, mask: Mask, phases: NDArray[np.int64], line: int) -> None:
        """The threads in `mask` arrive at barriers in these phases: what they did before is released."""
        if not self.events.listeners:
            return
        for column, part in mask.divided(columns):
            for parity, lanes in by_parity(part.lanes, phases):
                self.events.synchronise(Access.RELEASE, self._whole_warps(lanes), (column, parity), line)

    def _by_parity(self, column: int, lanes: Bools) -> Iterator[tuple[int, Bools]]:
        """Divide lanes by the phase that a barrier is in, in their block."""
        return by_parity(lanes, self.barriers.phase[:, column, None, None])

    def _whole_warps(self, lanes: Bools) -> Bools:
        return uniform_blocks(np.broadcast_to(lanes, (len(lanes), *self._shape[1:])))

    def fence(self, mask: Mask, line: int) -> None:
        """The threads in `mask` make what is ordered before them visible to copies."""
        self.events.synchronise(Access.FENCE, self._whole_warps(mask.lanes), (0, 0), line)

    def threads(self, pattern: ChunkPattern) -> NDArray[np.int64]:
        """Return for each chunk the number, in the batch, of the thread that asked for it."""
        blocks, warps, _ = self._shape
        inside = pattern.warp * WARP + pattern.lane
        if pattern.leading > 1:
            return np.asarray(pattern.block * warps * WARP + inside)[None]
        return np.asarray(np.arange(blocks)[:, None] * warps * WARP + inside)

    def part(self, pattern: ChunkPattern, lanes: Bools) -> ChunkPattern:
        """Return the pattern of some of its lanes: the same object for the same lanes."""
        lanes = uniform_blocks(lanes)
        key = (pattern.serial, lanes.tobytes(), lanes.shape)
        return self._patterns.of(key, lambda: pattern.part(lanes, self.shared.block_bytes))

    def listed(self, chunks: NDArray[np.int64], mask: Mask) -> ChunkPattern:
        """Return the pattern of chunks that the first lanes of warps read: the same object for the same ones.

        `chunks` are their numbers in shared memory, below 0 for none: shape (blocks or 1, warps, chunks).
        """
        lanes = uniform_blocks(mask.lanes)
        key = (chunks.tobytes(), chunks.shape, lanes.tobytes(), lanes.shape)
        block_bytes = self.shared.block_bytes
        return self._patterns.of(key, lambda: ChunkPattern.listed(chunks, mask.of(lanes), block_bytes))

    def pieces(self, pattern: ChunkPattern, wanted: Bools) -> ChunkPattern:
        """Return the pattern of some pieces of its chunks: the same object for the same pieces.

        `wanted` has shape (blocks or 1, chunks, pieces of a chunk).
        """
        key = (pattern.serial, np.packbits(wanted).tobytes(), wanted.shape)
        return self._patterns.of(key, lambda: pattern.pieces(wanted, self.shared.block_bytes))
