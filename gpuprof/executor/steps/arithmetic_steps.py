# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode what computes registers from registers: the table's functions, and moves."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic import floats
from gpuprof.executor.arithmetic.instruction_table import lower
from gpuprof.executor.arithmetic.mnemonic import Lowered, Mnemonic, NotInTable
from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.ptx import Imm, Instruction, Operand, Reg
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, computing

#: Where signedness makes no difference, registers are read as they are kept: signed.
_SIGN_AGNOSTIC = frozenset({"add", "sub", "selp", "and", "or", "xor", "not", "shl", "cnot"})
#: From an opcode without its optional modifiers to (family, count) of what it becomes; as nvdisasm shows it
#: for sm_75 to sm_90.
_SEQUENCES: dict[tuple[str, ...], tuple[tuple[str, int], ...]] = {
    ("fma", "f32"): (("ffma", 1),),
    ("fma", "f32x2"): (("ffma", 2),),
    ("fma", "f64"): (("dfma", 1),),
    ("div", "rn", "f32"): (("ffma", 5),),
    ("rcp", "rn", "f32"): (("ffma", 2),),
    ("sqrt", "rn", "f32"): (("ffma", 2),),
    ("div", "rn", "f64"): (("dfma", 7), ("ffma", 1)),
    ("rcp", "rn", "f64"): (("dfma", 5),),
    ("sqrt", "rn", "f64"): (("dfma", 5),),
}
#: Between what the operands of divisions and roots are far from all that machine code takes a slow way for:
#: subnormal or infinite numbers on the way to a quotient, and integers of more than 32 bits.
_MIDDLING: dict[str, tuple[float, float]] = {
    "f32": (2.0**-48, 2.0**48),
    "f64": (2.0**-480, 2.0**480),
    **dict.fromkeys(("u64", "s64"), (0, 2**32 - 1)),
}


def arithmetic(coder: Coder, item: Instruction) -> Step:
    """Whatever the table has: operands read as it says, its function, the result written."""
    try:
        op, lowered = _lowered(item.opcode)
    except (NotInTable, KeyError, IndexError) as error:
        raise UnsupportedInstruction(item.name, item.line) from error
    carries = "cc" in item.opcode
    operands = list(item.operands)
    if op.base in ("min", "max") and len(operands) == 4:
        lowered = floats.of_three(lowered)
    second = 1 < len(operands) > len(lowered.sources) + 1
    writes_second = None
    if second and lowered.second is not None:
        writes_second = coder.target(operands.pop(1), item)
    sources = [
        coder.predicate(operand, item) if dtype == np.bool_ else coder.reader(operand, dtype, item)
        for operand, dtype in zip(operands[1:], lowered.sources, strict=False)
    ]
    if op.base in ("addc", "subc", "madc"):
        carry = coder.carry
        sources.append(lambda batch: batch.registers[carry])
    if len(sources) != len(lowered.sources) or len(operands) - 1 > len(sources):
        raise UnsupportedInstruction(item.name, item.line)
    step = _compute(coder, item, lowered, sources, writes_second, carries)
    if item.ptx_line and op.base in ("div", "rem", "rcp", "sqrt") and op.type in _MIDDLING:
        step = _watched(coder, item, op, sources, step)
    return _counted(coder, item, step)


@cache
def _lowered(opcode: tuple[str, ...]) -> tuple[Mnemonic, Lowered]:
    op = Mnemonic.of(opcode)
    return op, lower(_signed(op))


def _signed(op: Mnemonic) -> Mnemonic:
    agnostic = op.base in _SIGN_AGNOSTIC or (op.base in ("mul", "mad") and op.flags == ("lo",))
    equality = op.base == "setp" and {"eq", "ne"} & set(op.flags)
    if not (agnostic or equality) or len(op.types) != 1 or op.flags_any("sat", "cc"):
        return op
    if op.type[0] in "ub" and op.type[1:].isdigit():
        return Mnemonic(op.base, op.flags, (f"s{op.type[1:]}",))
    return op


def _compute(
    coder: Coder,
    item: Instruction,
    lowered: Lowered,
    sources: list[Callable[[Batch], Lanes]],
    writes_second: Callable[..., None] | None,
    carries: bool,
) -> Step:
    compute, second, carry = lowered.compute, lowered.second, coder.carry
    write, masked = coder.target(item.operands[0], item), coder.mask(item)
    if len(sources) == 2 and writes_second is None and not carries:
        first, other = sources
        return lambda batch: write(batch, compute(first(batch), other(batch)), masked(batch))

    def step(batch: Batch) -> None:
        values = [source(batch) for source in sources]
        mask = masked(batch)
        also = second(*values) if second is not None and (writes_second or carries) else None
        write(batch, compute(*values), mask)
        if writes_second is not None:
            writes_second(batch, also, mask)
        elif carries and also is not None:
            batch.registers[carry] = np.where(mask.lanes, also, batch.registers[carry])

    return step


