# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What copies in flight still read of global memory, and still write: nobody may touch that meanwhile.

Threads of the copy's own block are ordered with the one that started it, though not with the copy. Other
blocks meet it without any order, which the search for races finds too.

A `cp.async` arrives in shared memory when its group is waited for, and not before. Delivering it at once
would hide a missing wait; in flight until then, the race detector knows which bytes those are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, Index
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.global_accesses import Manner, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedMemory, SharedPattern

Addresses = NDArray[np.int64]


#: Of each piece the first byte, the first after it, and the (block, warp, lane) that asked for it: columns.
_Asked = tuple[Addresses, Addresses, NDArray[np.intp]]


class Places:
    """Where copies read or write."""

    def _asked(self) -> _Asked:
        raise NotImplementedError

    @cached_property
    def _pieces(self) -> _Asked:
        """The pieces, in the order of their addresses."""
        start, end, who = self._asked()
        order = np.argsort(start, kind="stable")
        return start[order], end[order], who[:, order]

    @cached_property
    def _stretches(self) -> tuple[Addresses, Addresses]:
        start, end, _ = self._pieces
        return _stretches(start, end) if start.size else (start, end)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The first byte of all, and the first after them."""
        start, end, _ = self._pieces
        return (int(start[0]), int(end.max())) if start.size else (0, 0)

    def first_in(self, start: Addresses, size: int, waiting: Bools) -> tuple[int, int, int, int] | None:
        """Return the number of the first of some places of `size` bytes that waiting lanes touch.

        With it the (block, warp, lane) that does.
        """
        if not _touched(*self._stretches, *_stretches(start, start + size))[1].size:  # whoever waits
            return None
        own, end, who = self._pieces
        shape = [max(size, int(axis.max()) + 1) for size, axis in zip(waiting.shape, who, strict=True)]
        held = np.broadcast_to(waiting, shape)[tuple(who)]
        own, end, who = own[held], end[held], who[:, held]
        before, hit = _touched(own, end, start, start + size)
        if not hit.size:
            return None
        block, warp, lane = who[:, end[: before[hit[0]] + 1].argmax()].tolist()
        return int(hit[0]), block, warp, lane


def _stretches(start: Addresses, end: Addresses) -> tuple[Addresses, Addresses]:
    """Return pieces, and those that follow one without a gap as one with it."""
    apart = np.flatnonzero(start[1:] != end[:-1])
    return start[np.append(0, apart + 1)], end[np.append(apart, -1)]


def _touched(
    own: Addresses, end: Addresses, start: Addresses, stop: Addresses
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return before which of these pieces each place ends, and the places that touch one."""
    before = np.searchsorted(own, stop) - 1
    # Of those that begin before a place ends, the one that reaches furthest.
    reach = np.maximum.accumulate(end)[before] if own.size else before
    return before, np.flatnonzero((before >= 0) & (reach > start))


@dataclass(frozen=True, eq=False)
class LanePlaces(Places):
    """Stretches of global memory, one for each of some lanes of a batch: shape (blocks, warps, 32)."""

    start: Lanes
    length: Lanes
    lanes: Bools

    def _asked(self) -> _Asked:
        who = np.nonzero(self.lanes)
        start, length = (np.broadcast_to(part, self.lanes.shape)[who] for part in (self.start, self.length))
        return start, start + length, np.stack(who)


