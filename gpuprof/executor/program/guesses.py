# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Plain loads that others' stores do not disturb, by what becomes of their values.

Of a word, one whose value a compare-and-swap of the same word checks:

The usual way to make an atomic operation that the hardware lacks reads the word, works out what should stand
there, and swaps that in if the word is still what was read. What the load found is a guess: were it old, the
swap would fail and bring the right value. So such a load may meet the swaps of others without an order.

And one whose value only guarded stores take, which not every lane that loads may make.

And one of shared memory whose value a shuffle takes: lanes that store behind it have met those that loaded.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.program.flow import EXIT_BLOCK, BasicBlock, reached, reads_and_writes, registers_in
from gpuprof.executor.program.loops import STRONG_LOADS
from gpuprof.executor.program.ptx import Imm, Instruction, Mem, Operand, Reg, Sym

#: Lines of stores, and by how many threads each takes what one of them has loaded: a warp's with shuffles.
Ends = frozenset[tuple[int, int]]
#: Spaces that no compare-and-swap goes to.
_ELSEWHERE = {"const", "param", "nc"}
#: What makes the same of the same operands; these alone tell that two addresses are one.
_PURE = {"add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt"}
#: What makes of values of a warp's lanes others.
_EXCHANGES = {"shfl", "redux"}
#: Says nothing about the place that an address names.
_COPIES = {"mov", "cvta"}


def checked_guesses(items: Iterable[Instruction]) -> set[int]:
    """Return `id` of each load whose value a compare-and-swap of the same word compares with."""
    items = list(items)
    swaps = [item for item in items if item.opcode[0] == "atom" and "cas" in item.opcode]
    if not swaps:
        return set()
    writers: dict[str, list[Instruction]] = {}
    for item in items:
        for name in reads_and_writes(item)[1]:
            writers.setdefault(name, []).append(item)
    places = _AddressNumbers(writers)
    found: set[int] = set()
    for swap in swaps:
        memory, compared = swap.operands[1], swap.operands[2]
        if isinstance(memory, Mem) and isinstance(compared, Reg):
            wanted = places.of(memory), _bits(swap)
            found |= {
                id(item)
                for item in _copied(compared.name, writers)
                if _loads(item) and (places.of(item.operands[1]), _bits(item)) == wanted
            }
    return found


def idle_loads(items: Iterable[Instruction], pure: frozenset[str]) -> dict[int, Ends]:
    """Return `id` of each load whose value only stores to global memory take, and these.

    Each of them has a guard that is not the load's. Opcodes are pure that only compute their targets.
    """
    items = list(items)
    readers: dict[str, list[Instruction]] = {}
    for item in items:
        for name in reads_and_writes(item)[0]:
            readers.setdefault(name, []).append(item)
    loads = [item for item in items if item.opcode[:2] == ("ld", "global")]
    plain = [item for item in loads if not {"nc", *STRONG_LOADS} & set(item.opcode)]
    ends = {id(item): _ends(item, readers, pure) for item in plain}
    return {load: stores for load, stores in ends.items() if stores}


def exchanged_loads(flow: Sequence[BasicBlock], pure: frozenset[str]) -> set[int]:
    """Return `id` of each load of shared memory whose value a shuffle of the same lanes, or more, takes.

    Between the two nothing stores or meets other threads; the shuffle is in the load's block or where that
    one always goes on. Lanes that the shuffle's mask leaves out are not told apart. Opcodes are pure that
    only compute their targets.
    """
    found, passing = set[int](), pure | {"ld", "bra"}
    for block in flow:
        after = {*block.successors}
        next_items = flow[after.pop()].items if len(after) == 1 and EXIT_BLOCK not in after else []
        loaded: dict[str, Instruction] = {}
        for item in chain(block.items, next_items):
            read, written = reads_and_writes(item)
            held = [loaded[name] for name in read if name in loaded]
            if item.opcode[0] == "shfl":
                found |= {id(one) for one in held if (one.guard, one.negated) == (item.guard, item.negated)}
            elif item.opcode[0] not in passing:
                loaded.clear()
            held = [item] if item.opcode[:2] == ("ld", "shared") else held * (item.opcode[0] == "mov")
            for name in written:
                loaded.pop(name, None)
            loaded |= dict.fromkeys(written, held[0]) if held else {}
    return found


