# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values go through memory and the frames of calls, and where memory must not get them."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from gpuprof.executor.definedness.operands import (
    RegisterOperand,
    consuming,
    followed,
    places_in,
    require,
    sources_of,
    targets_of,
)
from gpuprof.executor.definedness.undefined import Undefined, bits_dtype, first_origin, of_another_lane
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.program.flow import registers_in
from gpuprof.executor.program.ptx import Imm, Instruction, Mem, Reg, Sym, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.call_steps import frame_slots
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import parts_of

_NONE = np.zeros((1, 1, 1), dtype=np.int64)
_ADDRESS = "accesses memory at"


def load(coder: Coder, item: Instruction, step: Step) -> Step:
    """`ld`, and what loads tiles of matrices: the undefined bits of what is loaded."""
    memory = item.operands[1]
    if "param" in item.opcode and isinstance(memory, Mem) and isinstance(memory.base, Sym):
        return consuming(coder, item, step, (), "")
    masked, places, targets = coder.mask(item), sources_of(coder, item), targets_of(coder, item)

    def loading(batch: Batch) -> None:
        mask, state, before = masked(batch), followed(batch), list(batch.registers)
        require(batch, places, mask.lanes, item.line, _ADDRESS)
        if (origin := state.origin(state.heard(step), item.line)) is not None:
            before = state.on_bits(step, before)
        for target in targets:
            bits = before[target.place.slot]
            value = Undefined(bits.view(bits_dtype(bits.dtype)), origin) if origin is not None else None
            target.put(batch, value, mask)

    return loading


def store(coder: Coder, item: Instruction, step: Step, decode: Callable[[Coder, Instruction], Step]) -> Step:
    """`st`, and what stores tiles: undefined bits go to shared and local memory, to global memory never."""
    values = places_in(coder, item.operands[1:2], item.line)
    others = (name for operand in (item.operands[0], *item.operands[2:]) for name in registers_in(operand))
    places, masked = [RegisterOperand.of(coder, name, item.line) for name in others], coder.mask(item)
    moved, mover, parts = values, step, parts_of(item.operands[1])
    if not {*values}.isdisjoint(places) or len(values) < len(parts) or "async" in item.opcode:
        # Bits move at once; numbers are zeros then, and others are the registers that say where, too.
        registers, (goal, _, *more) = coder.slots.function.registers, item.operands
        beside = [Reg(f"{part.name} beside") if isinstance(part, Reg) else Imm(0) for part in parts]
        registers |= {f"{part.name} beside": registers[part.name] for part in parts if isinstance(part, Reg)}
        value = Vec((*beside,)) if len(beside) > 1 else beside[0]
        moved = places_in(coder, (value,), item.line)
        mover = decode(coder, replace(item, operands=(goal, value, *more)))

    def storing(batch: Batch) -> None:
        mask, state = masked(batch), followed(batch)
        require(batch, places, mask.lanes, item.line, _ADDRESS)
        undefined = (one for place in values if (one := place.undefined(batch)))
        found = [inside for one in undefined if (inside := one.within(mask.lanes))]
        heard = state.heard(step)
        if found:
            registers, origin = list(batch.registers), of_another_lane(first_origin(found))
            for place, at in zip(values, moved, strict=True):
                registers[at.slot] = place.bits(batch)
            state.on_bits(mover, registers)
            state.require_none_stored(origin, item.line)
            for access in heard:
                access.keep(origin)

    return storing


def atomic(coder: Coder, item: Instruction, step: Step) -> Step:
    """`atom` and `red`: their operands must be defined; what they find in shared memory may not be."""
    memory = item.operands[item.opcode[0] == "atom"]
    address = [RegisterOperand.of(coder, name, item.line) for name in registers_in(memory)]
    given = places_in(coder, item.operands[1 + (item.opcode[0] == "atom") :], item.line)
    targets, masked = targets_of(coder, item), coder.mask(item)
    dtype, defines = bits_dtype(ARITHMETIC[item.opcode[-1]]), "exch" in item.opcode

    def following(batch: Batch) -> None:
        mask, state = masked(batch), followed(batch)
        require(batch, address, mask.lanes, item.line, _ADDRESS)
        require(batch, given, mask.lanes, item.line, "gives an atomic operation")
        heard = state.heard(step)
        origin = state.origin(heard, item.line)
        for target in targets:
            value = None
            if origin is not None:
                bits = reduce(np.bitwise_or, (one.bits() for one in heard))
                value = Undefined(bits.view(dtype), origin)
            target.put(batch, value, mask)
        for one in heard:
            change = one.memory.define if defines else one.memory.replace
            change(one.elements, one.size, one.lanes)

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


def _keys(place: RegisterOperand) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("bits", place.slot), ("origin", place.slot)
