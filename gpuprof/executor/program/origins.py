# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where registers have their values from: pointers among a program's parameters, variables, source lines.

A guess: what is loaded from memory may be an address too, and two parameters one array.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpuprof.executor.program.flow import EXIT_BLOCK, BasicBlock, End, reads_and_writes, registers_in
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Special, Sym
from gpuprof.executor.program.slots import GRID_WORKSPACE

#: A parameter, or a place in it, a variable, or what a grid has for its barrier: an address of it is held.
Origin = tuple[str, int]
#: Those of each register.
Origins = Mapping[str, frozenset[Origin]]
#: What makes an address of another one.
_MOVES = frozenset({"mov", "cvta", "cvt", "add", "sub", "mad", "selp", "and", "or", "bfi", "mapa"})
#: What accesses to memory do where their first address leads, and their second: read or write.
_DOES = {
    **dict.fromkeys(("ld", "ldu", "wmma.load"), ("r",)),
    **dict.fromkeys(("st", "wmma.store"), ("w",)),
    **dict.fromkeys(("atom", "red"), ("rw",)),
    "cp": ("w", "r"),
    "cp.reduce": ("rw", "r"),
}
_NEAR = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param", "const"})


class Use(NamedTuple):
    """What a kernel does with the array that a parameter points to, as far as its addresses tell.

    `type` is that of the first access: `f32`, or `b32` where PTX does not say.
    """

    type: str
    read: bool = False
    written: bool = False


class ArrayUses(NamedTuple):
    """What a kernel does with the arrays that its parameters point to, and with variables, by their names.

    Of a parameter by the byte where the pointer stands, 0 unless it is a struct.
    """

    parameters: list[dict[int, Use]]
    variables: dict[str, Use]


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
    if isinstance(operand, Sym) or (isinstance(operand, Special) and operand.name in GRID_WORKSPACE):
        return frozenset({(operand.name, 0)})
    return frozenset().union(*(found.get(name, frozenset()) for name in registers_in(operand)))


def uses_of(parameters: Sequence[str], blocks: Sequence[BasicBlock]) -> ArrayUses | None:
    """Return what is done where addresses lead to; None where something is written elsewhere."""
    found = origins_of(blocks)
    uses: dict[Origin, Use] = {}
    for item in (item for block in blocks for item in block.items if "param" not in item.opcode):
        places = (operand for operand in item.operands if isinstance(operand, Mem))
        for place, what in zip(places, _does(item), strict=False):
            origins = origins_in(place, found)
            if not origins and "w" in what and _NEAR.isdisjoint(item.opcode):
                return None
            for origin in origins:
                use = uses.get(origin, Use(item.opcode[-1]))
                uses[origin] = Use(use.type, use.read or "r" in what, use.written or "w" in what)
    variables: dict[str, Use] = {}
    for (name, _), use in uses.items():
        before = variables.setdefault(name, use)
        variables[name] = Use(use.type, before.read or use.read, before.written or use.written)
    of_each = [{at: use for (one, at), use in uses.items() if one == name} for name in parameters]
    return ArrayUses(of_each, variables)


def _does(item: Instruction) -> tuple[str, ...]:
    return _DOES.get(".".join(item.opcode[:2]), _DOES.get(item.opcode[0], ()))


def lines_behind(blocks: Sequence[BasicBlock], line: int, does: str, *, of_value: bool) -> list[int]:
    """Return the other source lines that a line's accesses to global memory depend on, the nearest first.

    Those that read ("r") or write ("w") are looked at: what is stored, or whether and where. Loads end a way.
    """
    makers: dict[str, list[Instruction]] = {}
    conditions: list[str] = []
    names: list[str] = []
    for number, block in enumerate(blocks):
        before = (one for one in blocks if one.end is End.BRANCH and number in one.successors)
        ways = (one for one in before if one.rejoin != number or EXIT_BLOCK in one.successors)
        parted = [one.last.guard for one in ways if one.last]
        for item in block.items:
            for name in reads_and_writes(item)[1]:
                makers.setdefault(name, []).append(item)
            if item.line == line and does in "".join(_does(item)) and _NEAR.isdisjoint(item.opcode):
                operands = (one for one in item.operands if isinstance(one, Mem) != of_value)
                names += [name for operand in operands for name in registers_in(operand)]
                conditions += [] if of_value else filter(None, [item.guard, *parted])
    found: dict[int, None] = {}
    for wanted, all_lines in ((conditions, False), (names, True)):
        left = dict(makers)
        for name in wanted:  # which grow meanwhile
            for item in left.pop(name, ()):
                if item.opcode[0] not in ("mov", "cvta") and "param" not in item.opcode:
                    found[item.line] = None
                if not _does(item) and (all_lines or item.line == line):
                    wanted += reads_and_writes(item)[0]
    return [one for one in found if one not in (0, line)]
