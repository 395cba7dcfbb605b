# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the blocks of a launch do to global memory: who stores what and when, and who needs whose work.

A trace is kept of a launch that runs without values. It tells whether every element of an output is stored
to, which blocks have a part in an element, and from whom a block takes what it reads. A second one, of the
few blocks that are then run with values, tells which elements have had all their stores.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_accesses import MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.moments import Numbers

#: Elements of each buffer whose stores are remembered one by one.
_PROBES = 64
_HOLLOW, _PROBED = 1, 2
#: Of the type that it is added to: with any other NumPy takes ten times as long.
_ONCE = np.uint16(1)
#: What spreads probes over a buffer, and over the rows of a matrix in it: the golden ratio's fraction.
_STRIDE = 0.6180339887498949

#: Tells the time of each block of a batch: how often its warps have run a basic block in which none waits.
Clock = Callable[[], Numbers]


class ValueNeeded(Exception):
    """A launch without values has come to where one decides what happens next."""

    def __init__(self, where: str, line: int) -> None:
        super().__init__(f"line {line} reads an element of {where} whose value decides what happens next")


@dataclass(frozen=True)
class Taken:
    """A block reads what another one has stored.

    Attributes:
        time: When it reads, by its own time.
        writer: The other block's number in the launch.
        stored: When that stored it, by the writer's time.
        control: Whether what is read decides what the reader does next.
    """

    time: int
    writer: int
    stored: int
    control: bool