@dataclass(frozen=True, eq=False)
class BulkPlaces(Places):
    """Pieces of global memory that a bulk copy moves: of each chunk one, or several in one more dimension.

    Of the chunks of `pattern` in shared memory, `start` are the addresses: shape (blocks or 1, chunks, …),
    each of `size` bytes; only those `inside` exist, or all.
    """

    pattern: ChunkPattern
    start: Addresses
    size: int
    inside: Bools | None = None

    def _asked(self) -> _Asked:
        inside = np.ones(self.start.shape, dtype=np.bool_) if self.inside is None else self.inside
        row, chunk, *_ = np.nonzero(inside)
        pattern = self.pattern
        block = row if pattern.leading == 1 else pattern.block[chunk]
        start = self.start[inside]
        return start, start + self.size, np.stack([block, pattern.warp[chunk], pattern.lane[chunk]])

    def accesses(self, blocks: int) -> tuple[Addresses, int, NDArray[np.intp]]:
        """Return the address of each access, its bytes, and its (block, warp, lane), one a row.

        Where all `blocks` of the batch have the same places, each makes its own accesses.
        """
        start, _, who = self._pieces
        if self.pattern.leading == 1 and len(self.start) == 1 and blocks > 1:
            start, who = np.tile(start, blocks), np.tile(who, blocks)
            who[0] = np.repeat(np.arange(blocks), start.size // blocks)
        return start, self.size, who.T


class Flight(Struct, eq=False):
    """One copy in flight, or what else is under way while threads go on.

    `waiting` are the lanes whose copies are in flight: shape (blocks or 1, warps, 32). It reads `places` in
    global memory, if any, or `writes` them. `land` ends it for lanes that are true; `group` is the number of
    the group that it belongs to, in each lane.
    """

    line: int
    waiting: Bools
    places: Places | None = None
    land: Callable[[Bools], None] = lambda lanes: None
    writes: bool = False
    group: NDArray[np.int64] = field(default_factory=lambda: np.zeros((1, 1, 1), dtype=np.int64))


class GlobalFlights(Observer):
    """The copies in flight of one batch.

    Nobody may write what one may still read, nor touch what it may write. It listens from the first copy on.
    `fault` raises what is wrong, as that of a batch does; `names` tells the thread and block of a (block,
    warp, lane).
    """

    def __init__(
        self,
        events: Events,
        memory: GlobalMemory,
        fault: Callable[..., NoReturn],
        names: Callable[[tuple[int, int, int]], tuple[Index, Index]],
    ) -> None:
        self._events, self._memory = events, memory
        self._fault, self._names = fault, names
        self._flying: list[Flight] = []
        self._listens = self._writing = False

    def add(self, flight: Flight) -> Flight:
        """Follow a copy; return it."""
        if not self._listens:
            self._listens = True
            self._events.observe([self], self._memory.buffers)
        self._flying.append(flight)
        self._writing |= flight.writes
        return flight

    def settle(self) -> None:
        """Forget those that no lane waits for any more."""
        self._flying = [flight for flight in self._flying if flight.waiting.any()]
        self._writing = any(flight.writes for flight in self._flying)

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        if self._writing:
            self._require_apart(buffer, one, writes=False)

    def write(self, buffer: Buffer, one: MemoryOperation, values: Lanes) -> None:
        if self._flying:
            self._require_apart(buffer, one, writes=True)

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Bools | None = None) -> None:
        if self._flying:
            self._require_apart(buffer, one, writes=True)

    def _require_apart(self, buffer: Buffer, one: MemoryOperation, *, writes: bool) -> None:
        order = one.order

        def where() -> NDArray[np.intp]:
            threads = one.who - order.first * order.block_threads
            return np.stack(np.unravel_index(threads, order.threads.shape), axis=1)

        self.require_apart(buffer.address + one.place * one.size, one.size, where, one.line, writes=writes)

    def require_apart(
        self, start: Addresses, size: int, who: Callable[[], NDArray[np.intp]], line: int, *, writes: bool
    ) -> None:
        """Refuse accesses that meet a copy: of each `start` is the address, a row of `who` who makes it."""
        met = self.met(start, size, lambda: who()[:, 0], writes=writes) if len(start) else None
        if met is None:
            return
        where = who()
        number, flight, position = met
        thread, block = self._names(position)
        place = int(start[number])
        did, may = ("writes" if writes else "reads"), ("write" if flight.writes else "read")
        detail = f"{did} {size} bytes of global memory at {place:#x}, which a copy that thread {thread}"
        detail += f" of block {block} started in line {flight.line} may still {may}"
        of_block, warp, lane = where[number].tolist()
        self._fault(FaultKind.ASYNC_COPY, detail, line, (of_block, warp, lane), place)

    def met(
        self, start: Addresses, size: int, blocks: Callable[[], NDArray[np.intp]], *, writes: bool
    ) -> tuple[int, Flight, tuple[int, int, int]] | None:
        """Return the first access that meets a copy in flight, one of the two a write.

        Returns its number, the copy, and (block, warp, lane) of the copy's.
        """
        first, end = int(start.min()), int(start.max()) + size
        for flight in self._flying:
            assert flight.places is not None
            low, high = flight.places.bounds if writes or flight.writes else (0, 0)
            if low < end and first < high:
                hit = flight.places.first_in(start, size, flight.waiting)
                # Stores of other blocks may meet where they store the same.
                if hit and (not flight.writes or hit[1] == blocks()[hit[0]]):
                    return hit[0], flight, hit[1:]
        return None


