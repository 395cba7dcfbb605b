# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The pointers among a program's parameters, and the variables, that registers hold an address of.

A guess: what is loaded from memory may be an address too, and two parameters one array.
"""

from collections.abc import Mapping, Sequence

from gpuprof.executor.program.flow import BasicBlock, reads_and_writes, registers_in
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Sym

#: A parameter, or a place in it, or a variable, of which an address is held.
Origin = tuple[str, int]
#: Those of each register.
Origins = Mapping[str, frozenset[Origin]]
#: What makes an address of another one.
_MOVES = frozenset({"mov", "cvta", "cvt", "add", "sub", "mad", "selp", "and", "or", "mapa"})


def origins_of(blocks: Sequence[BasicBlock]) -> Origins:
    """Return what the registers of a program hold an address of."""
    found: dict[str, frozenset[Origin]] = {}
    items = [item for block in blocks for item in block.body if item.opcode[0] in _MOVES or _is_pointer(item)]
    before = -1
    while before != (before := sum(map(len, found.values()))):
        for item in items:
            sources = item.operands[-1:] if item.opcode[0] == "mad" else item.operands[1:]
            origins = frozenset().union(*(origins_in(operand, found) for operand in sources))
            for name in reads_and_writes(item)[1] if origins else ():
                found[name] = found.get(name, frozenset()) | origins
    return found


def _is_pointer(item: Instruction) -> bool:
    return item.opcode[:2] == ("ld", "param") and item.opcode[-1].endswith("64")


def origins_in(operand: Operand, found: Origins) -> frozenset[Origin]:
    """Return what an operand is an address of."""
    if isinstance(operand, Mem):
        if isinstance(operand.base, Sym):
            return frozenset({(operand.base.name, operand.base.offset + operand.offset)})
        operand = operand.base
    if isinstance(operand, Sym):
        return frozenset({(operand.name, 0)})
    return frozenset().union(*(found.get(name, frozenset()) for name in registers_in(operand)))
