# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode what calls become: frames kept and taken back, memory of the stack, jumps by a register."""

from collections.abc import Callable

import numpy as np

from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.program.calls import STACK, STACK_POINTER
from gpuprof.executor.program.ptx import Imm, Instruction, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, computing

_I64 = np.dtype(np.int64)
#: Calls of itself that a function may be in. A card's stack, 1,024 bytes unless the host asks for more, holds
#: fewer; only one whose recursion does not end comes this far.
MOST_CALLS = 4096


def save_frame(coder: Coder, item: Instruction) -> Step:
    """Before a call between functions that call each other: keep the registers that are needed after it."""
    slots, line = frame_slots(coder, item), item.line

    def step(batch: Batch) -> None:
        frames, mask = batch.frames, batch.mask
        text = f"calls a function that calls itself, {MOST_CALLS:,} deep: the recursion may not end"
        batch.refuse(FaultKind.ENDLESS, mask, frames.depth >= MOST_CALLS, line, text)
        for slot in slots:
            frames.keep(slot, batch.registers[slot], mask)
        frames.move(mask, 1)

    return step


def restore_frame(coder: Coder, item: Instruction) -> Step:
    """After such a call: take the registers back."""
    slots = frame_slots(coder, item)
    (frame,) = item.operands
    assert isinstance(frame, Vec)
    writes = [coder.target(register, item) for register in frame.items]

    def step(batch: Batch) -> None:
        frames, mask = batch.frames, batch.mask
        frames.move(mask, -1)
        for slot, write in zip(slots, writes, strict=True):
            write(batch, frames.kept(slot), mask)

    return step


def frame_slots(coder: Coder, item: Instruction) -> list[int]:
    """Return the slots of the registers of a frame."""
    (frame,) = item.operands
    assert isinstance(frame, Vec)
    return [coder.slots.register(r.name, item.line) for r in frame.items if isinstance(r, Reg)]


def allocate_on_stack(coder: Coder, item: Instruction) -> Step:
    """`alloca`: memory of the thread's own until its function returns; its address is one of local memory."""
    align = item.operands[2] if len(item.operands) > 2 else Imm(8)
    if not isinstance(align, Imm):
        raise UnsupportedInstruction(item.name, item.line)
    read, write = coder.reader(item.operands[1], _I64, item), coder.target(item.operands[0], item)
    pointer = Reg(STACK_POINTER)
    top, move = coder.reader(pointer, _I64, item), coder.target(pointer, item)
    masked, line, alignment = coder.mask(item), item.line, align.bits
    end = coder.slots.offsets[STACK.name] + STACK.size

    def step(batch: Batch) -> None:
        mask = masked(batch)
        start = -(-top(batch) // alignment) * alignment
        after = start + read(batch)
        over = np.asarray((after > end) | (after < start))
        text = f"takes more of its stack than the {STACK.size:,} bytes that a launch has if nobody asks"
        batch.refuse(FaultKind.OUT_OF_BOUNDS, mask, over, line, text)
        write(batch, start, mask)
        move(batch, after, mask)

    return step


def save_stack(coder: Coder, item: Instruction) -> Step:
    """`stacksave`: where the stack ends now."""
    return computing(coder, item, coder.reader(Reg(STACK_POINTER), _I64, item))


def restore_stack(coder: Coder, item: Instruction) -> Step:
    """`stackrestore`: the stack ends where it ended then."""
    read, write = coder.reader(item.operands[0], _I64, item), coder.target(Reg(STACK_POINTER), item)
    masked = coder.mask(item)
    return lambda batch: write(batch, read(batch), masked(batch))


def no_target(coder: Coder, item: Instruction) -> Step:
    """What runs after a switch whose register has a value that no label or function has."""
    read: Callable[[Batch], Lanes] = coder.reader(item.operands[0], _I64, item)
    line = item.line

    def step(batch: Batch) -> None:
        position = batch.mask.first()
        value = int(batch.spread(read(batch))[position])
        text = f"jumps or calls by a register to {value:#x}, where no function that fits and no label is"
        batch.fault(FaultKind.BAD_TARGET, text, line, position, value)

    return step
