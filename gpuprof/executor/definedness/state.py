# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is undefined of a batch: of its registers, and of its shared and local memory.

Beside every byte of memory stands one of the same size, with a one for each undefined bit, so that what moves
a value moves its undefined bits too. Of undefined values that were stored, each word of 4 bytes remembers the
origin.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.definedness.undefined import (
    ABSENT_LANE,
    LOCAL,
    REGISTER,
    Origins,
    Undefined,
    either,
    line_and_byte,
    never_written,
    origins_of,
)
from gpuprof.executor.faults import FaultKind, SharedByte
from gpuprof.executor.lanes.masks import WARP, Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access, Listener
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedMemory, SharedPattern
from gpuprof.executor.steps.batch import Batch, OwnMemory
from gpuprof.executor.steps.spaces import GenericSpace, GlobalSpace, LocalSpace, SharedSpace, Space

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

    def first(self, position: tuple[int, int, int], shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the number of the first undefined byte of a lane, and its origin; the batch has a shape."""
        content, origin = (
            np.broadcast_to(part, (*shape, part.shape[-1]))[position] for part in (self.content, self.origin)
        )
        byte = int(np.argmax(content != 0))
        return byte, int(origin[min(byte // _WORD_BYTES, len(origin) - 1)])

    def _origin_of(self, first: int, size: int) -> Origins:
        begin = first // _WORD_BYTES
        return np.asarray(self.origin[..., begin : begin + max(1, size // _WORD_BYTES)].max(axis=-1))


class SharedBits:
    """Which bits of shared memory are undefined: at the beginning all, since nobody has written anything."""

    def __init__(self, blocks: int, size: int) -> None:
        self.bits = SharedMemory(blocks, size)
        self.bits.content[:] = 0xFF
        self._origins: Origins | None = None

    def mark(self, pattern: SharedPattern | ChunkPattern, moved: Moved | None = None) -> None:
        """Note which bits at a pattern are undefined; None when all of them are defined."""
        if isinstance(pattern, ChunkPattern):
            self.bits.store_chunks(pattern, np.zeros((1, 1), dtype=moved_dtype(pattern.size)))
            return
        if moved is None:
            self.bits.store(pattern, np.zeros((1, 1, 1), dtype=moved_dtype(pattern.size)))
            return
        self.bits.store(pattern, np.ascontiguousarray(moved.content).view(moved_dtype(pattern.size))[..., 0])
        if self._origins is None:
            self._origins = np.zeros(self.bits.content.size // _WORD_BYTES, dtype=np.int64)
        words = self._words(pattern)
        shape = np.broadcast_shapes(words.shape[:3], pattern.mask.lanes.shape, moved.origin.shape[:3])
        chosen = np.broadcast_to(pattern.mask.lanes, shape)
        origin = np.broadcast_to(moved.origin, (*shape, words.shape[3]))[chosen]
        self._origins[np.broadcast_to(words, (*shape, words.shape[3]))[chosen]] = origin

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
        return int(self._origins[(block * self.bits.block_bytes + byte) // _WORD_BYTES])

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
        first = self.bits.places(pattern) * pattern.size // _WORD_BYTES
        return np.asarray(first[..., None] + np.arange(max(1, pattern.size // _WORD_BYTES)))


class LocalBits:
    """The undefined bits of local memory: at the beginning all."""

    def __init__(self, size: int) -> None:
        self._bits = np.full(size, 0xFF, dtype=np.uint8)
        self._origins: Origins = np.full(size // _WORD_BYTES + 1, LOCAL, dtype=np.int64)

    def load(self, first: NDArray[np.int64], size: int) -> Moved | None:
        """Return the undefined bits of each lane's `size` bytes from `first` on; None when there are none."""
        content = self._bits[first[..., None] + np.arange(size)]
        return Moved(content, self._origins[self._words(first, size)]) if content.any() else None

    def store(self, first: NDArray[np.int64], size: int, lanes: Bools, moved: Moved | None) -> None:
        """Keep the undefined bits of what the lanes stored; None when all of it is defined."""
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


#: The undefined bits that some lanes moved, and where each lane's access starts in its space.
Source = tuple[Bools, Moved, NDArray[np.int64]]


class UndefinedBits(Listener):
    """What is undefined of a batch, whose shared memory it hears of.

    Reading what nobody has written is no fault by itself, nor is a lane that takes no part in a shuffle:
    `remark` says where the first such value was read.
    """

    passed_on = frozenset(
        {FaultKind.UNINITIALISED_SHARED, FaultKind.UNINITIALISED_LOCAL, FaultKind.ABSENT_LANE}
    )

    def __init__(self, batch: Batch, own: OwnMemory, unwritten: Mapping[int, np.dtype[Any]]) -> None:
        self._batch = batch
        self.shape = batch.blocks, batch.warps, WARP
        self.shared = SharedBits(batch.blocks, batch.layout.all_bytes)
        for part in own.reserved(batch.layout):
            self.shared.bits.content[:, part] = 0
        self.local = LocalBits(batch.local.size)
        self.registers = {slot: never_written(dtype) for slot, dtype in unwritten.items()}
        self._read_first: tuple[int, tuple[int, int, int], int] | None = None

    # What the scheduler asks for.

    def saved(self) -> dict[int, Undefined]:
        """Return what is undefined of the registers now."""
        return dict(self.registers)

    def restore(self, saved: dict[int, Undefined], lanes: Bools) -> None:
        """Put back what some lanes had."""
        for slot in saved.keys() | self.registers.keys():
            kept, others = saved.get(slot), self.registers.get(slot)
            if kept is not others:
                after = either(kept and kept.within(lanes), others and others.within(~lanes))
                self.registers.pop(slot, None)
                if after is not None:
                    self.registers[slot] = after

    # What happens to shared memory.

    def touch(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern,
        line: int,
        values: Lanes | None = None,
    ) -> None:
        """As a listener: what is stored counts as defined until a rule says otherwise, and so do copies."""
        if access is Access.SOURCE:
            self._require_source(pattern, line)
        elif access in (Access.LANDED, Access.BULK) or (access is Access.WRITE and values is not None):
            self.shared.mark(pattern)

    def _require_source(self, pattern: SharedPattern | ChunkPattern, line: int) -> None:
        """What the copy engine reads of shared memory goes to global memory: it must be defined."""
        assert isinstance(pattern, ChunkPattern)
        bits = self.shared.bits.load_chunks(pattern)
        wrong = np.ascontiguousarray(bits)[..., None].view(np.uint8) != 0
        if wrong.any():
            row, chunk, byte = (int(i) for i in np.argwhere(wrong)[0])
            block = int(pattern.block[chunk]) if pattern.leading > 1 else row
            position = (block, int(pattern.warp[chunk]), int(pattern.lane[chunk]))
            place = int(pattern.start[chunk]) + byte
            origin = self.shared.origin_at(block, place) or int(origins_of(line, place))
            self.refuse(origin, position, line, "copies to global memory")

    # What rules do.

    def found(self, space: Space, address: Lanes, mask: Mask) -> list[Source]:
        """Return the undefined bits of what lanes find at addresses of a space; of global memory none."""
        sources: list[Source] = []
        for part, lanes, place in _places(space, address, mask):
            moved: Moved | None = None
            if isinstance(part, SharedSpace):
                pattern = part.examined(self._batch, place, lanes, load=True)
                moved, start = self.shared.moved(pattern), pattern.address
            elif isinstance(part, LocalSpace):
                start = self._local_bytes(part, place, lanes)
                moved = self.local.load(start, part.request.size)
            if moved is not None:
                sources.append((lanes.lanes, moved, start))
        return sources

    def put(self, space: Space, address: Lanes, mask: Mask, moved: Moved | None, line: int) -> None:
        """Undefined bits of what was stored go to shared and local memory with it; elsewhere none may go."""
        for part, lanes, place in _places(space, address, mask):
            if isinstance(part, SharedSpace):
                if moved is not None:
                    self.shared.mark(part.examined(self._batch, place, lanes, load=False), moved)
            elif isinstance(part, LocalSpace):
                start = self._local_bytes(part, place, lanes)
                self.local.store(start, part.request.size, lanes.lanes, moved)
            elif isinstance(part, GlobalSpace) and moved is not None:
                wrong = np.asarray(moved.content.any(axis=-1) & lanes.lanes)
                if wrong.any():
                    position = first_true(wrong)
                    buffer = self._batch.memory.nearest(int(self.spread(place)[position]))
                    use = f"stores to {buffer.name if buffer is not None else 'global memory'}"
                    self.refuse(moved.first(position, self.shape)[1], position, line, use)

    def replace(self, space: Space, address: Lanes, mask: Mask, *, defined: bool) -> None:
        """After a change of shared memory in place: see `SharedBits.replaced`."""
        for part, lanes, place in _places(space, address, mask):
            if isinstance(part, SharedSpace):
                self.shared.replaced(part.examined(self._batch, place, lanes, load=False), defined=defined)

    def _local_bytes(self, space: LocalSpace, address: Lanes, mask: Mask) -> NDArray[np.int64]:
        """Return where in the batch's local memory each lane's bytes start."""
        own = self._batch.lane_numbers * self._batch.local_bytes
        return np.where(mask.lanes, own + address + space.request.offset, 0)

    def note(self, line: int, position: tuple[int, int, int], byte: int) -> None:
        """Remember the first read of what nobody had written: of a byte, or of an `ABSENT_LANE`."""
        if self._read_first is None:
            self._read_first = line, position, byte

    @property
    def remark(self) -> str:
        """Say where the batch read what nobody had written; empty where it did not."""
        if self._read_first is None:
            return ""
        line, position, byte = self._read_first
        thread, block = self._batch.names(position)
        where = f"thread {thread} of block {block}"
        if byte == ABSENT_LANE:
            what = f"a lane that takes no part in the exchange ({where})"
        else:
            what = f"byte {byte} of shared memory, which was never written ({where})"
        return f"Line {line} reads {what}; no result depends on it"

    def require(self, value: Undefined | None, lanes: Bools, line: int, use: str) -> None:
        """Report the first of these lanes whose value is undefined; `use` says what it does with it."""
        if value is not None and (wrong := value.lanes & lanes).any():
            position = first_true(wrong)
            self.refuse(int(self.spread(value.origin)[position]), position, line, use)

    def refuse(self, origin: int, position: tuple[int, int, int], line: int, use: str) -> NoReturn:
        """Raise the fault of a thread that lets an undefined value count."""
        batch = self._batch
        batch.events.hear("settle")  # what went wrong before comes first
        depends = f"{use} a value that depends on"
        if origin == REGISTER:
            detail = f"{depends} a register to which nothing had been written"
            batch.fault(FaultKind.UNINITIALISED_REGISTER, detail, line, position)
        if origin == LOCAL:
            detail = f"{depends} a variable or array of its own to which nothing had been written"
            batch.fault(FaultKind.UNINITIALISED_LOCAL, detail, line, position)
        read_at, byte = line_and_byte(origin)
        if byte == ABSENT_LANE:
            detail = f"{depends} a lane that took no part when line {read_at} read it"
            batch.fault(FaultKind.ABSENT_LANE, detail, line, position)
        detail = (
            f"{depends} byte {byte} of shared memory, which line {read_at} read and which was never written"
        )
        place = SharedByte(byte, read=(read_at, use))
        batch.fault(FaultKind.UNINITIALISED_SHARED, detail, line, position, place)

    def spread(self, value: Lanes) -> Lanes:
        """Return a value with an element for every lane of the batch."""
        return np.broadcast_to(value, self.shape)


def size_of(space: Space) -> int:
    """Return the bytes of an access."""
    inner = space.to_global if isinstance(space, GenericSpace) else space
    assert isinstance(inner, GlobalSpace | SharedSpace | LocalSpace)
    return inner.request.size


def _places(space: Space, address: Lanes, mask: Mask) -> Iterator[tuple[Space, Mask, Lanes]]:
    """Yield each space that lanes mean, with those lanes and their addresses there."""
    if isinstance(space, GenericSpace):
        yield from space.parts(address, mask)
    elif not mask.empty:
        yield space, mask, address
