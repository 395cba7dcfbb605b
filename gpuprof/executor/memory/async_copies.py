# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cp.async`: copies to shared memory that arrive when their group is waited for, and not before.

Delivering them at once would hide a missing wait; here the data stays in flight until then, and the race
detector knows which bytes those are.
"""

import numpy as np

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.global_accesses import Manner
from gpuprof.executor.memory.global_flights import CopyGroups, Flight, GlobalFlights, LanePlaces
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import SharedMemory, SharedPattern

#: Parts of patterns that are remembered.
_REMEMBERED_PARTS = 1 << 12


class AsyncCopies:
    """The copies in flight of one batch."""

    def __init__(self, shared: SharedMemory, flights: GlobalFlights, events: Events) -> None:
        self.shared = shared
        self.flights = flights
        self._events = events
        self._groups = CopyGroups(flights.settle)
        self.commit, self.wait, self.landing = self._groups.close, self._groups.wait, self._groups.landing
        self._landed: Kept[SharedPattern] = Kept(_REMEMBERED_PARTS)

    def start(self, pattern: SharedPattern, values: Lanes, line: int, source: LanePlaces) -> None:
        """Put the copy of `values`, as read from its source, to the pattern's offsets in flight."""

        def land(lanes: Bools) -> None:
            part = self._part(pattern, lanes)
            self._events.touch(Access.LANDED, part, line, values, manner=Manner.WRITE)
            self.shared.store(part, values)

        self._events.touch(Access.COPY, pattern, line, values, manner=Manner.WRITE)
        flight = Flight(line, pattern.mask.lanes, source, land)
        self._groups.start(self.flights.add(flight))

    def _part(self, pattern: SharedPattern, lanes: Bools) -> SharedPattern:
        """Return `pattern` for some of its lanes: the same object for the same lanes, so verdicts hold."""
        if lanes.shape == pattern.mask.lanes.shape and np.array_equal(lanes, pattern.mask.lanes):
            return pattern
        address, size, block_bytes = pattern.address, pattern.size, self.shared.block_bytes
        return self._landed.of(
            (pattern.serial, lanes.tobytes()),
            lambda: SharedPattern(address, 0, pattern.mask.of(lanes), size, block_bytes, load=False),
        )
