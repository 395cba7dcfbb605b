# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Remember who wrote each element of chosen buffers last, and who read one that nobody had written.

Nobody needs to know beforehand which element will be asked for: a wrong result is traced to its store in the
one run that shows it. It costs an integer for each element and a second scatter for each store, so that only
runs that look for an explanation pay for it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.faults import Index
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_accesses import MemoryOperation, Named, Observer
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.moments import Numbers

#: Bits of a stamp that say which instruction of which launch it was; those above them say which thread.
_DEED_BITS = 20


class Deed(Struct, frozen=True):
    """What a thread did to an element."""

    launch: int
    line: int
    thread: Index
    block: Index
    atomic: bool = False


class UnwrittenRead(Struct, frozen=True):
    """The first read of an element that nobody had written."""

    buffer: Buffer
    element: int
    deed: Deed


class Witness(Observer):
    """Remembers the writers of some buffers over one launch or several.

    Of those that are `unwritten` yet it also remembers who read them before they were written.
    """

    def __init__(self, buffers: Sequence[Buffer], unwritten: Sequence[Buffer] = ()) -> None:
        self._watched = {buffer.address for buffer in buffers}
        self._empty = {buffer.address for buffer in unwritten}
        self._stamps: dict[int, NDArray[np.int64]] = {}
        self._deeds: dict[tuple[int, int, bool], int] = {}
        self._launches: list[Named] = []
        self._read: tuple[Buffer, int, int] | None = None

    def begin(self, named: Named) -> None:
        self._launches.append(named)

    def wants(self, buffer: Any) -> bool:
        return buffer.address in self._watched

    def writer(self, buffer: Buffer, element: int) -> Deed | None:
        """Return who changed an element last; None where nobody did."""
        stamps = self._stamps.get(buffer.address)
        return self._deed(int(stamps[element])) if stamps is not None and stamps[element] else None

    def written(self, buffer: Buffer) -> NDArray[np.bool_]:
        """Return which elements of a buffer somebody has written."""
        elements = buffer.size // buffer.item_bytes
        stamps = self._stamps.get(buffer.address)
        return np.zeros(elements, np.bool_) if stamps is None else stamps[:elements] != 0

    @property
    def unwritten_read(self) -> UnwrittenRead | None:
        """The first read of what nobody had written; None where there was none."""
        if self._read is None:
            return None
        buffer, element, stamp = self._read
        deed = self._deed(stamp)
        return UnwrittenRead(buffer, element, deed)

    def write(self, buffer: Buffer, one: MemoryOperation, values: Lanes) -> None:
        self._note_write(buffer, one, atomic=False)

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Bools | None = None) -> None:
        self.read(buffer, one)
        self._note_write(buffer, one, atomic=True)

    def _note_write(self, buffer: Buffer, one: MemoryOperation, *, atomic: bool) -> None:
        stamps = self._stamps_of(buffer)
        elements, each = buffer.elements_at(one.place, one.size)
        stamps[elements] = np.repeat(self._stamped(one.who, one.line, atomic), each)

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        """As an observer: remember the first that finds nothing written, if none was before."""
        if self._read is not None or buffer.address not in self._empty:
            return
        elements, each = buffer.elements_at(one.place, one.size)
        missing = np.flatnonzero(self._stamps_of(buffer)[elements] == 0)
        if missing.size:
            first = int(missing[0])
            stamp = self._stamped(one.who[first // each : first // each + 1], one.line, atomic=False)
            self._read = buffer, int(elements[first]), int(stamp[0])

    def _stamps_of(self, buffer: Buffer) -> NDArray[np.int64]:
        if buffer.address not in self._stamps:
            # Padded as the buffer is, for a view of any access size.
            self._stamps[buffer.address] = np.zeros(buffer.size // buffer.item_bytes + 16, dtype=np.int64)
        return self._stamps[buffer.address]

    def _stamped(self, who: Numbers, line: int, atomic: bool) -> Numbers:
        key = len(self._launches) - 1, line, atomic
        number = self._deeds.setdefault(key, len(self._deeds) + 1)
        return np.asarray(who.astype(np.int64) << _DEED_BITS | number)

    def _deed(self, stamp: int) -> Deed:
        keys = list(self._deeds)
        launch, line, atomic = keys[(stamp & ((1 << _DEED_BITS) - 1)) - 1]
        thread, block = self._launches[launch](stamp >> _DEED_BITS)
        return Deed(launch, line, thread, block, atomic)
