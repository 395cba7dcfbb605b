# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cp.async`: copies to shared memory that arrive when their group is waited for, and not before.

Delivering them at once would hide a missing wait; here the data stays in flight until then, and the race
detector knows which bytes those are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.global_accesses import Manner
from gpuprof.executor.memory.global_flights import Flight, GlobalFlights
from gpuprof.executor.memory.races import RaceDetector
from gpuprof.executor.memory.shared_memory import SharedMemory, SharedPattern
from gpuprof.executor.memory.shared_order import SharedOrder


@dataclass(frozen=True, eq=False)
class Source:
    """What copies read of global memory.

    Shapes (blocks or 1, warps or 1, 32 or 1).
    """

    start: Lanes
    length: Lanes
    lanes: Bools

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The first byte of all that is read, and the first after it."""
        shape = np.broadcast_shapes(self.start.shape, self.length.shape, self.lanes.shape)
        start = np.broadcast_to(self.start, shape)[np.broadcast_to(self.lanes, shape)]
        return (int(start.min()), int(start.max()) + int(self.length.max())) if start.size else (0, 0)

    def first_in(
        self, start: NDArray[np.int64], size: int, waiting: Bools
    ) -> tuple[int, int, int, int] | None:
        """Return the number of the first of some places that waiting lanes read, and where such a lane is."""
        shape = np.broadcast_shapes(self.start.shape, self.length.shape, self.lanes.shape, waiting.shape)
        who = np.argwhere(np.broadcast_to(self.lanes & waiting, shape))
        place = tuple(who.T)
        first = np.broadcast_to(self.start, shape)[place]
        by_start = np.argsort(first, kind="stable")
        first, end = first[by_start], (first + np.broadcast_to(self.length, shape)[place])[by_start]
        # Of those that begin before a place ends, the one that reaches furthest.
        before = np.searchsorted(first, start + size) - 1
        reach = np.maximum.accumulate(end) if end.size else end
        hit = np.flatnonzero((before >= 0) & (reach[before] > start)) if end.size else before[:0]
        if not hit.size:
            return None
        upto = by_start[: before[hit[0]] + 1]
        block, warp, lane = who[upto[end[: len(upto)].argmax()]].tolist()
        return int(hit[0]), block, warp, lane


@dataclass
class _Copy:
    """One `cp.async` of some lanes; `group` is the number of the group it belongs to, in each lane.

    `flight` says which lanes wait for it, and what it reads.
    """

    pattern: SharedPattern
    values: Lanes
    line: int
    group: NDArray[np.int64]
    flight: Flight


class AsyncCopies:
    """The copies in flight of one batch."""

    def __init__(self, shared: SharedMemory, races: RaceDetector, flights: GlobalFlights) -> None:
        self.shared = shared
        self.flights = flights
        self.races = races
        #: What judges every access, if anything does.
        self.order: SharedOrder | None = None
        self._flying: list[_Copy] = []
        self._committed: NDArray[np.int64] = np.zeros((1, 1, 1), dtype=np.int64)
        self._landed: dict[tuple[int, bytes], SharedPattern] = {}

    def start(self, pattern: SharedPattern, values: Lanes, line: int, source: Source) -> None:
        """Put the copy of `values`, as read from its source, to the pattern's offsets in flight."""
        self.races.record(Access.COPY, pattern, line)
        if self.order is not None:
            self.order.write(pattern, values, line, Manner.WRITE)
        flight = self.flights.add(Flight(source, line, pattern.mask.lanes))
        self._flying.append(_Copy(pattern, values, line, self._committed, flight))

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        step = np.ones((1, 1, 1), dtype=np.int64) if mask.whole else mask.lanes.astype(np.int64)
        self._committed = self._committed + step

    def wait(self, mask: Mask, newest: int | None) -> None:
        """Deliver all but the `newest` closed groups of the lanes in `mask`; None delivers open ones too."""

        def due(copy: _Copy) -> Bools:
            lanes = copy.flight.waiting & mask.lanes
            return lanes if newest is None else lanes & (copy.group < self._committed - newest)

        self._land(self._flying, due)

    def landing(self, mask: Mask) -> Callable[[Bools], None]:
        """Return what delivers the present copies of the lanes in `mask` to those that it is given."""
        copies = [copy for copy in self._flying if (copy.flight.waiting & mask.lanes).any()]
        return lambda lanes: self._land(copies, lambda copy: copy.flight.waiting & lanes)

    def _land(self, copies: list[_Copy], due: Callable[[_Copy], Bools]) -> None:
        """Deliver copies to the lanes for which they are due."""
        for copy in copies:
            lanes = due(copy)
            if lanes.any():
                pattern = self._part(copy.pattern, lanes)
                if self.order is not None:
                    self.order.write(pattern, copy.values, copy.line, Manner.WRITE)
                self.shared.store(pattern, copy.values)
                report = self.races.report
                self.races.judge_collisions(self.shared, pattern, copy.values, copy.line, report)
                self.races.record(Access.LANDED, pattern, copy.line)
                copy.flight.waiting = copy.flight.waiting & ~lanes
        self._flying = [copy for copy in self._flying if copy.flight.waiting.any()]
        self.flights.settle()

    def _part(self, pattern: SharedPattern, lanes: Bools) -> SharedPattern:
        """Return `pattern` for some of its lanes: the same object for the same lanes, so verdicts hold."""
        if lanes.shape == pattern.mask.lanes.shape and np.array_equal(lanes, pattern.mask.lanes):
            return pattern
        key = (pattern.serial, lanes.tobytes())
        if key not in self._landed:
            mask = pattern.mask.of(lanes)
            self._landed[key] = SharedPattern(
                pattern.address, 0, mask, pattern.size, self.shared.block_bytes, load=False
            )
        return self._landed[key]
