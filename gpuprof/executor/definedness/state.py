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
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern
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


class MemoryBits:
    """Which bits of a memory are undefined: at the beginning all, since nobody has written anything.

    It is accessed as elements of some size, by their numbers. Of each word an origin is kept.
    """

    def __init__(self, size: int, origin: int) -> None:
        self._bits = np.full(size, 0xFF, dtype=np.uint8)
        self.origins: Origins = np.full(size // _WORD_BYTES + 1, origin, dtype=np.int64)

    def load(self, index: NDArray[np.intp], size: int) -> Moved | None:
        """Return the undefined bits of elements; None when there are none."""
        content = np.ascontiguousarray(self._bits.view(moved_dtype(size)).take(index))
        found = content[..., None].view(np.uint8)
        return Moved(found, self.origins[_words(index, size)]) if found.any() else None

    def store(self, index: NDArray[np.intp], size: int, lanes: Bools, moved: Moved | None) -> None:
        """Keep the undefined bits of what lanes stored; None when all of it is defined."""
        parts = [] if moved is None else [moved.content.shape[:-1], moved.origin.shape[:-1]]
        shape = np.broadcast_shapes(index.shape, lanes.shape, *parts)
        chosen = np.broadcast_to(lanes, shape)
        index = np.broadcast_to(index, shape)[chosen]
        if moved is None:
            self._bits.view(moved_dtype(size))[index] = 0
            return
        bits = np.ascontiguousarray(moved.content).view(moved_dtype(size))[..., 0]
        self._bits.view(moved_dtype(size))[index] = np.broadcast_to(bits, shape)[chosen]
        words = _words(index, size)
        self.origins[words] = np.broadcast_to(moved.origin, (*shape, words.shape[1]))[chosen]

    def replace(self, index: NDArray[np.intp], size: int, lanes: Bools, *, defined: bool) -> None:
        """After a change in place: elements are defined, or not at all where any bit was undefined."""
        moved = None if defined else self.load(index, size)
        if moved is not None:
            whole = np.where(moved.content.any(axis=-1, keepdims=True), np.uint8(0xFF), np.uint8(0))
            moved = Moved(np.broadcast_to(whole, moved.content.shape), moved.origin)
        self.store(index, size, lanes, moved)


def _words(index: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Return the numbers of the words of elements, in one more dimension."""
    return np.asarray((index * size // _WORD_BYTES)[..., None] + np.arange(max(1, size // _WORD_BYTES)))


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
        self.shared = MemoryBits(batch.shared.content.size, 0)
        self.local = MemoryBits(batch.local.size, LOCAL)
        for part in own.reserved(batch.layout):
            starts = np.arange(batch.blocks)[:, None] * batch.shared.block_bytes
            self.shared.store(starts + np.arange(part.start, part.stop), 1, np.ones((1, 1), np.bool_), None)
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
            index = self._batch.shared.places(pattern)
            lanes = pattern.mask.lanes if isinstance(pattern, SharedPattern) else np.ones((1, 1), np.bool_)
            self.shared.store(index, pattern.size, lanes, None)

    def _require_source(self, pattern: SharedPattern | ChunkPattern, line: int) -> None:
        """What the copy engine reads of shared memory goes to global memory: it must be defined."""
        assert isinstance(pattern, ChunkPattern)
        moved = self.shared.load(self._batch.shared.places(pattern), pattern.size)
        if moved is not None:
            row, chunk, byte = (int(i) for i in np.argwhere(moved.content)[0])
            block = int(pattern.block[chunk]) if pattern.leading > 1 else row
            position = (block, int(pattern.warp[chunk]), int(pattern.lane[chunk]))
            place = int(pattern.start[chunk]) + byte
            known = self.shared.origins[(block * self._batch.shared.block_bytes + place) // _WORD_BYTES]
            origin = int(known or origins_of(line, place))
            self.refuse(origin, position, line, "copies to global memory")

    # What rules do.

    def found(self, space: Space, address: Lanes, mask: Mask) -> list[Source]:
        """Return the undefined bits of what lanes find at addresses of a space; of global memory none."""
        sources: list[Source] = []
        for part, lanes, place in _places(space, address, mask):
            if not isinstance(part, GlobalSpace):
                memory, index, start = self._at(part, lanes, place)
                if (moved := memory.load(index, size_of(part))) is not None:
                    sources.append((lanes.lanes, moved, start))
        return sources

    def put(self, space: Space, address: Lanes, mask: Mask, moved: Moved | None, line: int) -> None:
        """Undefined bits of what was stored go to shared and local memory with it; elsewhere none may go."""
        for part, lanes, place in _places(space, address, mask):
            if not isinstance(part, GlobalSpace):
                memory, index, _ = self._at(part, lanes, place)
                memory.store(index, size_of(part), lanes.lanes, moved)
            elif moved is not None and (wrong := np.asarray(moved.content.any(axis=-1) & lanes.lanes)).any():
                position = first_true(wrong)
                buffer = self._batch.memory.nearest(int(self.spread(place)[position]))
                use = f"stores to {buffer.name if buffer is not None else 'global memory'}"
                self.refuse(moved.first(position, self.shape)[1], position, line, use)

    def replace(self, space: Space, address: Lanes, mask: Mask, *, defined: bool) -> None:
        """After a change of memory in place: see `MemoryBits.replace`."""
        for part, lanes, place in _places(space, address, mask):
            if not isinstance(part, GlobalSpace):
                memory, index, _ = self._at(part, lanes, place)
                memory.replace(index, size_of(part), lanes.lanes, defined=defined)

    def _at(
        self, space: Space, mask: Mask, address: Lanes
    ) -> tuple[MemoryBits, NDArray[np.intp], NDArray[np.int64]]:
        """Return the memory that lanes access, their elements there, and the bytes where these start."""
        if isinstance(space, SharedSpace):
            pattern = space.examined(self._batch, address, mask, load=True)
            return self.shared, self._batch.shared.places(pattern), pattern.address
        assert isinstance(space, LocalSpace)
        own = self._batch.lane_numbers * self._batch.local_bytes
        start = np.where(mask.lanes, own + address + space.request.offset, 0)
        return self.local, start // space.request.size, start

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