class StoreMap:
    """Who stored to each element of one buffer.

    Args:
        buffer: The buffer.
        blocks: Blocks of the launch.
        in_full: Whether it is asked who stored, and when; else only how often, and whether values.

    Attributes:
        times: How many instructions stored to each element.
        probes: Elements of which every store is remembered: its block, by its number in the launch, and when.
    """

    def __init__(self, buffer: Buffer, blocks: int, *, in_full: bool) -> None:
        self._inside = buffer.size // buffer.item_bytes
        # Padded as the buffer is, for a view of any access size.
        elements = self._inside + 16
        self.times: NDArray[np.uint16] = np.zeros(elements, dtype=np.uint16)
        self._marks: NDArray[np.uint8] = np.zeros(elements, dtype=np.uint8)
        self.probes: dict[int, list[tuple[int, int]]] = {}
        self._in_full = in_full
        known = elements if in_full else 0
        self._writer = np.zeros(known, dtype=np.min_scalar_type(blocks))
        self._event: NDArray[np.uint16] | NDArray[np.uint32] = np.zeros(known, dtype=np.uint16)
        if in_full:
            for i in range(min(_PROBES, self._inside)):
                self.probes[int((i * _STRIDE + 0.01) % 1.0 * self._inside)] = []
            self._marks[list(self.probes)] = _PROBED
        #: The first block of each event's batch, and when its blocks stored; -1 for those that did not.
        self._events: list[tuple[int, Numbers]] = []

    def store(
        self, elements: Numbers, blocks: Numbers, first: int, now: Numbers, hollow: Bools, *, combines: bool
    ) -> None:
        """Blocks store to elements in one instruction of a batch.

        Args:
            elements: The elements.
            blocks: Who stores, by the number in the batch: equally many elements each, one after the other.
            first: The batch's first block.
            now: The time of each of its blocks.
            hollow: Whether each block stores no value, or none that counts.
            combines: Whether several lanes may store to one element.
        """
        if combines:
            np.add.at(self.times, elements, _ONCE)
        else:
            self.times[elements] += 1
        each = len(elements) // len(blocks)
        marks = self._marks[elements]
        if hollow.all():
            self._marks[elements] = marks | _HOLLOW
        elif hollow.any() or (not combines and (marks & _HOLLOW).any()):
            kept = marks if combines else marks & _PROBED
            self._marks[elements] = np.where(np.repeat(hollow[blocks], each), marks | _HOLLOW, kept)
        if not self._in_full:
            return
        number = len(self._events)
        if number == 1 << 16:
            self._event = self._event.astype(np.uint32)
        owners = np.repeat((blocks + first + 1).astype(self._writer.dtype), each)
        self._writer[elements], self._event[elements] = owners, number
        storing = np.bincount(blocks, minlength=len(now)) > 0
        self._events.append((first, np.where(storing, now, -1)))
        for place in np.flatnonzero(marks & _PROBED).tolist():
            block = int(blocks[place // each])
            self.probes[int(elements[place])].append((block + first, int(now[block])))

    def is_hollow(self, elements: Numbers) -> bool:
        """Tell whether any of these elements was stored without its value."""
        return bool((self._marks[elements] & _HOLLOW).any())

    def stored(self) -> NDArray[np.uint16]:
        """Return how many instructions stored to each element of the buffer."""
        return self.times[: self._inside]

    def stored_hollow(self) -> NDArray[np.bool_]:
        """Return which elements of the buffer hold no value that was stored."""
        return np.asarray(self._marks[: self._inside] & _HOLLOW != 0)

    def writers(self, elements: Numbers) -> tuple[Numbers, Numbers]:
        """Return for each element the block that stored last, or -1, and the number of that event."""
        return self._writer[elements].astype(np.int64) - 1, self._event[elements].astype(np.int64)

    def time_of(self, event: int, block: int) -> int:
        """Return when a block stored in an event."""
        first, times = self._events[event]
        return int(times[block - first])

    def times_of(self, block: int) -> list[int]:
        """Return when a block stored to the buffer."""
        found = [
            int(times[block - first]) for first, times in self._events if first <= block < first + len(times)
        ]
        return [time for time in found if time >= 0]


class GridTrace(Observer):
    """What the blocks of one launch do.

    Args:
        blocks: Blocks of the launch.
        warps: Warps of each.

    Attributes:
        hollow: Whether no values move at present.
        in_full: Whether it is of the whole grid: every value that decides anything must be there, and who
            takes from whom is kept.
        trusted: For each block whether what it stores counts.
        maps: Of each buffer that was stored to, who did, by its address.
        takes: For each block, by its number in the launch, what it read that others had stored, in order.
        overlooks: Whether the copy engine took what was stored, which `takes` has nothing of: of any value
            that came from another block only what told that it is there.
    """

    def __init__(self, blocks: int, warps: int) -> None:
        self.blocks = blocks
        self.warps = warps
        self.hollow = False
        self.in_full = False
        self.overlooks = False
        self._watched: set[int] = set()
        self.trusted: Bools = np.ones(blocks, dtype=np.bool_)
        self.maps: dict[int, StoreMap] = {}
        self.takes: defaultdict[int, list[Taken]] = defaultdict(list)
        self._clocks: dict[int, Clock] = {}
        self._latest: dict[tuple[int, int, bool], int] = {}

    def follow(self, first: int, clock: Clock) -> None:
        """From now on a batch that begins with block number `first` tells the time."""
        self._clocks[first] = clock

    def keep_only(self, addresses: Sequence[int]) -> None:
        """Forget what was done to all buffers but those at these addresses."""
        self.maps = {address: self.maps[address] for address in addresses if address in self.maps}
        self.takes.clear()

    def watch(self, buffers: Sequence[Buffer]) -> None:
        """From now on these buffers are watched, too."""
        self._watched.update(buffer.address for buffer in buffers)

    def wants(self, buffer: Buffer) -> bool:
        """As an observer."""
        return buffer.address in self._watched

    def write(self, buffer: Buffer, one: MemoryOperation, values: Lanes) -> None:
        """As an observer."""
        self._store(buffer, one, combines=False)

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Bools | None = None) -> None:
        """As an observer."""
        if not one.hollow:  # else it adds to whatever is there
            self.read(buffer, one)
            self._take_turns(one)
        self._store(buffer, one, combines=True)

    def _store(self, buffer: Buffer, one: MemoryOperation, *, combines: bool) -> None:
        order = one.order
        if buffer.address not in self.maps:
            self.maps[buffer.address] = StoreMap(buffer, self.blocks, in_full=self.in_full)
        elements, _ = buffer.elements_at(one.place, one.size)
        blocks, now = one.who // order.block_threads - order.first, self._clocks[order.first]()
        hollow = ~self.trusted[order.first : order.first + len(now)] | one.hollow
        self.maps[buffer.address].store(elements, blocks, order.first, now, hollow, combines=combines)

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        """As an observer.

        Raises:
            ValueNeeded: The value decides something, and is not there.
        """
        known = self.maps.get(buffer.address)
        if known is None or not self.in_full:
            return
        order = one.order
        elements, each = buffer.elements_at(one.place, one.size)
        if not one.hollow and known.is_hollow(elements):
            raise ValueNeeded(buffer.name, one.line)
        writers, events = known.writers(elements)
        blocks = one.who // order.block_threads
        readers = np.repeat(blocks, each) if each > 1 else blocks
        foreign = np.flatnonzero((writers >= 0) & (writers != readers))
        if not foreign.size:
            return
        now = self._clocks[order.first]()
        found = np.stack([readers[foreign], writers[foreign], events[foreign]])
        for reader, writer, event in np.unique(found, axis=1).T.tolist():
            stored = known.time_of(event, writer)
            self._take(reader, int(now[reader - order.first]), writer, stored, control=not one.hollow)

    def _take_turns(self, one: MemoryOperation) -> None:
        """Threads update a place in one instruction, in turn: each finds what the one before it left."""
        if not self.in_full:
            return
        order, place = one.order, one.place
        by_place = np.argsort(place, kind="stable")
        blocks = (one.who // order.block_threads)[by_place]
        same = np.diff(place[by_place]) == 0
        after = np.flatnonzero(same & (blocks[1:] != blocks[:-1])) + 1
        if after.size:
            now = self._clocks[order.first]()
            pairs = np.unique(np.stack([blocks[after], blocks[after - 1]]), axis=1)
            for reader, writer in pairs.T.tolist():
                times = int(now[reader - order.first]), int(now[writer - order.first])
                self._take(reader, times[0], writer, times[1], control=not one.hollow)

    def _take(self, reader: int, time: int, writer: int, stored: int, *, control: bool) -> None:
        key = reader, writer, control
        if stored > self._latest.get(key, -1):
            self._latest[key] = stored
            self.takes[reader].append(Taken(time, writer, stored, control=control))
