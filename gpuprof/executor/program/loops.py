# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Loops, and which of them may be there to wait: what other threads do decides how often these repeat."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Protocol

from msgspec import Struct

from gpuprof.executor.program.flow import (
    EXIT_BLOCK,
    BasicBlock,
    End,
    before_each,
    bit_of,
    passed_always,
    reached,
    reads_and_writes,
)
from gpuprof.executor.program.ptx import Instruction, Reg

#: Words of a load that is strong.
STRONG_LOADS = frozenset({"volatile", "relaxed", "acquire", "mmio", "cg", "cv"})
_READS = ("ld", "atom")
_WRITES = ("st", "red", "stmatrix")
#: What loops that only wait do not do, but for trying whether they still have to.
_WORK = {"mma", "wmma", "wgmma", "cp", "mbarrier"}
#: What loops that wait have in them, if no strong load.
_HINTS = ("atom", "nanosleep", "fence", "membar")
_TOUCHES = frozenset({*_READS, *_WRITES, "fence", "membar", "tex", "tld4", "suld", "sust"})
#: Spaces, and a way to load, whose content no other thread changes.
_CONSTANT = {"param", "const", "local", "nc"}


class WaitingLoop(Struct, frozen=True):
    """A loop in which memory is read that others may change meanwhile.

    `found` are registers that hold what an iteration read, of which those that are `tested` decide whether it
    is the last; `given` say where it read, and what it wrote where. It is `near` if it reads shared memory
    only, which threads of its own block alone can change.
    """

    header: int
    found: tuple[str, ...]
    tested: frozenset[str]
    given: tuple[str, ...]
    near: bool
    body: frozenset[int]


class Loop(Struct, frozen=True):
    """A loop with one header.

    `each_iteration` are the blocks that every iteration passes.
    """

    entries: tuple[int, ...]
    body: frozenset[int]
    each_iteration: frozenset[int]


class Node(Protocol):
    """A block, of this PTX or of other code."""

    @property
    def successors(self) -> tuple[int, ...]:
        """Blocks that may follow."""
        ...


def predecessors(blocks: Sequence[Node]) -> list[list[int]]:
    """Return the blocks from which control comes to each."""
    return before_each([block.successors for block in blocks])


def _ranks(blocks: Sequence[Node]) -> list[int]:
    """Return each block's place in an order in which a loop that is entered at one block begins there.

    The text's is not such an order: compilers jump into the middle of a loop whose test comes last.
    """
    placed: list[int] = []
    seen = {0}
    pending = [(0, iter(sorted(set(blocks[0].successors))))]
    while pending:
        number, after = pending[-1]
        following = next((one for one in after if one != EXIT_BLOCK and one not in seen), None)
        if following is None:
            pending.pop()
            placed.append(number)
        else:
            seen.add(following)
            pending.append((following, iter(sorted(set(blocks[following].successors)))))
    ranks = [len(blocks)] * len(blocks)
    for rank, number in enumerate(reversed(placed)):
        ranks[number] = rank
    return ranks


def waiting_loops(blocks: list[BasicBlock]) -> dict[int, list[WaitingLoop]]:
    """Return such loops by the blocks from which control goes back to their headers."""
    loops: dict[int, list[WaitingLoop]] = {}
    before, ranks = predecessors(blocks), _ranks(blocks)
    for last, block in enumerate(blocks):
        for header in sorted(set(block.successors)):
            if header == EXIT_BLOCK or ranks[header] > ranks[last]:
                continue
            loop = _waiting(blocks, header, _body(before, header, [last]), last)
            if loop is not None:
                loops.setdefault(last, []).append(loop)
    return loops


def loops_of(blocks: Sequence[Node]) -> dict[int, Loop]:
    """Return the loops that are entered at one block only, by that block; block 0 is where all begins."""
    before, ranks = predecessors(blocks), _ranks(blocks)
    loops: dict[int, Loop] = {}
    for header, comers in enumerate(before):
        body = _body(before, header, [one for one in comers if ranks[one] >= ranks[header]])
        last = body.intersection(comers)
        if last and (header == 0 or 0 not in body):  # else it may be entered elsewhere too
            entries = tuple(one for one in comers if one not in body)
            loops[header] = Loop(entries, frozenset(body), _in_each_iteration(blocks, header, body, last))
    return loops


def _body(before: list[list[int]], header: int, last: Iterable[int]) -> set[int]:
    """Return the blocks from which control gets to one of the last ones without passing the header again."""
    return {header} | reached({*last} - {header}, lambda number: {*before[number]} - {header})


