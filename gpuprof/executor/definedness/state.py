# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is undefined of a batch: of its registers, and of its shared and local memory.

Beside every byte of memory stands one of the same size, with a one for each undefined bit, so that what moves
a value moves its undefined bits too. Of undefined values that were stored, each word of 4 bytes remembers the
origin.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

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
    of_another_lane,
    origins_of,
)
from gpuprof.executor.faults import FaultKind, SharedByte
from gpuprof.executor.lanes.masks import Bools, first_true
from gpuprof.executor.lanes.scalars import Lanes, differ
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.accesses import Access, Listener
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.global_accesses import LocalLanes, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedBlocks, SharedMemory, SharedPattern
from gpuprof.executor.steps.batch import Batch, OwnMemory
from gpuprof.executor.steps.coding import Step

_WORD_BYTES = 4
#: What threads do to shared memory themselves.
_OF_LANES = (Access.READ, Access.EXCHANGED, Access.WRITE, Access.ATOMIC, Access.BULK)


class MemoryBits:
    """Which bits of a memory are undefined: at the beginning all, since nobody has written anything.

    It is accessed as elements of some size, by their numbers. Of each word an origin is kept, 0 where nobody
    has written it.
    """

    def __init__(self, bits: NDArray[np.uint8], origin: int) -> None:
        self._bits = bits
        self.origins: Origins = np.full(bits.size // _WORD_BYTES + 1, origin, dtype=np.int64)

    def load(self, index: NDArray[np.intp], size: int) -> NDArray[np.uint8]:
        """Return the undefined bits of elements, byte by byte in one more dimension."""
        content = np.ascontiguousarray(self._bits.view(moved_dtype(size)).take(index))
        return content[..., None].view(np.uint8)

    def define(self, index: NDArray[np.intp], size: int, lanes: Bools) -> None:
        """What lanes store to elements is defined."""
        self._bits.view(moved_dtype(size))[_chosen(index, lanes)] = 0

    def replace(self, index: NDArray[np.intp], size: int, lanes: Bools) -> None:
        """After a change in place: elements are not defined at all where any bit was undefined."""
        chosen = _chosen(index, lanes)
        undefined = self.load(chosen, size).any(axis=-1)
        self._bits.reshape(-1, size)[chosen] = np.where(undefined, np.uint8(0xFF), np.uint8(0))[:, None]


def _chosen(index: NDArray[np.intp], lanes: Bools) -> NDArray[np.intp]:
    shape = np.broadcast_shapes(index.shape, lanes.shape)
    return np.broadcast_to(index, shape)[np.broadcast_to(lanes, shape)]


def _words(index: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Return the numbers of the words of elements, in one more dimension."""
    return np.asarray((index * size // _WORD_BYTES)[..., None] + np.arange(max(1, size // _WORD_BYTES)))


class Heard(NamedTuple):
    """What lanes access of shared or local memory in the present instruction: elements, by their numbers.

    `start` is the byte where each lane's begins.
    """

    lanes: Bools
    memory: MemoryBits
    elements: NDArray[np.intp]
    size: int
    start: NDArray[np.int64]

    def bits(self) -> Lanes:
        """Return the undefined bits that lanes find, of others 0."""
        bits = self.memory.load(self.elements, self.size).view(f"u{self.size}")[..., 0]
        return np.where(self.lanes, bits, bits.dtype.type(0))

    def keep(self, origin: Origins) -> None:
        """Remember the origins of what lanes have stored."""
        words = _words(self.elements, self.size)
        shape = np.broadcast_shapes(words.shape[:-1], self.lanes.shape, origin.shape)
        chosen = np.broadcast_to(self.lanes, shape)
        words = np.broadcast_to(words, (*shape, words.shape[-1]))[chosen]
        self.memory.origins[words] = np.broadcast_to(origin, shape)[chosen][:, None]


class _DefinedMemory(Observer):
    """Global memory as one sees it who moves undefined bits in the place of values: there are none.

    `wrong` are the first lanes that store some, with the addresses of all.
    """

    #: Not that of shared memory, which is 0, nor of local memory.
    address, size, allotted, read_only = 1 << 20, 0, None, False

    def __init__(self) -> None:
        self.wrong: tuple[Bools, Lanes] | None = None

    def wants(self, buffer: Any) -> bool:
        return buffer is self

    def write(self, buffer: Any, one: MemoryOperation, values: Lanes) -> None:
        assert one.mask is not None
        wrong = np.asarray(differ(values, np.zeros_like(values[:1, :1, :1])) & one.mask.lanes)
        if self.wrong is None and wrong.any():
            self.wrong = wrong, self.address + one.index * one.size

    # As a buffer, and what finds it.

    def holding(self, low: int, high: int) -> Self:
        return self

    def view(self, size: int) -> Self:
        self.size = size
        return self

    def take(self, index: NDArray[np.intp]) -> Lanes:
        return np.zeros(index.shape, dtype=moved_dtype(self.size))

    def store(self, index: NDArray[np.intp], values: Lanes, size: int) -> None:
        """What is stored has been looked at."""


class UndefinedBits(Listener, Observer):
    """What is undefined of a batch, whose shared and local memory it hears of.

    Reading what nobody has written is no fault by itself, nor is a lane that takes no part in a shuffle:
    `remark` says where the first such value was read.
    """

    passed_on = frozenset(
        {FaultKind.UNINITIALISED_SHARED, FaultKind.UNINITIALISED_LOCAL, FaultKind.ABSENT_LANE}
    )

    def __init__(self, batch: Batch, own: OwnMemory, unwritten: Mapping[int, np.dtype[Any]]) -> None:
        self._batch = batch
        #: Undefined bits in the place of the content.
        self._shared = SharedMemory(batch.blocks, batch.shared.size)
        self._shared.content.fill(0xFF)
        self._local = LocalLanes(np.full_like(batch.local.content, 0xFF), batch.local.starts)
        self._global = _DefinedMemory()
        self.shared = MemoryBits(self._shared.content.reshape(-1), 0)
        self.local = MemoryBits(self._local.content, LOCAL)
        for part in own.reserved(batch.layout):
            self._shared.content[:, part] = 0
        self.registers = {slot: never_written(dtype) for slot, dtype in unwritten.items()}
        self._read_first: tuple[int, tuple[int, int, int], int] | None = None
        self._heard: list[Heard] = []
        self.absent: Bools | None = None

    # What the scheduler asks for.

    def saved(self) -> dict[int, Undefined]:
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

    # What happens to memory.

    def wants(self, buffer: Any) -> bool:
        return isinstance(buffer, LocalLanes)

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        assert one.mask is not None
        self._heard.append(Heard(one.mask.lanes, self.local, one.index, one.size, one.index * one.size))

    def write(self, buffer: Any, one: MemoryOperation, values: Lanes) -> None:
        self.read(buffer, one)
        self.local.define(one.index, one.size, self._heard[-1].lanes)

    def update(self, buffer: Any, one: MemoryOperation, failed: Bools | None = None) -> None:
        self.read(buffer, one)

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
            return
        index = self._shared.places(pattern)
        lanes = pattern.mask.lanes if isinstance(pattern, SharedPattern) else np.ones((1, 1), np.bool_)
        if access in _OF_LANES and isinstance(pattern, SharedPattern):
            self._heard.append(Heard(lanes, self.shared, index, pattern.size, pattern.address))
        if access in (Access.LANDED, Access.BULK) or (access is Access.WRITE and values is not None):
            self.shared.define(index, pattern.size, lanes)

    def _require_source(self, pattern: SharedPattern | ChunkPattern, line: int) -> None:
        """What the copy engine reads of shared memory goes to global memory: it must be defined."""
        assert isinstance(pattern, ChunkPattern)
        content = self.shared.load(self._shared.places(pattern), pattern.size)
        if content.any():
            row, chunk, byte = (int(i) for i in np.argwhere(content)[0])
            block = int(pattern.block[chunk]) if pattern.leading > 1 else row
            position = (block, int(pattern.warp[chunk]), int(pattern.lane[chunk]))
            place = int(pattern.start[chunk]) + byte
            known = self.shared.origins[(block * self._shared.block_bytes + place) // _WORD_BYTES]
            origin = int(known or origins_of(line, place))
            self.refuse(origin, position, line, "copies to global memory")

    # What rules do.

    def heard(self, step: Step) -> list[Heard]:
        """Run a step; return what it accesses of shared and local memory."""
        self._heard = []
        step(self._batch)
        return self._heard

    def on_bits(self, step: Step, registers: list[Lanes]) -> list[Lanes]:
        """Run a step on undefined bits in the place of values, also in memory; return the registers after."""
        batch, beside = self._batch, {**self._beside, "registers": list(registers)}
        own = {name: getattr(batch, name) for name in beside}
        vars(batch).update(beside)
        try:
            step(batch)
            return batch.registers
        finally:  # a warp operation may first have to wait
            vars(batch).update(own)

    @cached_property
    def _beside(self) -> dict[str, Any]:
        """What a batch has where undefined bits move: nobody hears of that, and nothing is counted."""
        batch, blocks = self._batch, SharedBlocks(self._shared, self._batch.layout)
        tally = Tally(len(batch.tally.events), len(batch.tally.threads), batch.blocks)
        events = Events(batch.events.order, blocks, self._local, tally)
        events.observe([self._global], [self._global])  # type: ignore[list-item]
        memories = {"memory": self._global, "shared": self._shared, "local": self._local}
        return {**memories, "tally": tally, "events": events}

    def require_none_stored(self, origin: Origins, line: int) -> None:
        """Report the first undefined bits that went to global memory, which have such origins."""
        if self._global.wrong is not None:
            lanes, address = self._global.wrong
            position = first_true(lanes)
            buffer = self._batch.memory.nearest(int(self._batch.spread(address)[position]))
            use = f"stores to {buffer.name if buffer is not None else 'global memory'}"
            self.refuse(int(self._batch.spread(origin)[position]), position, line, use)

    def origin(self, heard: Sequence[Heard], line: int) -> Origins | None:
        """Return the origin of what is undefined of all that lanes found, for each lane; None if nothing is.

        The first that nobody had written is noted.
        """
        origin = np.zeros((1, 1, 1), dtype=np.int64)
        for one in heard:
            content = one.memory.load(one.elements, one.size)
            wrong = np.asarray(content.any(axis=-1) & one.lanes)
            if wrong.any():
                first = (content != 0).argmax(axis=-1)
                words = one.memory.origins[_words(one.elements, one.size)]
                known = np.take_along_axis(words, first[..., None] // _WORD_BYTES, axis=-1)[..., 0]
                own = np.where(known != 0, known, origins_of(line, one.start + first))
                if (fresh := wrong & (known == 0)).any():
                    position = first_true(fresh)
                    self.note(line, position, line_and_byte(int(self._batch.spread(own)[position]))[1])
                origin = np.where(wrong & (origin == 0), own, origin)
        return of_another_lane(origin) if origin.any() else None

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
            self.refuse(int(self._batch.spread(value.origin)[position]), position, line, use)

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
