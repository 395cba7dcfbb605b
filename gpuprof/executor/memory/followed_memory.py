# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Memory that knows which of its bits are undefined: what nobody has written, and undefined values put there.

Beside every byte stands one of the same size, with a one for each undefined bit, so that what moves a value
moves its undefined bits too. Of undefined values that were stored, each word of 4 bytes remembers the origin.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.undefined import Origins, Undefined, origins_of
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import Apply, ChunkPattern, SharedMemory, SharedPattern

_WORD_BYTES = 4


@dataclass(frozen=True, eq=False)
class Moved:
    """The undefined bits of what one access moves: shape (blocks or 1, warps or 1, 32 or 1, bytes).

    Likewise the origin of each word; 0 where nobody has written it.
    """

    content: NDArray[np.uint8]
    origin: Origins

    @classmethod
    def of(cls, parts: list[Undefined | None], size: int) -> "Moved":
        """Return the undefined bits of a vector of elements, each of `size` bytes."""
        nothing = np.zeros((1, 1, 1), dtype=f"u{size}")
        bits = [nothing if part is None else part.bits.view(nothing.dtype) for part in parts]
        origin = [np.zeros((1, 1, 1), np.int64) if part is None else part.origin for part in parts]
        whole = np.stack(np.broadcast_arrays(*bits), axis=-1)
        origins = np.stack(np.broadcast_arrays(*origin), axis=-1)
        if size > _WORD_BYTES:
            origins = np.repeat(origins, size // _WORD_BYTES, axis=-1)
        elif len(parts) * size > _WORD_BYTES:
            words = len(parts) * size // _WORD_BYTES
            origins = origins.reshape(*origins.shape[:3], words, -1).max(axis=-1)
        else:
            origins = origins.max(axis=-1, keepdims=True)
        return cls(whole.view(np.uint8), origins)

    def element(self, number: int, size: int, start: NDArray[np.int64], line: int) -> Undefined | None:
        """Return what of one element is undefined."""
        first = number * size
        part = self.content[..., first : first + size]
        if not part.any():
            return None
        bits = np.ascontiguousarray(part).view(f"u{size}")[..., 0]
        known = self._origin_of(first, size)
        own = origins_of(line, start + first + (part != 0).argmax(axis=-1))
        return Undefined(bits, np.where(known != 0, known, own))

    def fresh(self, first: int, size: int) -> Bools:
        """Return the lanes for which `size` bytes from `first` on hold some that nobody has written."""
        part = self.content[..., first : first + size]
        return np.asarray((part != 0).any(axis=-1) & (self._origin_of(first, size) == 0))

    def _origin_of(self, first: int, size: int) -> Origins:
        begin = first // _WORD_BYTES
        return np.asarray(self.origin[..., begin : begin + max(1, size // _WORD_BYTES)].max(axis=-1))


class FollowedSharedMemory(SharedMemory):
    """Shared memory that knows its undefined bits.

    Attributes:
        bits: One for each undefined bit: at the beginning all, since nobody has written anything.
        storing: The undefined bits of what is being stored; None when all of it is defined.
        touched: What the last load, or the last change in place, touched.
    """

    def __init__(self, blocks: int, size: int) -> None:
        super().__init__(blocks, size)
        self.bits = SharedMemory(blocks, size)
        self.storing: Moved | None = None
        self.touched: SharedPattern | ChunkPattern | None = None
        self._origins: Origins | None = None

    def load(self, pattern: SharedPattern) -> Lanes:
        """Return what the lanes read."""
        self.touched = pattern
        return super().load(pattern)

    def load_chunks(self, pattern: ChunkPattern) -> Lanes:
        """Return what the copy engine reads."""
        self.touched = pattern
        return super().load_chunks(pattern)

    def update(self, pattern: SharedPattern, apply: Apply) -> Lanes:
        """Change elements in place; their undefined bits stay as they are."""
        self.touched = pattern
        return super().update(pattern, apply)

    def store(self, pattern: SharedPattern, values: Lanes) -> None:
        """Write values, with the bits that are being stored; asynchronous copies bring defined ones."""
        super().store(pattern, values)
        self.mark(pattern, self.storing)

    def mark(self, pattern: SharedPattern, moved: Moved | None) -> None:
        """Note which bits at a pattern are undefined; None when all of them are defined."""
        if moved is None:
            self.bits.store(pattern, np.zeros((1, 1, 1), dtype=moved_dtype(pattern.size)))
            return
        self.bits.store(pattern, np.ascontiguousarray(moved.content).view(moved_dtype(pattern.size))[..., 0])
        if self._origins is None:
            self._origins = np.zeros(self.content.size // _WORD_BYTES, dtype=np.int64)
        words = self._words(pattern)
        shape = np.broadcast_shapes(words.shape[:3], pattern.mask.lanes.shape, moved.origin.shape[:3])
        chosen = np.broadcast_to(pattern.mask.lanes, shape)
        origin = np.broadcast_to(moved.origin, (*shape, words.shape[3]))[chosen]
        self._origins[np.broadcast_to(words, (*shape, words.shape[3]))[chosen]] = origin

    def store_chunks(self, pattern: ChunkPattern, values: Lanes) -> None:
        """Write what the copy engine brings: global memory is always defined."""
        super().store_chunks(pattern, values)
        self.bits.store_chunks(pattern, np.zeros(values.shape, dtype=values.dtype))

    def moved(self, pattern: SharedPattern) -> Moved | None:
        """Return the undefined bits at a pattern; None when there are none."""
        content = np.ascontiguousarray(self.bits.load(pattern))[..., None].view(np.uint8)
        if not content.any():
            return None
        if self._origins is None:
            return Moved(content, np.zeros((1, 1, 1, 4), dtype=np.int64))
        return Moved(content, self._origins[self._words(pattern)])

    def origin_at(self, block: int, byte: int) -> int:
        """Return the origin of a byte of one block; 0 where nobody has written it."""
        if self._origins is None:
            return 0
        return int(self._origins[(block * self.block_bytes + byte) // _WORD_BYTES])

    def replaced(self, pattern: SharedPattern, *, defined: bool) -> None:
        """After a change in place: its elements are defined, or not at all where any bit was undefined."""
        bits = np.zeros((1, 1, 1), dtype=moved_dtype(pattern.size))
        if not defined and (moved := self.moved(pattern)) is not None:
            content = np.where(moved.content.any(axis=-1, keepdims=True), np.uint8(0xFF), np.uint8(0))
            whole = np.ascontiguousarray(np.broadcast_to(content, moved.content.shape))
            bits = whole.view(moved_dtype(pattern.size))[..., 0]
        self.bits.store(pattern, bits)

    def _words(self, pattern: SharedPattern) -> NDArray[np.intp]:
        """Return the numbers of the words in the batch: shape (blocks, warps or 1, 32 or 1, words)."""
        index = pattern.index
        if not pattern.per_block:
            elements = self.block_bytes // pattern.size
            index = index + (np.arange(len(self.content)) * elements)[:, None, None]
        first = index * pattern.size // _WORD_BYTES
        return np.asarray(first[..., None] + np.arange(max(1, pattern.size // _WORD_BYTES)))


class FollowedLocalMemory:
    """The undefined bits of local memory: of undefined values stored there, since it starts as zeros."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bits: NDArray[np.uint8] | None = None
        self._origins: Origins = np.zeros(0, dtype=np.int64)

    def load(self, first: NDArray[np.int64], size: int) -> Moved | None:
        """Return the undefined bits of each lane's `size` bytes from `first` on; None when there are none."""
        if self._bits is None:
            return None
        content = self._bits[first[..., None] + np.arange(size)]
        return Moved(content, self._origins[self._words(first, size)]) if content.any() else None

    def store(self, first: NDArray[np.int64], size: int, lanes: Bools, moved: Moved | None) -> None:
        """Keep the undefined bits of what the lanes stored; None when all of it is defined."""
        if self._bits is None:
            if moved is None:
                return
            self._bits = np.zeros(self._size, dtype=np.uint8)
            self._origins = np.zeros(self._size // _WORD_BYTES + 1, dtype=np.int64)
        chosen = np.broadcast_to(lanes, first.shape)
        places = first[chosen][:, None] + np.arange(size)
        if moved is None:
            self._bits[places] = 0
            return
        self._bits[places] = np.broadcast_to(moved.content, (*first.shape, size))[chosen]
        words = self._words(first, size)[chosen]
        self._origins[words] = np.broadcast_to(moved.origin, (*first.shape, words.shape[1]))[chosen]

    @staticmethod
    def _words(first: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        return np.asarray(first[..., None] // _WORD_BYTES + np.arange(max(1, size // _WORD_BYTES)))


@dataclass(frozen=True)
class UndefinedRead:
    """A read of what nobody had written: source line, (block, warp, lane), and byte of shared memory.

    In the place of the byte `ABSENT_LANE` stands for a lane of the warp that took no part.
    """

    line: int
    position: tuple[int, int, int]
    byte: int


@dataclass(eq=False)
class Followed:
    """What is undefined of a batch."""

    shared: FollowedSharedMemory
    local: FollowedLocalMemory
    registers: dict[int, Undefined] = field(default_factory=dict)
    first_read: UndefinedRead | None = None
