# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values go through memory and the frames of calls, and where memory must not get them."""

from collections.abc import Sequence

import numpy as np

from gpuprof.executor.definedness.operands import (
    RegisterOperand,
    consuming,
    followed,
    places_in,
    require,
    target_of,
    targets_of,
)
from gpuprof.executor.definedness.state import Moved, Source
from gpuprof.executor.definedness.undefined import Undefined, bits_dtype, either, line_and_byte
from gpuprof.executor.lanes.masks import Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Reg, Sym
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.call_steps import frame_slots
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand, parts_of, space_of

_NONE = np.zeros((1, 1, 1), dtype=np.int64)
_ADDRESS = "accesses memory at"


def load(coder: Coder, item: Instruction, step: Step) -> Step:
    """`ld`: the undefined bits of what is loaded."""
    memory = memory_operand(item.operands[1], item)
    if "param" in item.opcode and isinstance(memory.base, Sym):
        return consuming(coder, item, step, (), "")
    masked = coder.mask(item)
    access = _Access(coder, item, memory, item.operands[0], "load", item.operands[0])

    def following(batch: Batch) -> None:
        mask = masked(batch)
        address = access.address(batch, mask)
        step(batch)
        access.bring(batch, mask, address)

    return following


def store(coder: Coder, item: Instruction, step: Step) -> Step:
    """`st`: undefined bits go to shared and local memory with their values, and to global memory never."""
    access = _Access(coder, item, memory_operand(item.operands[0], item), item.operands[1], "store")
    values = [places_in(coder, (part,), item.line) for part in access.parts]
    masked, dtype = coder.mask(item), access.dtype

    def following(batch: Batch) -> None:
        mask = masked(batch)
        address = access.address(batch, mask)
        parts = [place[0].read_as(batch, dtype) if place else None for place in values]
        undefined = any(part is not None for part in parts)
        step(batch)
        moved = Moved.of(parts, dtype.itemsize) if undefined else None
        followed(batch).put(access.space, address, mask, moved, item.line)

    return following


def atomic(coder: Coder, item: Instruction, step: Step) -> Step:
    """`atom` and `red`: their operands must be defined; what they find in shared memory may not be."""
    returns = item.opcode[0] == "atom"
    memory = memory_operand(item.operands[1 if returns else 0], item)
    given = item.operands[2 if returns else 1 :]
    access = _Access(coder, item, memory, given[0], "atomic", item.operands[0] if returns else None)
    places, masked = places_in(coder, given, item.line), coder.mask(item)
    defines = "exch" in item.opcode

    def following(batch: Batch) -> None:
        mask = masked(batch)
        address = access.address(batch, mask)
        require(batch, places, mask.lanes, item.line, "gives an atomic operation")
        step(batch)
        access.bring(batch, mask, address)
        followed(batch).replace(access.space, address, mask, defined=defines)

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


class _Access:
    """A load, store or atomic operation of `values`; what it finds goes `into` registers."""

    def __init__(
        self,
        coder: Coder,
        item: Instruction,
        memory: Mem,
        values: Operand,
        kind: str,
        into: Operand | None = None,
    ) -> None:
        self.line = item.line
        self.parts: Sequence[Operand] = parts_of(values)
        self.dtype = ARITHMETIC[item.opcode[-1]]
        size = self.dtype.itemsize * len(self.parts)
        self.space = space_of(coder, item, memory, size, kind, counted=False)
        #: Elements that count as read.
        self._wanted = [i for i, part in enumerate(self.parts) if kind == "atomic" or isinstance(part, Reg)]
        base = memory.base
        self._places = [RegisterOperand.of(coder, base.name, item.line)] if isinstance(base, Reg) else []
        self._read_address = address_reader(coder, item, memory)
        self._targets = [
            (number, target_of(coder, item, part.name))
            for number, part in enumerate(parts_of(into) if into is not None else ())
            if isinstance(part, Reg)
        ]

    def address(self, batch: Batch, mask: Mask) -> Lanes:
        """Return the address, which must be defined, before its register is overwritten."""
        require(batch, self._places, mask.lanes, self.line, _ADDRESS)
        return self._read_address(batch)

    def bring(self, batch: Batch, mask: Mask, address: Lanes) -> None:
        """Note what is undefined of what the lanes have found."""
        sources = followed(batch).found(self.space, address, mask)
        for source in sources:
            self._note(batch, source)
        for number, target in self._targets:
            value: Undefined | None = None
            for lanes, moved, start in sources:
                part = moved.element(number, self.dtype.itemsize, start, self.line)
                if part is not None:  # as signed as what is loaded, so that both are extended alike
                    part = Undefined(part.bits.view(bits_dtype(self.dtype)), part.origin).within(lanes)
                value = either(value, part)
            target.put(batch, value, mask)

    def _note(self, batch: Batch, source: Source) -> None:
        """Remember the first read of what nobody had written."""
        (lanes, moved, start), size, state = source, self.dtype.itemsize, followed(batch)
        for number in self._wanted:
            fresh = moved.fresh(number * size, size) & lanes
            if fresh.any():
                position = first_true(fresh)
                part = moved.element(number, size, start, self.line)
                assert part is not None
                _, byte = line_and_byte(int(state.spread(part.origin)[position]))
                state.note(self.line, position, byte)
                return


def _keys(place: RegisterOperand) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("bits", place.slot), ("origin", place.slot)
