# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Loops, and which of them may be there to wait: what other threads do decides how long these turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuprof.executor.program.flow import EXIT_BLOCK, BasicBlock, End, reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Reg

_STRONG = {"volatile", "relaxed", "acquire", "mmio"}
_READS = ("ld", "atom")
_WRITES = ("st", "red", "stmatrix")
#: What loops that wait have in them, if no strong load.
_HINTS = ("atom", "nanosleep", "fence", "membar")
#: Spaces, and a way to load, whose content no other thread changes.
_CONSTANT = {"param", "const", "local", "nc"}


@dataclass(frozen=True)
class WaitingLoop:
    """A loop in which memory is read that others may change meanwhile.

    Attributes:
        header: The basic block where each turn begins.
        found: Registers that hold what a turn read.
        given: Registers that say where it read, and what it wrote where.
        near: Whether it reads shared memory only, which threads of its own block alone can change.
        body: Its basic blocks.
    """

    header: int
    found: tuple[str, ...]
    given: tuple[str, ...]
    near: bool
    body: frozenset[int]


@dataclass(frozen=True)
class Loop:
    """A loop with one header.

    Attributes:
        entries: The blocks from which it is entered.
        body: Its blocks, the header among them.
        each_turn: Those that every turn passes.
    """

    entries: tuple[int, ...]
    body: frozenset[int]
    each_turn: frozenset[int]


def waiting_loops(blocks: list[BasicBlock]) -> dict[int, list[WaitingLoop]]:
    """Return such loops by the blocks from which control goes back to their headers."""
    loops: dict[int, list[WaitingLoop]] = {}
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for after in block.successors:
            if after != EXIT_BLOCK:
                before[after].append(number)
    for last, block in enumerate(blocks):
        for header in sorted(set(block.successors)):
            if header == EXIT_BLOCK or header > last:
                continue
            loop = _Loop(blocks, before, header, last).waiting()
            if loop is not None:
                loops.setdefault(last, []).append(loop)
    return loops


class Node(Protocol):
    """A block, of this PTX or of other code."""

    @property
    def successors(self) -> tuple[int, ...]:
        """Blocks that may follow."""
        ...


def loops_of(blocks: Sequence[Node]) -> dict[int, Loop]:
    """Return the loops that are entered at one block only, by that block; block 0 is where all begins."""
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for after in {*block.successors} - {EXIT_BLOCK}:
            before[after].append(number)
    loops: dict[int, Loop] = {}
    for header, comers in enumerate(before):
        body, pending = {header}, [one for one in comers if one >= header]
        while pending:
            number = pending.pop()
            if number not in body:
                body.add(number)
                pending += before[number]
        last = body.intersection(comers)
        if last and (header == 0 or 0 not in body):  # else it may be entered elsewhere too
            entries = tuple(one for one in comers if one not in body)
            loops[header] = Loop(entries, frozenset(body), _in_each_turn(blocks, header, body, last))
    return loops


def _in_each_turn(blocks: Sequence[Node], header: int, body: set[int], last: set[int]) -> frozenset[int]:
    """Return the blocks without which control does not get from the header to the end of a turn."""

    def gets_past(left_out: int) -> bool:
        seen, pending = {header, left_out}, [header]
        while pending:
            number = pending.pop()
            if number in last:
                return True
            new = body.intersection(blocks[number].successors) - seen
            seen |= new
            pending += new
        return False

    return frozenset(one for one in body if one == header or not gets_past(one))


def repeated(blocks: list[BasicBlock]) -> set[int]:
    """Return the basic blocks that a thread may run more than once."""
    after = [{s for s in block.successors if s != EXIT_BLOCK} for block in blocks]
    found: set[int] = set()
    for start in range(len(blocks)):
        seen: set[int] = set()
        pending = list(after[start])
        while pending:
            number = pending.pop()
            if number not in seen:
                seen.add(number)
                pending += after[number] - seen
        if start in seen:
            found.add(start)
    return found