def _in_each_iteration(
    blocks: Sequence[Node], header: int, body: set[int], last: Iterable[int]
) -> frozenset[int]:
    """Return the blocks without which control does not get from the header to the end of an iteration."""
    before: dict[int, list[int]] = {number: [] for number in sorted(body - {header})}
    for number in body:
        for after in body.intersection(blocks[number].successors) - {header}:
            before[after].append(number)
    passed = passed_always(before, header)
    always = reduce(and_, (passed[number] for number in last))
    return frozenset(number for number in body if always & bit_of(number))


def only_waiting(
    blocks: list[BasicBlock], loops: Mapping[int, Loop], waiting: Mapping[int, list[WaitingLoop]]
) -> frozenset[int]:
    """Return the basic blocks of loops that only wait: how often they repeat is a matter of time."""
    headers = {one.header for ways in waiting.values() for one in ways}
    found: set[int] = set()
    for header, loop in loops.items():
        items = [item for number in loop.body for item in blocks[number].body]
        meets = any(blocks[number].end in (End.BARRIER, End.CLUSTER_WAIT) for number in loop.body)
        waits = header in headers or any(map(_tries, items))
        works = any(_stores(item) or (item.opcode[0] in _WORK and not _tries(item)) for item in items)
        if waits and not meets and not works:
            found |= loop.body
    return frozenset(found)


def _tries(item: Instruction) -> bool:
    return item.opcode[0] == "mbarrier" and bool({"try_wait", "test_wait"} & set(item.opcode))


def _waiting(blocks: list[BasicBlock], header: int, body: set[int], last: int) -> WaitingLoop | None:
    """Return what is to be watched in a loop; None if no other thread decides how often it repeats."""
    items = [item for number in sorted(body) for item in blocks[number].body]
    strong = any(item.opcode[0] == "ld" and STRONG_LOADS & set(item.opcode) for item in items)
    if not strong and not any(item.opcode[0] in _HINTS for item in items):
        return None
    reads = [i for i in items if i.opcode[0] in _READS and not _CONSTANT & set(i.opcode)]
    writes = [i for i in items if _stores(i) and not _CONSTANT & set(i.opcode)]
    found = dict.fromkeys(name for item in reads for name in reads_and_writes(item)[1])
    tested = _left_by(blocks, body, _in_each_iteration(blocks, header, body, (last,))).intersection(found)
    if not tested:
        return None
    given = dict.fromkeys(name for item in (*reads, *writes) for name in reads_and_writes(item)[0])
    near = all("shared" in item.opcode for item in reads)
    return WaitingLoop(header, tuple(found), frozenset(tested), tuple(given), near, frozenset(body))


def _left_by(blocks: list[BasicBlock], body: set[int], each_iteration: frozenset[int]) -> set[str]:
    """Return the registers that decide whether an iteration is the last, and what these follow from."""
    guards = {n: name for n in body if (name := _decides(blocks[n]))}
    pending = [guards[n] for n in guards if not body.issuperset(blocks[n].successors)]
    #: What each register is made from, and where.
    sources: defaultdict[str, set[str]] = defaultdict(set)
    writers: defaultdict[str, set[int]] = defaultdict(set)
    for number in body:
        for item in blocks[number].body:
            reads, writes = reads_and_writes(item)
            for name in writes:
                sources[name].update(reads)
                writers[name].add(number)
    deciding: set[str] = set()
    guarded = False
    while pending:
        name = pending.pop()
        if name not in deciding:
            deciding.add(name)
            pending += sources[name]
            if not guarded and not writers[name] <= each_iteration:
                pending += guards.values()  # whether it is written counts too
                guarded = True
    return deciding


def accesses_memory(item: Instruction) -> bool:
    """Tell whether an instruction reads or writes memory that is not constant, or orders what does."""
    return item.opcode[0] in _TOUCHES and not {"param", "const"} & set(item.opcode)


def _stores(item: Instruction) -> bool:
    return item.opcode[0] in _WRITES or item.opcode[:2] == ("wmma", "store")


def _decides(block: BasicBlock) -> str | None:
    """Return the register that decides which of several blocks follows one."""
    if block.end is End.SWITCH and block.last is not None:
        value = block.last.operands[0]
        assert isinstance(value, Reg)
        return value.name
    return block.last.guard if block.end is End.BRANCH and block.last is not None else None
