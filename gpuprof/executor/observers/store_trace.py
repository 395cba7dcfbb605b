# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How much a launch stores to each buffer, what without its value, and which reads do not see it.

A launch of control slices moves only the values that decide where threads go. It counts rightly as long as no
other one is asked for.
"""

from collections.abc import Callable, Collection
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Counts
from gpuprof.executor.memory.global_accesses import Cache, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype


class ValueNeeded(Exception):
    """A launch of control slices has come to where a value that it left out decides what happens next."""

    def __init__(self, where: str, line: int) -> None:
        super().__init__(f"line {line} reads an element of {where} whose value decides what happens next")


class ValuelessElements(Observer):
    """Which elements of buffers, bytes of shared and local memory, control slices leave without their value.

    Of global memory, or of what blocks have of their own at these addresses.
    """

    def __init__(self, own: Collection[int] | None = None) -> None:
        self._own = own
        self._marks: dict[int, NDArray[np.bool_]] = {}

    def wants(self, buffer: Any) -> bool:
        if self._own is None:
            return isinstance(buffer, Buffer) and not buffer.read_only
        return buffer.address in self._own

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        """As an observer.

        Raises:
            ValueNeeded: The value decides something, and a store has left it out.
        """
        if not one.address_only and buffer.address in self._marks:
            marks, place = self._at(buffer, one)
            if (marks[place] != 0).any():
                raise ValueNeeded(buffer.name, one.line)

    def write(self, buffer: Any, one: MemoryOperation, values: Any) -> None:
        marks, place = self._at(buffer, one)
        marks[place] = np.full(marks.itemsize, one.address_only).view(marks.dtype)[0]

    def update(self, buffer: Any, one: MemoryOperation, failed: Any = None) -> None:
        self.read(buffer, one)
        self.write(buffer, one, failed)

    def _at(self, buffer: Any, one: MemoryOperation) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the marks, those of an access as one number, and the place of each."""
        item = buffer.item_bytes if isinstance(buffer, Buffer) else 1
        if buffer.address not in self._marks:
            # Padded as the buffer is, for a view of any access size.
            self._marks[buffer.address] = np.zeros(-(-buffer.size // 16) * 16 // item, dtype=np.bool_)
        each = max(1, one.size // item)
        place = one.place if one.size >= item else one.place * one.size // item
        return self._marks[buffer.address].view(moved_dtype(each)), place


class StoredBytes(Observer):
    """Bytes that each block of a batch stores, not by atomics: shape (blocks,), by the buffer's name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Counts] = {}

    def write(self, buffer: Buffer, one: MemoryOperation, values: Any) -> None:
        order = one.order
        if one.mask is not None:
            per_block = np.zeros(order.blocks, dtype=np.int64) + one.mask.thread_count
        else:
            clusters = (one.who // order.block_threads - order.first) // order.layout.blocks
            per_block = np.bincount(clusters, minlength=order.blocks)
        self.by_name[buffer.name] = self.by_name.get(buffer.name, 0) + one.size * per_block


class StaleReads(Observer):
    """Looks for reads through a cache that does not see what the launch has stored, whoever did.

    They are those of one batch, whose `fault` raises what is wrong.
    """

    def __init__(self, cache: Cache, fault: Callable[..., NoReturn]) -> None:
        self._cache = cache
        self._fault = fault

    def wants(self, buffer: Any) -> bool:
        return isinstance(buffer, Buffer) and not buffer.read_only

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        if one.cache is not self._cache:
            return
        elements, each = buffer.elements_at(one.place, one.size)
        stale = np.flatnonzero(buffer.written_now(elements))
        if not stale.size:
            return
        number = int(stale[0]) // each
        start = int(one.place[number]) * one.size
        if self._cache is Cache.TEXTURE:
            kind, text = FaultKind.GLOBAL_RACE, f"reads texel {start // one.size} of {buffer.name} through a"
            text += " texture, whose cache does not see what this launch has written there"
        else:
            kind, text = FaultKind.STALE, f"reads {buffer.place(start)[0]} as what does not change"
            text += " (ld.global.nc), but this launch has stored there: it may get the old value"
        self._fault(kind, text, one.line, one.order.position(int(one.who[number])), buffer.address + start)