def without_waiting(blocks: list[BasicBlock]) -> list[int]:
    """Return the basic blocks that threads run equally often however long they wait for others."""
    waiting = {number for loops in waiting_loops(blocks).values() for loop in loops for number in loop.body}
    waiting |= {number for number, block in enumerate(blocks) if any(map(_tries, block.body))}
    return [number for number in range(len(blocks)) if number not in waiting]


def _tries(item: Instruction) -> bool:
    return item.opcode[0] == "mbarrier" and bool({"try_wait", "test_wait"} & set(item.opcode))


class _Loop:
    """A loop: the blocks from which control gets back to its header, by way of the last one.

    Args:
        blocks: Of the function.
        before: For each the blocks that it may follow.
        header: The number of the first.
        last: The number of the last.
    """

    def __init__(self, blocks: list[BasicBlock], before: list[list[int]], header: int, last: int) -> None:
        self._blocks = blocks
        self._before = before
        self._header = header
        self._last = last
        self._body = {header, *self._reaching_last()}
        self._items = [item for number in sorted(self._body) for item in blocks[number].body]

    def waiting(self) -> WaitingLoop | None:
        """Return what is to be watched in it; None if no other thread decides how long it turns."""
        items = self._items
        strong = any(item.opcode[0] == "ld" and _STRONG & set(item.opcode) for item in items)
        if not strong and not any(item.opcode[0] in _HINTS for item in items):
            return None
        reads = [i for i in items if i.opcode[0] in _READS and not _CONSTANT & set(i.opcode)]
        writes = [i for i in items if _stores(i) and not _CONSTANT & set(i.opcode)]
        found = dict.fromkeys(name for item in reads for name in reads_and_writes(item)[1])
        if not self._left_by().intersection(found):
            return None
        given = dict.fromkeys(name for item in (*reads, *writes) for name in reads_and_writes(item)[0])
        near = all("shared" in item.opcode for item in reads)
        return WaitingLoop(self._header, tuple(found), tuple(given), near, frozenset(self._body))

    def _left_by(self) -> set[str]:
        """Return the registers that decide whether a turn is the last, and those that these follow from."""
        guards = {n: name for n in self._body if (name := _decides(self._blocks[n]))}
        pending = [guards[n] for n in guards if not self._body.issuperset(self._blocks[n].successors)]
        deciding: set[str] = set()
        while pending:
            name = pending.pop()
            if name in deciding:
                continue
            deciding.add(name)
            for number in self._body:
                for item in self._blocks[number].body:
                    reads, writes = reads_and_writes(item)
                    if name in writes:
                        pending += reads
                        if self._skippable(number):  # then whether it is written counts too
                            pending += guards.values()
        return deciding

    def _reaching_last(self) -> set[int]:
        """Return the blocks from which control gets to the last one without passing the header."""
        inside: set[int] = set()
        pending = [self._last]
        while pending:
            number = pending.pop()
            if number not in inside and number != self._header:
                inside.add(number)
                pending += self._before[number]
        return inside

    def _skippable(self, number: int) -> bool:
        """Tell whether a turn may leave out a block."""
        if number in (self._header, self._last):
            return False
        inside, pending = {self._header}, [self._header]
        while pending:
            after = self._body.intersection(self._blocks[pending.pop()].successors) - inside - {number}
            inside |= after
            pending += after
        return self._last in inside


def _stores(item: Instruction) -> bool:
    return item.opcode[0] in _WRITES or item.opcode[:2] == ("wmma", "store")


def _decides(block: BasicBlock) -> str | None:
    """Return the register that decides which of several blocks follows one."""
    if block.end is End.SWITCH and block.last is not None:
        value = block.last.operands[0]
        assert isinstance(value, Reg)
        return value.name
    return block.last.guard if block.end is End.BRANCH and block.last is not None else None
