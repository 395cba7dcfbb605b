# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cp.async`: copies to shared memory that arrive when their group is waited for, and not before.

Delivering them at once would hide a missing wait; here the data stays in flight until then, and the race
detector knows which bytes those are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.global_accesses import Manner
from gpuprof.executor.memory.global_flights import CopyGroups, Flight, GlobalFlights, LanePlaces
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import SharedMemory, SharedPattern

#: Parts of patterns that are remembered.
_REMEMBERED_PARTS = 1 << 12


@dataclass
class _Copy:
    """One `cp.async` of some lanes; `group` is the number of the group it belongs to, in each lane.

    `flight` says which lanes wait for it, and what it reads.
    """

    pattern: SharedPattern
    values: Lanes
    group: NDArray[np.int64]
    flight: Flight


class AsyncCopies:
    """The copies in flight of one batch."""

    def __init__(self, shared: SharedMemory, flights: GlobalFlights, events: Events) -> None:
        self.shared = shared
        self.flights = flights
        self._events = events
        self._flying: list[_Copy] = []
        self._groups = CopyGroups()
        self.commit = self._groups.close
        self._landed: Kept[SharedPattern] = Kept(_REMEMBERED_PARTS)

    def start(self, pattern: SharedPattern, values: Lanes, line: int, source: LanePlaces) -> None:
        """Put the copy of `values`, as read from its source, to the pattern's offsets in flight."""
        self._events.touch(Access.COPY, pattern, line, values, manner=Manner.WRITE)
        flight = self.flights.add(Flight(source, line, pattern.mask.lanes))
        self._flying.append(_Copy(pattern, values, self._groups.open, flight))

    def wait(self, mask: Mask, newest: int | None) -> None:
        """Deliver all but the `newest` closed groups of the lanes in `mask`; None delivers open ones too."""
        groups = self._groups
        self._land(self._flying, lambda copy: copy.flight.waiting & groups.due(copy.group, mask, newest))

    def landing(self, mask: Mask) -> Callable[[Bools], None]:
        """Return what delivers the present copies of the lanes in `mask` to those that it is given."""
        copies = [copy for copy in self._flying if (copy.flight.waiting & mask.lanes).any()]
        return lambda lanes: self._land(copies, lambda copy: copy.flight.waiting & lanes)

    def _land(self, copies: list[_Copy], due: Callable[[_Copy], Bools]) -> None:
        """Deliver copies to the lanes for which they are due."""
        for copy in copies:
            lanes = due(copy)
            if lanes.any():
                pattern, line = self._part(copy.pattern, lanes), copy.flight.line
                self._events.touch(Access.LANDED, pattern, line, copy.values, manner=Manner.WRITE)
                self.shared.store(pattern, copy.values)
                copy.flight.waiting = copy.flight.waiting & ~lanes
        self._flying = [copy for copy in self._flying if copy.flight.waiting.any()]
        self.flights.settle()

    def _part(self, pattern: SharedPattern, lanes: Bools) -> SharedPattern:
        """Return `pattern` for some of its lanes: the same object for the same lanes, so verdicts hold."""
        if lanes.shape == pattern.mask.lanes.shape and np.array_equal(lanes, pattern.mask.lanes):
            return pattern
        address, size, block_bytes = pattern.address, pattern.size, self.shared.block_bytes
        return self._landed.of(
            (pattern.serial, lanes.tobytes()),
            lambda: SharedPattern(address, 0, pattern.mask.of(lanes), size, block_bytes, load=False),
        )