def _ends(load: Instruction, readers: dict[str, list[Instruction]], pure: frozenset[str]) -> Ends:
    """Return the guarded stores that take a load's value; none where something else does."""
    lines: set[int] = set()
    group = 1
    pending = list(reads_and_writes(load)[1])
    seen = set(pending)
    while pending:
        name = pending.pop()
        for item in readers.get(name, ()):
            values = item.operands[1:]
            if item.opcode[:2] == ("st", "global") and any(name in registers_in(value) for value in values):
                own = (item.guard, item.negated) in ((None, False), (load.guard, load.negated))
                if own or name == item.guard or name in registers_in(item.operands[0]):
                    return frozenset()
                lines.add(item.line)
            elif item.opcode[0] in pure | _EXCHANGES and name != item.guard and "cc" not in item.opcode:
                group = WARP if item.opcode[0] in _EXCHANGES else group
                new = set(reads_and_writes(item)[1]) - seen
                seen |= new
                pending += new
            else:
                return frozenset()
    return frozenset((line, group) for line in lines)


def _loads(item: Instruction) -> bool:
    return item.opcode[0] == "ld" and not _ELSEWHERE & set(item.opcode) and isinstance(item.operands[0], Reg)


def _bits(item: Instruction) -> str:
    return item.opcode[-1].lstrip("bsuf")


def _copied(name: str, writers: dict[str, list[Instruction]]) -> list[Instruction]:
    """Return the instructions, moves apart, whose results may be what a register holds."""

    def sources(name: str) -> list[str]:
        moves = (item for item in writers.get(name, ()) if item.opcode[0] == "mov")
        return [source for item in moves for source in reads_and_writes(item)[0]]

    held = (item for one in reached([name], sources) for item in writers.get(one, ()))
    return [item for item in held if item.opcode[0] != "mov"]


class _AddressNumbers:
    """Numbers for what addresses are made of: the same for two that are made alike."""

    def __init__(self, writers: dict[str, list[Instruction]]) -> None:
        self._writers = writers
        self._registers: dict[str, int] = {}
        self._numbers: dict[object, int] = {}

    def of(self, operand: Operand) -> tuple[int, int]:
        """Return the number of an address's base and its distance from there."""
        assert isinstance(operand, Mem)
        base: Operand = operand.base
        offset, seen = operand.offset, set[Operand]()
        while base not in seen and (further := self._displaced(base)) is not None:
            seen.add(base)
            base, offset = further[0], offset + further[1]
        return self._number(base), offset % (1 << 64)

    def _displaced(self, base: Operand) -> tuple[Operand, int] | None:
        """Return what an address is a copy of, or lies a constant number of bytes behind."""
        writers = self._writers.get(base.name, []) if isinstance(base, Reg) else []
        if len(writers) != 1 or writers[0].guard is not None:
            return None
        item = writers[0]
        if item.opcode[0] in _COPIES and isinstance(item.operands[1], Reg):
            return item.operands[1], 0
        if item.opcode[0] == "add" and "cc" not in item.opcode and isinstance(by := item.operands[2], Imm):
            return item.operands[1], by.bits
        return None

    def _number(self, operand: Operand) -> int:
        if isinstance(operand, Reg):
            if operand.name not in self._registers:
                self._registers[operand.name] = self._new(operand)  # as long as it is being looked at
                self._registers[operand.name] = self._made(operand)
            return self._registers[operand.name]
        if isinstance(operand, Mem):
            return self._new(("memory", *self.of(operand)))
        return self._new(operand)

    def _made(self, register: Reg) -> int:
        writers = self._writers.get(register.name, [])
        if len(writers) != 1 or writers[0].guard is not None:
            return self._new(register)
        item = writers[0]
        if item.opcode[0] in _COPIES and isinstance(item.operands[1], Reg | Imm | Sym):
            return self._number(item.operands[1])
        if item.opcode[0] in _PURE and "cc" not in item.opcode and item.operands[0] == register:
            return self._new((item.opcode, *(self._number(operand) for operand in item.operands[1:])))
        if item.opcode[0] == "ld" and "param" in item.opcode:
            return self._number(item.operands[1])
        return self._new(register)

    def _new(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))