def _watched(
    coder: Coder, item: Instruction, op: Mnemonic, sources: list[Callable[[Batch], Lanes]], step: Step
) -> Step:
    """Note whether all operands are such that machine code takes no slow way."""
    masked, line, (least, most) = coder.mask(item), item.ptx_line, _MIDDLING[op.type]
    size = np.abs if op.is_float and op.base != "sqrt" else np.asarray

    def watched(batch: Batch) -> None:
        middling = batch.tally.middling
        if middling.get(line, True):
            values, lanes = (size(source(batch)) for source in sources), masked(batch).lanes
            middling[line] = all(bool((~lanes | (x >= least) & (x <= most)).all()) for x in values)
        step(batch)

    return watched


def _counted(coder: Coder, item: Instruction, step: Step) -> Step:
    """Predicated fused multiply-adds are counted as they run; the others, per basic block."""
    found = fused_multiply_adds(item)
    if item.guard is None or not found:
        return step
    sites = [(coder.site(family, item), times) for family, times in found]
    masked = coder.mask(item)

    def counted(batch: Batch) -> None:
        for site, times in sites:
            batch.tally.add(site, "thread_instructions", masked(batch).thread_count * times)
        step(batch)

    return counted


def fused_multiply_adds(item: Instruction) -> tuple[tuple[str, int], ...]:
    """Return how many of each family, "ffma" and "dfma", a lane executes; empty for other instructions.

    PTX shows a division as one instruction; the hardware has none, and runs a sequence in which fused
    multiply-adds refine an approximate reciprocal. The counts are those of the sequence's common path.
    """
    name, kind = item.opcode[0], item.opcode[-1]
    if name in ("fma", "fms", "fnma", "fnms", "mad"):
        return _SEQUENCES.get(("fma", kind), ())
    return _SEQUENCES.get((name, "rn", kind), ()) if "rn" in item.opcode else ()


def move(coder: Coder, item: Instruction) -> Step:
    """`mov`: a register, or the parts of one listed in braces."""
    if len(item.operands) != 2:
        raise UnsupportedInstruction(item.name, item.line)
    target, source = item.operands
    kind = item.opcode[-1]
    if kind not in ARITHMETIC:
        raise UnsupportedInstruction(item.name, item.line)
    items = [getattr(operand, "items", None) for operand in (target, source)]
    if items[0] or items[1]:
        return _pack(coder, item, items[0], items[1])
    # What a constant is follows from the instruction's type.
    constant = isinstance(source, Imm)
    dtype = ARITHMETIC[kind] if constant else _kept_dtype(coder, target, kind, item.line)
    read = coder.predicate(source, item) if kind == "pred" else coder.reader(source, dtype, item)
    return computing(coder, item, read)


def _kept_dtype(coder: Coder, target: Operand, kind: str, line: int) -> np.dtype[Any]:
    """Read what is moved as the target keeps it, if the sizes agree, so that nothing is reinterpreted."""
    if isinstance(target, Reg):
        kept = coder.slots.kept[coder.slots.register(target.name, line)]
        if kept.itemsize == ARITHMETIC[kind].itemsize:
            return kept
    return ARITHMETIC[kind]


def _pack(
    coder: Coder,
    item: Instruction,
    targets: tuple[Operand, ...] | None,
    sources: tuple[Operand, ...] | None,
) -> Step:
    """`mov` between a register and the parts of it listed in braces."""
    whole = ARITHMETIC[item.opcode[-1]]
    masked = coder.mask(item)
    if targets and not sources:
        part = np.dtype(f"u{whole.itemsize // len(targets)}")
        read = coder.reader(item.operands[1], whole, item)
        writes = [coder.target(target, item) for target in targets]

        def unpack(batch: Batch) -> None:
            parts = np.ascontiguousarray(read(batch))[..., None].view(part)
            for i, write in enumerate(writes):
                write(batch, parts[..., i], masked(batch))

        return unpack
    if not sources or targets:
        raise UnsupportedInstruction(item.name, item.line)
    part = np.dtype(f"u{whole.itemsize // len(sources)}")
    reads = [coder.reader(source, part, item) for source in sources]

    def packed(batch: Batch) -> Lanes:
        parts = np.stack(np.broadcast_arrays(*(read(batch) for read in reads)), axis=-1)
        return np.asarray(parts.view(whole)[..., 0])

    return computing(coder, item, packed)


def cache_policy(coder: Coder, item: Instruction) -> Step:
    """`createpolicy`: a word that only hints read."""
    nothing = np.zeros((1, 1, 1), dtype=np.int64)
    return computing(coder, item, lambda batch: nothing)
