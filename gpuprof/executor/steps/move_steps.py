# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode moves between registers to steps."""

from typing import Any

import numpy as np

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.program.ptx import Instruction, Operand, Reg
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step


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
    dtype = _kept_dtype(coder, target, kind, item.line)
    read = coder.predicate(source, item) if kind == "pred" else coder.reader(source, dtype, item)
    write, masked = coder.target(target, item), coder.mask(item)
    return lambda batch: write(batch, read(batch), masked(batch))


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
    write_whole = coder.target(item.operands[0], item)

    def pack(batch: Batch) -> None:
        parts = np.stack(np.broadcast_arrays(*(read(batch) for read in reads)), axis=-1)
        write_whole(batch, parts.view(whole)[..., 0], masked(batch))

    return pack


def cache_policy(coder: Coder, item: Instruction) -> Step:
    """`createpolicy`: a word that only hints read."""
    write, masked = coder.target(item.operands[0], item), coder.mask(item)
    nothing = np.zeros((1, 1, 1), dtype=np.int64)
    return lambda batch: write(batch, nothing, masked(batch))
