# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values go through memory and the frames of calls, and where memory must not get them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.definedness.operands import (
    RegisterOperand,
    Target,
    followed,
    places_in,
    refuse,
    require,
    require_defined,
    spread,
    target_of,
    targets_of,
)
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.lanes.undefined import Undefined, bits_dtype, either, line_and_byte, origins_of
from gpuprof.executor.memory.followed_memory import Moved, UndefinedRead
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern
from gpuprof.executor.memory.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.call_steps import frame_slots
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand

_NONE = np.zeros((1, 1, 1), dtype=np.int64)
_ADDRESS = "accesses memory at"
#: Spaces that are always defined.
_DEFINED = frozenset({"global", "const", "param"})


def load(coder: Coder, item: Instruction, step: Step) -> Step:
    """`ld`: the undefined bits of what is loaded."""
    memory = memory_operand(item.operands[1], item)
    access = _Access(coder, item, memory, item.operands[0])
    targets = access.targets(coder, item)
    masked = coder.mask(item)

    def following(batch: Batch) -> None:
        mask = masked(batch)
        address = access.address(batch, mask)
        where = access.local_bytes(batch, mask, address)
        followed(batch).shared.touched = None
        step(batch)
        sources = access.moved(batch, mask, where)
        for number, target in targets:
            access.put(batch, number, target, sources, mask)

    return following


def store(coder: Coder, item: Instruction, step: Step) -> Step:
    """`st`: undefined bits go to shared and local memory with their values, and to global memory never."""
    memory = memory_operand(item.operands[0], item)
    access = _Access(coder, item, memory, item.operands[1])
    values = [places_in(coder, (part,), item.line) for part in access.parts]
    masked, dtype = coder.mask(item), access.dtype

    def following(batch: Batch) -> None:
        mask, shared = masked(batch), followed(batch).shared
        address = access.address(batch, mask)
        where, elsewhere = access.local_bytes(batch, mask, address), access.global_lanes(mask, address)
        parts = [place[0].read_as(batch, dtype) if place else None for place in values]
        undefined = any(part is not None for part in parts)
        moved = Moved.of(parts, dtype.itemsize) if undefined else None
        shared.storing = moved
        step(batch)
        shared.storing = None
        if where is not None:
            followed(batch).local.store(where[1], access.size, where[0], moved)
        for part in parts:
            if part is not None and elsewhere is not None and (wrong := part.lanes & elsewhere).any():
                use = f"stores to {_buffer_name(batch, address, first_true(wrong))}"
                require_defined(batch, part, elsewhere, item.line, use)

    return following


def atomic(coder: Coder, item: Instruction, step: Step) -> Step:
    """`atom` and `red`: their operands must be defined; what they find in shared memory may not be."""
    returns = item.opcode[0] == "atom"
    memory = memory_operand(item.operands[1 if returns else 0], item)
    given = item.operands[2 if returns else 1 :]
    access = _Access(coder, item, memory, given[0], reads_all=True)
    found = item.operands[0]
    into = found.items if isinstance(found, Vec) else (found,)
    targets = [
        (number, target_of(coder, item, part.name))
        for number, part in enumerate(into)
        if isinstance(part, Reg)
    ]
    places, masked = places_in(coder, given, item.line), coder.mask(item)
    defines = "exch" in item.opcode

    def following(batch: Batch) -> None:
        mask, shared = masked(batch), followed(batch).shared
        address = access.address(batch, mask)
        require(batch, places, mask.lanes, item.line, "gives an atomic operation")
        where = access.local_bytes(batch, mask, address)
        shared.touched = None
        step(batch)
        sources = access.moved(batch, mask, where)
        if isinstance(shared.touched, SharedPattern):
            shared.replaced(shared.touched, defined=defines)
        for number, target in targets:
            access.put(batch, number, target, sources, mask)

    return following


def save_frame(coder: Coder, item: Instruction, step: Step) -> Step:
    """Undefined bits are kept with their registers."""
    slots = frame_slots(coder, item)
    places = [RegisterOperand(slot, coder.slots.kept[slot]) for slot in slots]

    def following(batch: Batch) -> None:
        frames = batch.frames
        for place in places:
            found, keys = place.undefined(batch), _keys(place)
            if found is None and not frames.holds(keys[0]):
                continue
            bits = found.bits if found is not None else np.zeros((1, 1, 1), bits_dtype(place.kept))
            frames.keep(keys[0], bits, batch.mask)
            frames.keep(keys[1], found.origin if found is not None else _NONE, batch.mask)
        step(batch)

    return following


def restore_frame(coder: Coder, item: Instruction, step: Step) -> Step:
    """Undefined bits come back with their registers."""
    targets = targets_of(coder, item)

    def following(batch: Batch) -> None:
        step(batch)
        for target in targets:
            bits, origin = _keys(target.place)
            found = None
            if batch.frames.holds(bits):
                found = Undefined(batch.frames.kept(bits), batch.frames.kept(origin))
            target.put(batch, found, batch.mask)

    return following


def require_defined_source(batch: Batch, pattern: SharedPattern | ChunkPattern | None, line: int) -> None:
    """What the copy engine reads of shared memory goes to global memory: it must be defined."""
    if not isinstance(pattern, ChunkPattern):
        return
    bits = followed(batch).shared.bits.load_chunks(pattern)
    wrong = np.ascontiguousarray(bits)[..., None].view(np.uint8) != 0
    if wrong.any():
        row, chunk, byte = (int(i) for i in np.argwhere(wrong)[0])
        block = int(pattern.block[chunk]) if pattern.leading > 1 else row
        position = (block, int(pattern.warp[chunk]), int(pattern.lane[chunk]))
        place = int(pattern.start[chunk]) + byte
        origin = followed(batch).shared.origin_at(block, place) or int(origins_of(line, place))
        refuse(batch, origin, position, line, "copies to global memory")


