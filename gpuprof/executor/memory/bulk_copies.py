# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cp.async.bulk`: what the copy engine moves between global and shared memory while the threads go on.

A copy to shared memory arrives once some thread has waited for its mbarrier in vain, and not before; a copy
from there is done when its group is waited for. So a wait that is missing shows, and the race detector knows
which bytes are in flight.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks
from gpuprof.executor.memory.accesses import Access, Signal
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.mbarriers import Columns, Mbarriers
from gpuprof.executor.memory.races import RaceDetector
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern, SharedMemory, next_serial

_PatternKey = tuple[object, ...]
#: Chunks of all remembered patterns together.
_REMEMBERED_CHUNKS = 1 << 20
_NOTHING = np.zeros((1, 0), dtype=np.complex128)


@dataclass(eq=False)
class _Load:
    """One copy to shared memory, of some lanes.

    Attributes:
        pattern: Where to.
        values: The chunks, as `SharedMemory.store_chunks` takes them.
        column: The mbarrier that counts its bytes.
        phase: The phase of that barrier when the copy was started: shape (blocks,).
        line: Source line.
        arrived: Whether shared memory has it.
        observers: The threads that have waited for it; broadcasts to the batch.
    """

    pattern: ChunkPattern
    values: Lanes
    column: int
    phase: NDArray[np.int64]
    line: int
    observers: Bools
    arrived: bool = False


@dataclass(eq=False)
class _Store:
    """One copy from shared memory; `group` is the number of the group it belongs to, in each lane."""

    pattern: ChunkPattern
    targets: "Targets"
    values: Lanes
    line: int
    group: NDArray[np.int64]
    waiting: Bools
    hollow: bool


@dataclass(frozen=True, eq=False)
class TrackedArrival:
    """An arrival of some lanes at mbarriers that waits for what they copy by `cp.async`.

    Attributes:
        columns: The barrier of each lane.
        mask: The lanes.
        land: Lets what lanes had started by then land, for those that are true.
        line: Source line.
    """

    columns: Columns
    mask: Mask
    land: Callable[[Bools], None]
    line: int


#: Where the chunks of a store go: each buffer with the chunks that it gets, and their places in it.
Targets = list[tuple[Buffer, NDArray[np.intp], NDArray[np.intp]]]
#: Told of chunks that are about to go to a buffer: their places, threads in the batch, values, the line, and
#: whether no values move.
Judge = Callable[[Buffer, NDArray[np.intp], NDArray[np.int64], Lanes, int, bool], None]


