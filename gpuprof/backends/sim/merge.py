# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Merge adjacent scalar shared-memory loads into vector loads, as ptxas does after PTX.

PTX shows four loads of consecutive words; where their address is provably a multiple of 16, the hardware
runs one 128-bit load. What is provable follows from how addresses are computed: the alignment of a sum is
the lesser of its terms', that of a product the product of its factors'.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gpuprof.backends.sim.flow import BasicBlock, reads_and_writes
from gpuprof.backends.sim.ptx import Imm, Instruction, Mem, Operand, Reg, Sym, Vec

#: Largest alignment worth knowing, in bytes.
_ENOUGH = 256
_WIDEST = 16
_SCALARS = {"f32": 4, "b32": 4, "u32": 4, "s32": 4, "f64": 8, "b64": 8, "u64": 8, "s64": 8}


def merge_shared_loads(blocks: list[BasicBlock], symbols: dict[str, int]) -> None:
    """Merge in place.

    Args:
        blocks: The kernel's basic blocks.
        symbols: What each shared variable's address is known to be a multiple of, in bytes.
    """
    aligned = _alignments((item for block in blocks for item in block.body), symbols)
    for block in blocks:
        block.body = _merged(block.body, aligned, symbols)


def _alignments(body: Iterable[Instruction], symbols: dict[str, int]) -> dict[str, int]:
    """Return for each register a power of two that all its values are multiples of.

    Starts from the most hopeful assumption and weakens it until every definition agrees, so that an
    address that a loop advances by 128 stays a multiple of 128.
    """
    definitions = [item for item in body if len(reads_and_writes(item)[1]) > 0]
    known: dict[str, int] = {}

    def of(operand: Operand) -> int:
        if isinstance(operand, Reg):
            return known.get(operand.name, _ENOUGH)
        if isinstance(operand, Imm):
            return _power_of_two_in(operand.bits)
        if isinstance(operand, Sym):
            return min(symbols.get(operand.name, 1), _power_of_two_in(operand.offset))
        return 1

    changed = True
    while changed:
        changed = False
        for item in definitions:
            for name in reads_and_writes(item)[1]:
                found = min(known.get(name, _ENOUGH), _result(item, of))
                if known.get(name) != found:
                    known[name], changed = found, True
    return known


def _result(item: Instruction, of: Callable[[Operand], int]) -> int:
    """Return what the result of an instruction is a multiple of, given that of its operands."""
    name, sources = item.opcode[0], item.operands[1:]
    if name in ("mov", "cvt", "cvta") and len(sources) == 1:
        return of(sources[0])
    if name in ("add", "sub", "or", "xor", "selp", "min", "max") and "pred" not in item.opcode:
        return min(of(sources[0]), of(sources[1]))
    if name == "and":
        return max(of(sources[0]), of(sources[1]))
    if name == "mul" and "hi" not in item.opcode:
        return min(of(sources[0]) * of(sources[1]), _ENOUGH)
    if name == "mad" and "hi" not in item.opcode:
        return min(of(sources[0]) * of(sources[1]), of(sources[2]))
    if name == "shl" and isinstance(sources[1], Imm):
        return min(of(sources[0]) << min(sources[1].bits, 8), _ENOUGH)
    return 1


def _power_of_two_in(value: int) -> int:
    return min(value & -value, _ENOUGH) if value else _ENOUGH


@dataclass
class _Load:
    """A scalar load that might be merged: its position, address and target."""

    position: int
    base: Operand
    offset: int
    target: str


def _merged(body: list[Instruction], aligned: dict[str, int], symbols: dict[str, int]) -> list[Instruction]:
    """Return the instructions of a basic block with its mergeable loads merged."""
    vectors: dict[int, list[_Load]] = {}
    for size, loads in _candidates(body):
        base = loads[0].base
        known = (
            aligned.get(base.name, 1) if isinstance(base, Reg) else symbols.get(getattr(base, "name", ""), 1)
        )
        widest = min(_WIDEST, known)
        by_offset = {load.offset: load for load in loads}
        while widest > size:
            for offset in sorted(by_offset):
                group = [by_offset.get(offset + i * size) for i in range(widest // size)]
                whole = [load for load in group if load is not None]
                if offset % widest == 0 and len(whole) == len(group) and _movable(body, whole):
                    vectors[min(load.position for load in whole)] = whole
                    for load in whole:
                        del by_offset[load.offset]
            widest //= 2
    absorbed = {load.position for group in vectors.values() for load in group}
    result = []
    for position, item in enumerate(body):
        if position in vectors:
            result.append(_vector(item, vectors[position]))
        elif position not in absorbed:
            result.append(item)
    return result


def _vector(first: Instruction, loads: list[_Load]) -> Instruction:
    targets = Vec(tuple(Reg(load.target) for load in loads))
    base = loads[0].base
    assert isinstance(base, Reg | Sym)
    opcode = ("ld", "shared", f"v{len(loads)}", first.opcode[-1])
    return replace(first, opcode=opcode, operands=(targets, Mem(base, loads[0].offset)))


def _candidates(body: list[Instruction]) -> Iterator[tuple[int, list[_Load]]]:
    """Yield (element size, loads) for loads of one type and base with no write to memory between them."""
    groups: dict[tuple[str, Operand, int], list[_Load]] = {}
    stretch = 0
    for position, item in enumerate(body):
        name, kind = item.opcode[0], item.opcode[-1]
        if (
            item.opcode[:2] == ("ld", "shared")
            and len(item.opcode) == 3
            and kind in _SCALARS
            and not item.guard
        ):
            target, memory = item.operands
            if isinstance(target, Reg) and isinstance(memory, Mem) and isinstance(memory.base, Reg | Sym):
                load = _Load(position, memory.base, memory.offset, target.name)
                groups.setdefault((kind, memory.base, stretch), []).append(load)
                continue
        if name in ("st", "atom", "red", "cp", "bar", "barrier", "fence", "membar", "shfl"):
            is_elsewhere = name == "st" and ("global" in item.opcode or "local" in item.opcode)
            stretch += not is_elsewhere
    for (kind, _, _), loads in groups.items():
        yield _SCALARS[kind], loads


def _movable(body: list[Instruction], loads: list[_Load]) -> bool:
    """Tell whether all loads may happen where the first one does: nobody in between is in the way."""
    first, last = min(load.position for load in loads), max(load.position for load in loads)
    base = loads[0].base
    targets = {load.target: load.position for load in loads}
    for position in range(first, last + 1):
        reads, writes = reads_and_writes(body[position])
        if isinstance(base, Reg) and base.name in writes and position < last:
            return False
        for name in (*reads, *writes):
            if name in targets and position < targets[name]:
                return False
    return len(targets) == len(loads)