class CopyGroups:
    """What is in flight in groups that lanes close, and wait for.

    `open` is the number of each lane's open one. `settle` is called when some have landed.
    """

    def __init__(self, settle: Callable[[], None] = lambda: None) -> None:
        self.open: NDArray[np.int64] = np.zeros((1, 1, 1), dtype=np.int64)
        self._flying: list[Flight] = []
        self._settle = settle

    def start(self, flight: Flight) -> None:
        """Put something in flight, in the open groups."""
        flight.group = self.open
        self._flying.append(flight)

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        self.open = self.open + (1 if mask.whole else mask.lanes)

    def wait(self, mask: Mask, newest: int | None) -> None:
        """Land all but the `newest` closed groups of the lanes in `mask`; None lands open ones too."""

        def due(flight: Flight) -> Bools:
            closed = True if newest is None else flight.group < self.open - newest
            return np.asarray(mask.lanes & closed)

        self._land(self._flying, due)

    def landing(self, mask: Mask) -> Callable[[Bools], None]:
        """Return what lands what the lanes in `mask` have in flight now, for those that it is given."""
        flights = [flight for flight in self._flying if (flight.waiting & mask.lanes).any()]
        return lambda lanes: self._land(flights, lambda flight: lanes)

    def finish(self) -> None:
        """Land everything."""
        self._land(self._flying, lambda flight: flight.waiting)

    @property
    def unfinished(self) -> Flight | None:
        return self._flying[0] if self._flying else None

    def _land(self, flights: list[Flight], due: Callable[[Flight], Bools]) -> None:
        for flight in flights:
            lanes = flight.waiting & due(flight)
            if lanes.any():
                flight.waiting = flight.waiting & ~lanes
                flight.land(lanes)
        self._flying = [flight for flight in self._flying if flight.waiting.any()]
        self._settle()


#: Parts of patterns that are remembered.
_REMEMBERED_PARTS = 1 << 12


class AsyncCopies(CopyGroups):
    """The `cp.async` in flight of one batch."""

    def __init__(self, shared: SharedMemory, flights: GlobalFlights, events: Events) -> None:
        super().__init__(flights.settle)
        self.shared = shared
        self.flights = flights
        self._events = events
        self._landed: Kept[SharedPattern] = Kept(_REMEMBERED_PARTS)

    def copy(self, pattern: SharedPattern, values: Lanes, line: int, source: LanePlaces) -> None:
        """Put the copy of `values`, as read from its source, to the pattern's offsets in flight."""

        def land(lanes: Bools) -> None:
            part = self._part(pattern, lanes)
            self._events.touch(Access.LANDED, part, line, values, manner=Manner.WRITE)
            self.shared.store(part, values)

        self._events.touch(Access.COPY, pattern, line, values, manner=Manner.WRITE)
        self.start(self.flights.add(Flight(line, pattern.mask.lanes, source, land)))

    def _part(self, pattern: SharedPattern, lanes: Bools) -> SharedPattern:
        """Return `pattern` for some of its lanes: the same object for the same lanes, so verdicts hold."""
        if lanes.shape == pattern.mask.lanes.shape and np.array_equal(lanes, pattern.mask.lanes):
            return pattern
        address, size, block_bytes = pattern.address, pattern.size, self.shared.block_bytes
        return self._landed.of(
            (pattern.serial, lanes.tobytes()),
            lambda: SharedPattern(address, 0, pattern.mask.of(lanes), size, block_bytes, load=False),
        )