class BulkCopies:
    """The bulk copies in flight of one batch, and the threads that have waited for those that arrived."""

    def __init__(
        self, shared: SharedMemory, races: RaceDetector, barriers: Mbarriers, warps: int, judge: Judge
    ) -> None:
        self.judge = judge
        self.shared = shared
        self.races = races
        self.barriers = barriers
        self._shape = (barriers.blocks, warps, WARP)
        self._loads: list[_Load] = []
        self._newest: dict[int, _Load] = {}
        self._stores: list[_Store] = []
        self._committed: NDArray[np.int64] = np.zeros((1, 1, 1), dtype=np.int64)
        self._patterns: dict[_PatternKey, ChunkPattern] = {}
        self._signals: dict[_PatternKey, Signal] = {}
        self._chunks = 0
        self.tracked: list[TrackedArrival] = []
        #: Bytes of copies in flight that bring nothing else, for each block's barriers; None before any.
        self._hollow: NDArray[np.int64] | None = None

    def pattern(self, address: Lanes, length: Lanes, mask: Mask, swizzle_bytes: int = 0) -> ChunkPattern:
        """Return the pattern of a stretch in each lane: the same object for the same lanes and addresses."""
        address, length, lanes = (uniform_blocks(part) for part in (address, length, mask.lanes))
        key = (
            *(address.tobytes(), address.shape, length.tobytes(), length.shape, lanes.tobytes(), lanes.shape),
            swizzle_bytes,
        )
        if key not in self._patterns:
            block_bytes = self.shared.block_bytes
            self._remember(key, ChunkPattern(address, length, mask.of(lanes), block_bytes, swizzle_bytes))
        return self._patterns[key]

    def _remember(self, key: _PatternKey, pattern: ChunkPattern) -> None:
        self._chunks += len(pattern.start)
        if self._chunks > _REMEMBERED_CHUNKS:
            self._patterns.clear()
            self._signals.clear()
            self._newest = {load.pattern.serial: load for load in self._loads}
            self._chunks = len(pattern.start)
        self._patterns[key] = pattern

    def load(self, pattern: ChunkPattern, values: Lanes, column: int, line: int) -> None:
        """Put a copy to shared memory in flight; its bytes will count for barrier `column`."""
        self.races.record(Access.BULK, pattern, line)
        phase = self.barriers.phase[:, column].copy()
        nobody = np.zeros((1, 1, 1), dtype=np.bool_)
        old = self._newest.get(pattern.serial)
        if old is not None and old.arrived and old in self._loads:
            self._loads.remove(old)
        self._newest[pattern.serial] = copy = _Load(pattern, values, column, phase, line, nobody)
        self._loads.append(copy)

    def bring(self, columns: Columns, mask: Mask, transfer_bytes: Lanes) -> None:
        """Put a copy of each lane in flight that moves no values; its bytes will count for its barrier."""
        sent = self.barriers.summed(columns, mask, transfer_bytes)
        if self._hollow is not None:
            before = self._hollow
            sent[:, : before.shape[1]] += before
        self._hollow = sent

    def deliver(self, columns: NDArray[np.intp]) -> None:
        """Let all copies arrive that count for some of these barriers."""
        self._deliver_tracked(columns)
        if self._hollow is not None and self._hollow[:, columns].any():
            arrived = np.zeros_like(self._hollow)
            arrived[:, columns] = self._hollow[:, columns]
            self._hollow -= arrived
            self.barriers.receive_all(arrived)
        for copy in self._loads:
            if not copy.arrived and copy.column in columns:
                self.shared.store_chunks(copy.pattern, copy.values)
                copy.arrived = True
                copy.values = _NOTHING
                self.barriers.receive(copy.column, copy.pattern.bytes_moved)

    def _deliver_tracked(self, columns: NDArray[np.intp]) -> None:
        """Let threads arrive at some of these barriers, by the copies that they wait for."""
        waiting, self.tracked = self.tracked, []
        for arrival in waiting:
            due = np.asarray(np.isin(arrival.columns, columns) & arrival.mask.lanes)
            if due.any():
                arrival.land(due)
                mask, phases = arrival.mask.of(due), self.barriers.at(self.barriers.phase, arrival.columns)
                self.arrived(arrival.columns, mask, phases, arrival.line)
                self.barriers.arrive(arrival.columns, mask, np.ones((1, 1, 1), dtype=np.int64))
            left = arrival.mask.lanes & ~due
            if left.any():
                self.tracked.append(replace(arrival, mask=arrival.mask.of(left)))

    def observe(self, columns: Columns, lanes: Bools, live: Bools, line: int) -> None:
        """The threads in `lanes` have seen a phase of each one's barrier end.

        Args:
            columns: The barrier of each lane.
            lanes: Who waited with success.
            live: The lanes that have not ended.
            line: Source line of the wait.
        """
        if not self.races.judges:
            self._loads = [copy for copy in self._loads if not copy.arrived]
            return
        for column in np.unique(columns).tolist():
            chosen = lanes & (columns == column)
            if chosen.any():
                self._observe(column, self._whole_warps(chosen), live, line)

    def _observe(self, column: int, lanes: Bools, live: Bools, line: int) -> None:
        phase = self.barriers.phase[:, column]
        for parity in (0, 1):
            ended = (phase & 1) != parity
            if not ended.any():
                continue
            part = uniform_blocks(lanes & ended[:, None, None])
            if part.any():
                self.races.record(Access.ACQUIRE, self._signal(part, (column, parity)), line)
        kept: list[_Load] = []
        for copy in self._loads:
            if copy.column == column and copy.arrived:
                done = copy.phase < phase
                seen = uniform_blocks(lanes & done[:, None, None])
                new = seen & ~copy.observers
                if new.any() and self._newest[copy.pattern.serial] is copy:
                    copy.observers = copy.observers | seen
                    signal = self._signal(seen, (column, 0), copy.pattern, live)
                    self.races.record(Access.OBSERVED, signal, line)
                if not (live & ~copy.observers).any():
                    continue
            kept.append(copy)
        self._loads = kept

    def arrived(self, columns: Columns, mask: Mask, phases: NDArray[np.int64], line: int) -> None:
        """The threads in `mask` arrive at barriers in these phases: what they did before is released."""
        if not self.races.judges:
            return
        for column in np.unique(columns).tolist():
            for parity in (0, 1):
                lanes = mask.lanes & (columns == column) & ((phases & 1) == parity)
                if lanes.any():
                    signal = self._signal(self._whole_warps(lanes), (column, parity))
                    self.races.record(Access.RELEASE, signal, line)

    def _whole_warps(self, lanes: Bools) -> Bools:
        return uniform_blocks(np.broadcast_to(lanes, (len(lanes), *self._shape[1:])))

    def _signal(
        self,
        lanes: Bools,
        phase: tuple[int, int],
        copy: ChunkPattern | None = None,
        live: Bools | None = None,
    ) -> Signal:
        """Return a signal: the same object for the same threads, so that verdicts hold."""
        if live is not None and not (live & ~lanes).any():
            lanes = np.ones((1, *self._shape[1:]), dtype=np.bool_)
        key = (lanes.tobytes(), lanes.shape, phase, copy.serial if copy else None)
        if key not in self._signals:
            self._signals[key] = Signal(next_serial(), lanes, phase, copy)
        return self._signals[key]

    def store(self, pattern: ChunkPattern, targets: Targets, line: int, *, hollow: bool = False) -> None:
        """Put a copy from shared memory in flight; a hollow one moves no values."""
        self.races.record(Access.SOURCE, pattern, line)
        values = self.shared.load_chunks(pattern)
        lanes = np.broadcast_to(pattern.mask.lanes, self._shape)
        self._stores.append(_Store(pattern, targets, values, line, self._committed, lanes, hollow))

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        self._committed = self._committed + mask.lanes.astype(np.int64)

    def wait(self, mask: Mask, newest: int) -> None:
        """Finish all but the `newest` closed groups of the lanes in `mask`."""
        still: list[_Store] = []
        for copy in self._stores:
            due = copy.waiting & mask.lanes & (copy.group < self._committed - newest)
            if not due.any():
                still.append(copy)
                continue
            self._finish(copy, due)
            left = copy.waiting & ~due
            if left.any():
                copy.waiting = left
                still.append(copy)
        self._stores = still

    def _finish(self, copy: _Store, due: Bools) -> None:
        pattern = copy.pattern
        values = np.broadcast_to(copy.values, self._chunk_shape(pattern)).reshape(-1)
        whole = np.array_equal(due, np.broadcast_to(pattern.mask.lanes, self._shape))
        chunks = self._per_block(pattern, due).reshape(-1)
        threads = self.threads(pattern).reshape(-1)
        for buffer, which, index in copy.targets:
            chosen = chunks[which]
            chunk, places = which[chosen], index[chosen]
            self.judge(buffer, places, threads[chunk], values[chunk], copy.line, copy.hollow)
            if not copy.hollow:
                buffer.store(places, values[chunk], CHUNK_BYTES)
        self.races.record(Access.SOURCED, pattern if whole else self._part(pattern, due), copy.line)

    def threads(self, pattern: ChunkPattern) -> NDArray[np.int64]:
        """Return for each chunk the number, in the batch, of the thread that asked for it."""
        blocks, warps, _ = self._shape
        inside = pattern.warp * WARP + pattern.lane
        if pattern.leading > 1:
            return np.asarray(pattern.block * warps * WARP + inside)[None]
        return np.asarray(np.arange(blocks)[:, None] * warps * WARP + inside)

    def _chunk_shape(self, pattern: ChunkPattern) -> tuple[int, int]:
        return (self._shape[0] if pattern.leading == 1 else 1, len(pattern.start))

    def _per_block(self, pattern: ChunkPattern, lanes: Bools) -> Bools:
        """Return for each chunk whether its lane is true."""
        if pattern.leading == 1:
            return np.asarray(lanes[:, pattern.warp, pattern.lane])
        return np.asarray(lanes[pattern.block, pattern.warp, pattern.lane])[None]

    def _part(self, pattern: ChunkPattern, lanes: Bools) -> ChunkPattern:
        lanes = uniform_blocks(lanes)
        key = (pattern.serial, lanes.tobytes(), lanes.shape)
        if key not in self._patterns:
            self._remember(key, pattern.part(lanes, self.shared.block_bytes))
        return self._patterns[key]

    @property
    def unfinished(self) -> tuple[int, Bools] | None:
        """The line and the lanes of a copy from shared memory that nobody waited for, if there is one."""
        return (self._stores[0].line, self._stores[0].waiting) if self._stores else None
