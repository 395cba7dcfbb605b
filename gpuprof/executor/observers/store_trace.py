# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which elements of global memory a launch stores to, and which of them without their value.

A launch of control slices moves only the values that decide where threads go. It counts rightly as long as no
other one is asked for, and what it never stores to is never written.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools, Counts
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_accesses import LocalLanes, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.shared_memory import SharedBlocks

_STORED, _VALUELESS = 1, 2


class ValueNeeded(Exception):
    """A launch of control slices has come to where a value that it left out decides what happens next."""

    def __init__(self, where: str, line: int) -> None:
        super().__init__(f"line {line} reads an element of {where} whose value decides what happens next")


class StoreTrace(Observer):
    """What one launch of control slices does to some buffers."""

    def __init__(self, buffers: list[Buffer]) -> None:
        self._watched = {buffer.address for buffer in buffers}
        self._marks: dict[int, NDArray[np.uint8]] = {}

    def wants(self, buffer: Any) -> bool:
        """As an observer."""
        return buffer.address in self._watched

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        """As an observer.

        Raises:
            ValueNeeded: The value decides something, and is not there.
        """
        marks = self._marks.get(buffer.address)
        if marks is None or one.address_only:
            return
        elements, _ = buffer.elements_at(one.place, one.size)
        if (marks[elements] & _VALUELESS).any():
            raise ValueNeeded(buffer.name, one.line)

    def write(self, buffer: Buffer, one: MemoryOperation, values: Lanes) -> None:
        """As an observer."""
        if buffer.address not in self._marks:
            # Padded as the buffer is, for a view of any access size.
            self._marks[buffer.address] = np.zeros(buffer.size // buffer.item_bytes + 16, dtype=np.uint8)
        elements, _ = buffer.elements_at(one.place, one.size)
        self._marks[buffer.address][elements] = _STORED | _VALUELESS if one.address_only else _STORED

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Bools | None = None) -> None:
        """As an observer."""
        self.read(buffer, one)
        self.write(buffer, one, one.index)

    def stored(self, buffer: Buffer) -> NDArray[np.bool_]:
        """Return which elements of a buffer were stored to."""
        elements = buffer.size // buffer.item_bytes
        marks = self._marks.get(buffer.address)
        return np.zeros(elements, np.bool_) if marks is None else marks[:elements] != 0


class ValuelessBytes(Observer):
    """Which bytes of one batch's memory a control slice has left without their value.

    Of the `spaces`, of "shared" and "local", whose content decides anything.
    """

    def __init__(self, spaces: Collection[str]) -> None:
        self._spaces = spaces
        self._marks: dict[int, NDArray[np.bool_]] = {}

    def wants(self, buffer: Any) -> bool:
        """As an observer."""
        return isinstance(buffer, SharedBlocks | LocalLanes) and buffer.space in self._spaces

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        """As an observer.

        Raises:
            ValueNeeded: The value decides something, and a store has left it out.
        """
        if not one.address_only and self._of(buffer, one.size)[one.place].any():
            raise ValueNeeded(f"{buffer.space} memory", one.line)

    def write(self, buffer: Any, one: MemoryOperation, values: Any) -> None:
        """As an observer."""
        self._of(buffer, one.size)[one.place] = one.address_only

    def update(self, buffer: Any, one: MemoryOperation, failed: Any = None) -> None:
        """As an observer."""
        self.read(buffer, one)
        self.write(buffer, one, failed)

    def _of(self, buffer: Any, size: int) -> NDArray[np.bool_]:
        if buffer.address not in self._marks:
            self._marks[buffer.address] = np.zeros(buffer.size, dtype=np.bool_)
        return self._marks[buffer.address].reshape(-1, size)


class StoredBytes(Observer):
    """Bytes that each block of a batch stores, not by atomics: shape (blocks,), by the buffer's name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Counts] = {}

    def write(self, buffer: Buffer, one: MemoryOperation, values: Any) -> None:
        """As an observer."""
        order = one.order
        if one.mask is not None:
            per_block = np.zeros(order.blocks, dtype=np.int64) + one.mask.thread_count
        else:
            clusters = (one.who // order.block_threads - order.first) // order.layout.blocks
            per_block = np.bincount(clusters, minlength=order.blocks)
        self.by_name[buffer.name] = self.by_name.get(buffer.name, 0) + one.size * per_block
