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
from gpuprof.executor.memory.races import RaceDetector
from gpuprof.executor.memory.shared_memory import SharedMemory, SharedPattern


@dataclass(frozen=True)
class Source:
    """What a copy reads of global memory: `size` bytes at an address, in the lanes that read at all."""

    address: Lanes
    lanes: Bools
    size: int


@dataclass
class _Copy:
    """One `cp.async` of some lanes; `group` is the number of the group it belongs to, in each lane."""

    pattern: SharedPattern
    values: Lanes
    source: Source
    line: int
    group: NDArray[np.int64]
    waiting: Bools


class AsyncCopies:
    """The copies in flight of one batch."""

    def __init__(self, shared: SharedMemory, races: RaceDetector) -> None:
        self.shared = shared
        self.races = races
        self._flying: list[_Copy] = []
        self._committed: NDArray[np.int64] = np.zeros((1, 1, 1), dtype=np.int64)
        self._landed: dict[tuple[int, bytes], SharedPattern] = {}

    @property
    def in_flight(self) -> bool:
        """Whether any copy is."""
        return bool(self._flying)

    def start(self, pattern: SharedPattern, values: Lanes, source: Source, line: int) -> None:
        """Put the copy of `values` to the pattern's offsets in flight."""
        self.races.record(Access.COPY, pattern, line)
        self._flying.append(_Copy(pattern, values, source, line, self._committed, pattern.mask.lanes))

    def still_read(self, start: Lanes, lanes: Bools, size: int) -> tuple[Bools, int] | None:
        """Return the lanes that touch what a copy in flight reads, and its line; None if there are none.

        Args:
            start: Addresses in global memory.
            lanes: Who touches them.
            size: Bytes of each access.
        """
        shape = np.broadcast_shapes(start.shape, lanes.shape)
        touching, places = np.broadcast_to(lanes, shape), np.broadcast_to(start, shape)
        low, high = int(places[touching].min()), int(places[touching].max()) + size
        for copy in self._flying:
            source, reading = copy.source, copy.source.lanes & copy.waiting
            read = np.broadcast_to(source.address, np.broadcast_shapes(source.address.shape, reading.shape))
            read = read[np.broadcast_to(reading, read.shape)]
            read = np.unique(read[(read < high) & (read + source.size > low)])
            if not len(read):
                continue
            # The first copy that ends behind the start of each access.
            nearest = np.minimum(np.searchsorted(read + source.size, places, side="right"), len(read) - 1)
            hit = touching & (read[nearest] < places + size) & (read[nearest] + source.size > places)
            if hit.any():
                return np.asarray(hit), copy.line
        return None

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        step = np.ones((1, 1, 1), dtype=np.int64) if mask.whole else mask.lanes.astype(np.int64)
        self._committed = self._committed + step

    def wait(self, mask: Mask, newest: int | None) -> None:
        """Deliver all but the `newest` closed groups of the lanes in `mask`; None delivers open ones too."""

        def due(copy: _Copy) -> Bools:
            lanes = copy.waiting & mask.lanes
            return lanes if newest is None else lanes & (copy.group < self._committed - newest)

        self._land(self._flying, due)

    def flying(self, mask: Mask) -> Callable[[Bools], None]:
        """Return what delivers the present copies of the lanes in `mask` to those that it is given."""
        copies = [copy for copy in self._flying if (copy.waiting & mask.lanes).any()]
        return lambda lanes: self._land(copies, lambda copy: copy.waiting & lanes)

    def _land(self, copies: list[_Copy], due: Callable[[_Copy], Bools]) -> None:
        """Deliver copies to the lanes for which they are due."""
        for copy in copies:
            lanes = due(copy)
            if lanes.any():
                pattern = self._part(copy.pattern, lanes)
                self.shared.store(pattern, copy.values)
                self.races.record(Access.LANDED, pattern, copy.line)
                copy.waiting = copy.waiting & ~lanes
        self._flying = [copy for copy in self._flying if copy.waiting.any()]

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
