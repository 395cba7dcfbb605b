# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each step of a skeleton needs to know to be repeated: what it reads, and what must not move for it.

Where a loop's turns repeat, a register holds more by the same amount after each of them. How much more the
target of an instruction holds then follows from its sources.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.instruction_table import TABLE
from gpuprof.executor.arithmetic.mnemonic import Compute, Mnemonic, NotInTable
from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Mem, Not, Operand, Reg, Vec
from gpuprof.executor.program.skeleton import Accesses, Bone, Role
from gpuprof.executor.steps.coding import Coder

#: What does the same in every turn if its operands are the same: beside what it makes of these, it changes
#: the state of mbarriers and nothing else that outlasts it.
_SAME_BY_OPERANDS = frozenset({"membar", "fence", "shfl", "vote", "match", "activemask", "redux", "elect"})
_ON_MBARRIERS = frozenset({"arrive", "expect_tx", "complete_tx", "try_wait", "test_wait"})
#: Spaces whose content nobody changes.
_CONSTANT = frozenset({"param", "const"})
_BOOL = np.dtype(np.bool_)


@dataclass(frozen=True)
class Motion:
    """What a step reads and writes.

    Attributes:
        known: Whether anything is known of what it does when its operands move.
        guard: The slot of its guard, if it has one; `negated` when it is `@!p`.
        fixed: Slots that must hold the same in every turn.
        stepped: Slots that say where in global memory a bulk copy begins: they may move by whole chunks.
        targets: Slots that it writes, each with whether lanes that do not run it keep what they have.
        operation: The arithmetic that makes the first target from `sources`; empty where it is the same if
            all that is read is.
        sources: Slots, and as what they are read.
        compute: The arithmetic, on arrays.
        flags: Of its opcode.
        result: The type of what it computes.
    """

    known: bool = True
    guard: int | None = None
    negated: bool = False
    fixed: tuple[int, ...] = ()
    stepped: tuple[int, ...] = ()
    targets: tuple[tuple[int, bool], ...] = ()
    operation: str = ""
    sources: tuple[tuple[int, np.dtype[Any]], ...] = ()
    compute: Compute | None = None
    flags: tuple[str, ...] = ()
    result: np.dtype[Any] = _BOOL


_UNKNOWN = Motion(known=False)


def motion_of(coder: Coder, bone: Bone) -> Motion:
    """Return what is known of a step of a skeleton; it has been decoded."""
    try:
        if isinstance(bone, Accesses):
            return Motion(fixed=_slots(coder, bone.items[0][0], [bone.base]))
        return _of_instruction(coder, *bone)
    except (UnsupportedInstruction, NotInTable, KeyError, IndexError):
        return _UNKNOWN


def motion_of_end(coder: Coder, item: Instruction) -> Motion:
    """Return what is known of what ends a basic block."""
    try:
        return _same(coder, item)
    except (UnsupportedInstruction, KeyError):
        return _UNKNOWN


def _of_instruction(coder: Coder, item: Instruction, role: Role) -> Motion:
    name, words = item.opcode[0], set(item.opcode)
    spaces = [word for word in item.opcode if word in ("shared", "global")]
    if role is Role.HOLLOW and item.opcode[:3] == ("cp", "async", "bulk") and spaces == ["shared", "global"]:
        return _of_bulk_copy(coder, item)
    if role is Role.HOLLOW:
        if name not in ("ld", "st") or "shared" not in words:
            return _UNKNOWN
        bases = [operand.base for operand in item.operands if isinstance(operand, Mem)]
        return Motion(guard=_guard(coder, item), negated=item.negated, fixed=_slots(coder, item, bases))
    if name in TABLE or name in ("mov", "cvta"):
        return _arithmetic(coder, item)
    if name == "mbarrier":
        returns = item.opcode[1] == "arrive" and isinstance(item.operands[0], Reg)
        by_state = item.opcode[1].endswith("_wait") and "parity" not in words
        return _same(coder, item) if item.opcode[1] in _ON_MBARRIERS and not returns | by_state else _UNKNOWN
    warp = name in ("bar", "barrier") and "warp" in words
    if warp or name in _SAME_BY_OPERANDS or (name == "ld" and _CONSTANT & words):
        return _same(coder, item)
    return _UNKNOWN