#: The undefined bits that some lanes moved, and where each lane's access starts in its space.
_Source = tuple[Bools, Moved, NDArray[np.int64]]


class _Access:
    """A load, store or atomic operation."""

    def __init__(
        self, coder: Coder, item: Instruction, memory: Mem, values: Operand, *, reads_all: bool = False
    ) -> None:
        self.line = item.line
        self.parts: Sequence[Operand] = values.items if isinstance(values, Vec) else (values,)
        self.dtype = ARITHMETIC[item.opcode[-1]]
        self.size = self.dtype.itemsize * len(self.parts)
        self._space = next((part for part in item.opcode[1:] if part in {*_DEFINED, "shared", "local"}), "")
        self._wanted = [i for i, part in enumerate(self.parts) if reads_all or isinstance(part, Reg)]
        self._offset = memory.offset
        self._places = (
            [RegisterOperand.of(coder, memory.base.name, item.line)] if isinstance(memory.base, Reg) else []
        )
        is_parameter = "param" in item.opcode and not self._places
        self._read_address = None if is_parameter else address_reader(coder, item, memory)

    def targets(self, coder: Coder, item: Instruction) -> list[tuple[int, Target]]:
        """Return the registers that get the elements, each with its number."""
        named = ((i, part.name) for i, part in enumerate(self.parts) if isinstance(part, Reg))
        return [(i, target_of(coder, item, name)) for i, name in named]

    def address(self, batch: Batch, mask: Mask) -> NDArray[np.int64]:
        """Return the address in its space, which must be defined, before its register is overwritten."""
        require(batch, self._places, mask.lanes, self.line, _ADDRESS)
        if self._read_address is None:
            return np.zeros((1, 1, 1), dtype=np.int64)
        return np.asarray(self._read_address(batch).astype(np.int64) + self._offset)

    def local_bytes(
        self, batch: Batch, mask: Mask, address: NDArray[np.int64]
    ) -> tuple[Bools, NDArray[np.int64]] | None:
        """Return the lanes that go to local memory, and where in the batch's each one's bytes start."""
        lanes = mask.lanes
        if self._space == "":
            lanes = lanes & _inside(address, LOCAL_WINDOW)
            address = address - LOCAL_WINDOW
        elif self._space != "local":
            return None
        if not lanes.any():
            return None
        own = batch.lane_numbers * batch.local_bytes
        return lanes, np.where(lanes, own + address, 0)

    def global_lanes(self, mask: Mask, address: NDArray[np.int64]) -> Bools | None:
        """Return the lanes that go to global memory; None if there are none."""
        if self._space == "":
            elsewhere = _inside(address, LOCAL_WINDOW) | _inside(address, SHARED_WINDOW)
            return np.asarray(mask.lanes & ~elsewhere)
        return mask.lanes if self._space in _DEFINED else None

    def moved(self, batch: Batch, mask: Mask, where: tuple[Bools, NDArray[np.int64]] | None) -> list[_Source]:
        """Return the undefined bits of what the lanes have found, by space."""
        state = followed(batch)
        sources: list[_Source] = []
        pattern = state.shared.touched
        if isinstance(pattern, SharedPattern) and (found := state.shared.moved(pattern)) is not None:
            sources.append((pattern.mask.lanes, found, pattern.address))
            if state.first_read is None:
                self._note(batch, pattern, found)
        if where is not None and (found := state.local.load(where[1], self.size)) is not None:
            sources.append((where[0], found, where[1]))
        return sources

    def put(self, batch: Batch, number: int, target: Target, sources: list[_Source], mask: Mask) -> None:
        """Note what of an element is undefined."""
        value: Undefined | None = None
        for lanes, found, start in sources:
            part = found.element(number, self.dtype.itemsize, start, self.line)
            if part is not None:  # as signed as what is loaded, so that both are extended alike
                part = Undefined(part.bits.view(bits_dtype(self.dtype)), part.origin).within(lanes)
            value = either(value, part)
        target.put(batch, value, mask)

    def _note(self, batch: Batch, pattern: SharedPattern, found: Moved) -> None:
        """Remember the first read of what nobody had written."""
        size = self.dtype.itemsize
        for number in self._wanted:
            fresh = found.fresh(number * size, size) & pattern.mask.lanes
            if fresh.any():
                position = first_true(fresh)
                part = found.element(number, size, pattern.address, self.line)
                assert part is not None
                _, byte = line_and_byte(int(spread(part.origin, batch)[position]))
                followed(batch).first_read = UndefinedRead(self.line, position, byte)
                return


def _buffer_name(batch: Batch, address: NDArray[np.int64], position: tuple[int, int, int]) -> str:
    """Return what holds the address of a thread in global memory."""
    buffer = batch.memory.nearest(int(spread(address, batch)[position]))
    return buffer.name if buffer is not None else "global memory"


def _inside(address: Lanes, window: int) -> Bools:
    return np.asarray((address >= window) & (address < window + WINDOW_BYTES))


def _keys(place: RegisterOperand) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("bits", place.slot), ("origin", place.slot)
