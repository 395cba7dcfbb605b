# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The heap from which `malloc` in a kernel takes memory: one buffer, of which parts are given out."""

from typing import Self

import numpy as np

from gpuprof.executor.memory.global_memory import GlobalMemory

#: What a device has if the host does not ask for another size.
HEAP_BYTES = 8 << 20
_ALIGNMENT = 16
#: Bytes between two pieces that belong to nobody, so that an access past the end of one is told.
_GAP = 16
#: What fresh memory holds: nothing that a kernel may count on.
_FRESH = 0xCB
_NAME = "the heap of malloc"


class Heap:
    """Gives out memory to threads; it stays theirs from launch to launch.

    Freed memory is given out again only once no other is left, so that its use after `free` is told. `pieces`
    are the bytes of what is given out, by address.
    """

    def __init__(self, memory: GlobalMemory) -> None:
        self.buffer = memory.allocate(np.full(HEAP_BYTES, _FRESH, np.uint8), _NAME)
        self.buffer.allotted = self._allotted = np.zeros(HEAP_BYTES + _ALIGNMENT, dtype=np.bool_)
        self.pieces: dict[int, int] = {}
        self._next = 0
        self._freed: list[tuple[int, int]] = []

    @classmethod
    def of(cls, memory: GlobalMemory) -> Self:
        """Return the heap of a device, made when it is first asked for."""
        if not isinstance(memory.heap, cls):
            memory.heap = cls(memory)
        return memory.heap

    def take(self, size: int) -> int:
        """Return the address of `size` bytes; 0 where there are none, as `malloc` does."""
        if size <= 0:
            return 0
        room = -(-size // _ALIGNMENT) * _ALIGNMENT + _GAP
        start = self._room(room)
        if start < 0:
            return 0
        self._allotted[start : start + size] = True
        self.buffer.changeable(1)[start : start + size] = _FRESH
        self.pieces[self.buffer.address + start] = size
        return self.buffer.address + start

    def give_back(self, address: int) -> bool:
        """Free what was given out at an address; False when nothing was."""
        size = self.pieces.pop(address, None)
        if size is None:
            return False
        start = address - self.buffer.address
        self._allotted[start : start + size] = False
        self._freed.append((start, -(-size // _ALIGNMENT) * _ALIGNMENT + _GAP))
        return True

    def _room(self, size: int) -> int:
        """Return where so many bytes are free; -1 when nowhere."""
        if self._next + size <= HEAP_BYTES:
            self._next += size
            return self._next - size
        for i, (start, room) in enumerate(self._freed):
            if room >= size:
                self._freed[i] = (start + size, room - size)
                return start
        return -1


def pieces_of(heap: object) -> dict[int, int]:
    """Return what a memory's heap has given out, if it has one: bytes by address."""
    return dict(heap.pieces) if isinstance(heap, Heap) else {}


def leak(pieces: dict[int, int], before: dict[int, int]) -> str:
    """Say what a launch took from the heap and did not free; empty where it freed all."""
    kept = [size for address, size in pieces.items() if address not in before]
    if not kept:
        return ""
    return f"Of what malloc gave out, {sum(kept):,} bytes in {len(kept):,} pieces are not freed"