def _same(coder: Coder, item: Instruction) -> Motion:
    """Return the motion of what does the same if all that it reads is the same."""
    reads, written = reads_and_writes(item)
    return Motion(
        guard=_guard(coder, item),
        negated=item.negated,
        fixed=tuple(coder.slots.register(name, item.line) for name in reads),
        targets=_targets(coder, item, written),
    )


def _of_bulk_copy(coder: Coder, item: Instruction) -> Motion:
    """What it copies may lie anywhere: it is as many bytes, and nothing of it is counted."""
    place = item.operands[1]
    where = place.items[1] if isinstance(place, Vec) else place
    moving = _registers(where)
    fixed = [item.operands[0], *item.operands[2:], *((place.items[0],) if isinstance(place, Vec) else ())]
    return Motion(
        guard=_guard(coder, item),
        negated=item.negated,
        fixed=tuple(
            coder.slots.register(name, item.line) for operand in fixed for name in _registers(operand)
        ),
        stepped=tuple(coder.slots.register(name, item.line) for name in moving),
    )


def _registers(operand: Operand) -> list[str]:
    if isinstance(operand, Reg):
        return [operand.name]
    if isinstance(operand, Mem):
        return _registers(operand.base)
    return [name for part in operand.items for name in _registers(part)] if isinstance(operand, Vec) else []


def _arithmetic(coder: Coder, item: Instruction) -> Motion:
    op = Mnemonic.of(item.opcode)
    if "cc" in item.opcode or op.base in ("addc", "subc", "madc"):
        return _UNKNOWN
    written = reads_and_writes(item)[1]
    targets = _targets(coder, item, written)
    guard = _guard(coder, item)
    if op.base in ("mov", "cvta"):
        target, source = item.operands[:2]
        kind = ARITHMETIC[item.opcode[-1]]
        plain = isinstance(source, Reg) and isinstance(target, Reg) and len(item.operands) == 2
        if not plain or kind.kind not in "iu":
            return _same(coder, item)
        ((slot, _),) = targets
        same_size = coder.slots.kept[slot].itemsize == kind.itemsize
        dtype = coder.slots.kept[slot] if same_size else kind
        if op.base == "cvta":
            dtype = np.dtype(np.int64)
        found = coder.slots.source(source, dtype, item.line).slot
        sources = ((found, dtype),)
        return Motion(True, guard, item.negated, (), (), targets, "mov", sources, result=dtype)
    lowered = TABLE[op.base](op)
    moving = all(kind.kind in "iub" for kind in lowered.sources) and len(written) == 1
    operands = item.operands[1:]
    if not moving or len(operands) != len(lowered.sources) or any(isinstance(one, Not) for one in operands):
        return _same(coder, item)
    read = tuple(
        (coder.slots.source(operand, kind, item.line).slot, kind)
        for operand, kind in zip(operands, lowered.sources, strict=True)
    )
    return Motion(
        guard=guard,
        negated=item.negated,
        targets=targets,
        operation=op.base,
        sources=read,
        compute=lowered.compute,
        flags=op.flags,
        result=lowered.result,
    )


def _guard(coder: Coder, item: Instruction) -> int | None:
    return None if item.guard is None else coder.slots.register(item.guard, item.line)


def _targets(coder: Coder, item: Instruction, names: list[str]) -> tuple[tuple[int, bool], ...]:
    return tuple((coder.slots.register(name, item.line), name in coder.passing) for name in names)


def _slots(coder: Coder, item: Instruction, operands: Sequence[Operand]) -> tuple[int, ...]:
    return tuple(coder.slots.register(one.name, item.line) for one in operands if isinstance(one, Reg))
