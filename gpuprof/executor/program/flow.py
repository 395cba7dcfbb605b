# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cut a function body into basic blocks, and find where diverged lanes meet again."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce
from operator import and_
from typing import TypeVar

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.program.ptx import Imm, Instruction, Label, Mem, Operand, Reg, Sym, Vec, leaves

T = TypeVar("T")


class End(Enum):
    """How a basic block ends."""

    JUMP = "jump"
    BRANCH = "branch"
    SWITCH = "switch"
    BARRIER = "barrier"
    CLUSTER_WAIT = "wait at the barrier of a cluster"
    EXIT = "exit"
    TRAP = "trap"


#: The block index that stands for "the thread has ended".
EXIT_BLOCK = -1


@dataclass
class BasicBlock:
    """Instructions that run together, and where control goes from them.

    The body is without the instruction that ends the block, `last`. `target` is where a branch goes when its
    predicate holds, or a jump or passed barrier always, or a switch whose register holds none of `cases`.
    `rejoin` is the immediate post-dominator, where lanes that a branch parts meet again. Before that, those
    that stay in a loop which others leave meet at `sooner`, unless it is None; the others come to a block
    with `left_to`.
    """

    body: list[Instruction] = field(default_factory=list)
    end: End = End.JUMP
    last: Instruction | None = None
    target: int = EXIT_BLOCK
    otherwise: int = EXIT_BLOCK
    rejoin: int = EXIT_BLOCK
    sooner: int | None = None
    left_to: bool = False
    cases: dict[int, int] = field(default_factory=dict)

    @property
    def items(self) -> list[Instruction]:
        """All instructions, the last one too."""
        return [*self.body, self.last] if self.last else self.body

    @property
    def successors(self) -> tuple[int, ...]:
        if self.end is End.BRANCH:
            return (self.target, self.otherwise)
        if self.end is End.SWITCH:
            return (*self.cases.values(), self.target)
        return (EXIT_BLOCK,) if self.end in (End.EXIT, End.TRAP) else (self.target,)


_BARRIERS = ("bar", "barrier")
_ENDS = {"ret": End.EXIT, "exit": End.EXIT, "trap": End.TRAP, "brkpt": End.TRAP}
#: A jump by the value of a register, which PTX has in other words: (register, values, labels).
SWITCH = "switch"


def is_cluster_wait(item: Instruction) -> bool:
    """Tell whether the instruction waits at the barrier of its cluster."""
    return item.opcode[:3] == ("barrier", "cluster", "wait")


def _ends_block(item: Instruction) -> bool:
    of_block = item.opcode[0] in _BARRIERS and "warp" not in item.opcode and "cluster" not in item.opcode
    return of_block or item.opcode[0] in _ENDS or is_cluster_wait(item)


def basic_blocks(body: list[Instruction | Label]) -> list[BasicBlock]:
    """Return the blocks in text order; the first is the entry."""
    blocks = _cut(_without_guarded_ends(body))
    _shorten_exits(blocks)
    for block, place in zip(blocks, rejoins(blocks), strict=True):
        block.rejoin = place
    return blocks


def _without_guarded_ends(body: list[Instruction | Label]) -> list[Instruction | Label]:
    """Turn `@p ret` or `@p bar.sync` into a branch around it, so that only branches carry predicates."""
    result: list[Instruction | Label] = []
    for i, item in enumerate(body):
        ends = isinstance(item, Instruction) and _ends_block(item)
        if isinstance(item, Instruction) and ends and item.guard:
            around = Label(f"around@{i}")
            skip = replace(item, opcode=("bra",), operands=(Sym(around.name),), negated=not item.negated)
            result += [skip, replace(item, guard=None, negated=False), around]
        else:
            result.append(item)
    return result


def _cut(body: list[Instruction | Label]) -> list[BasicBlock]:
    blocks, current = [BasicBlock()], True
    labels: dict[str, int] = {}
    for item in body:
        if isinstance(item, Label):
            if blocks[-1].body or not current:
                blocks.append(BasicBlock())
            current = True
            labels[item.name] = len(blocks) - 1
            continue
        if not current:
            blocks.append(BasicBlock())
            current = True
        block = blocks[-1]
        name = item.opcode[0]
        if name in ("bra", SWITCH) or _ends_block(item):
            block.last = item
            block.end = _ENDS.get(name) or (End.BARRIER if name in _BARRIERS else End.BRANCH)
            if name == SWITCH:
                block.end = End.SWITCH
            elif is_cluster_wait(item):
                block.end = End.CLUSTER_WAIT
            current = False
        else:
            block.body.append(item)
    for i, block in enumerate(blocks):
        following = i + 1 if i + 1 < len(blocks) else EXIT_BLOCK
        _link(block, following, labels)
    return blocks


def _link(block: BasicBlock, following: int, labels: dict[str, int]) -> None:
    block.target = block.otherwise = following
    if block.end is End.BRANCH and block.last is not None:
        goal = block.last.operands[0]
        if not isinstance(goal, Sym) or goal.name not in labels:
            raise UnsupportedInstruction("branch to no label of its function", block.last.line)
        block.target = labels[goal.name]
        if block.last.guard is None or block.target == block.otherwise:
            block.end = End.JUMP
    elif block.end is End.SWITCH and block.last is not None:
        _, values, goals = block.last.operands
        assert isinstance(values, Vec)
        assert isinstance(goals, Vec)
        for value, goal in zip(values.items, goals.items, strict=True):
            assert isinstance(value, Imm)
            assert isinstance(goal, Sym)
            block.cases[value.bits] = labels[goal.name]


def _shorten_exits(blocks: list[BasicBlock]) -> None:
    """Make a jump to a lone `ret` an exit: the hardware ends those threads at once, not at the common end."""
    lone = {i for i, block in enumerate(blocks) if block.end is End.EXIT and not block.body}
    for block in blocks:
        block.target = EXIT_BLOCK if block.target in lone else block.target
        block.otherwise = EXIT_BLOCK if block.otherwise in lone else block.otherwise
        block.cases = {key: EXIT_BLOCK if goal in lone else goal for key, goal in block.cases.items()}


def rejoins(blocks: list[BasicBlock], left: Collection[tuple[int, int]] = ()) -> list[int]:
    """Find where lanes meet again: the immediate post-dominator, ways on which threads end early left out.

    Hardware waits for lanes still alive: ptxas lets `if (a) { if (b) return; x } y` meet before y. So it
    does for lanes that have not `left` from one block for another.
    """
    after = _post_dominators(blocks, left, early=_early_ends(blocks))
    everything = _everything(blocks)
    if any(after[i] == everything for i in range(len(blocks))):
        # Only early ends follow there, so these count after all.
        whole = _post_dominators(blocks, left)
        after = {i: whole[i] if found == everything else found for i, found in after.items()}
    places = nearest(after)
    return [places[i] for i in range(len(blocks))]


def nearest(after: Mapping[int, int]) -> dict[int, int]:
    """Return of the post-dominators of each block the nearest: the one that all the others post-dominate."""
    times, known = Counter(after.values()), {found: i for i, found in after.items()}
    places = {}
    for i, found in after.items():
        others = found & ~bit_of(i)
        if times[others] == 1:
            places[i] = known[others]
        else:
            among = (p for p in after if others & bit_of(p))
            places[i] = max(among, key=lambda p: after[p].bit_count(), default=EXIT_BLOCK)
    return places


def _early_ends(blocks: list[BasicBlock]) -> set[int]:
    """Return the blocks after which threads always end, but for the one that lanes meet before."""
    ends = [i for i, block in enumerate(blocks) if set(block.successors) == {EXIT_BLOCK}]
    last = {i: blocks[i].end for i in ends}
    busy = [i for i in ends if last[i] is not End.TRAP and (blocks[i].body or last[i] is not End.EXIT)]
    opcodes = [[item.opcode[0] for item in block.body] for block in blocks]
    return set(ends) - {common_end([block.successors for block in blocks], busy, opcodes)}


def bit_of(block: int) -> int:
    """Return the number that stands for a block in a set of blocks, which is a number too."""
    return 1 << block - EXIT_BLOCK


def _everything(blocks: list[BasicBlock]) -> int:
    """Return the set of all blocks, and the end."""
    return bit_of(len(blocks)) - 1


def _post_dominators(
    blocks: list[BasicBlock], left: Collection[tuple[int, int]], early: set[int] | None = None
) -> dict[int, int]:
    """Intersect the post-dominators of all successors until stable; return their sets.

    `early` ends are left out, and with them those that are one of a branch's two ways.
    """
    followed = {}
    for i in reversed(range(len(blocks))):
        ways = {goal for goal in blocks[i].successors if (i, goal) not in left}
        going = ways if early is None else ways - {EXIT_BLOCK}
        if early is None or i not in early:
            followed[i] = going or ways
    everything = _everything(blocks)
    return dict.fromkeys(range(len(blocks)), everything) | passed_always(followed, EXIT_BLOCK, everything)


def passed_always(ways: Mapping[int, Collection[int]], end: int, everything: int = -1) -> dict[int, int]:
    """Return for each block the set of those that every way from it to `end` passes, both included.

    Args:
        ways: The blocks to which each but `end` leads; backwards, those that lead to it.
        end: Where ways end.
        everything: The set that stands for a block from which no way gets there.
    """
    passed = dict.fromkeys(ways, everything) | {end: bit_of(end)}
    changed = True
    while changed:
        changed = False
        for block, goals in ways.items():
            found = reduce(and_, (passed.get(goal, everything) for goal in goals), everything) | bit_of(block)
            if passed[block] != found:
                passed[block], changed = found, True
    return passed


def read_before_written(blocks: list[BasicBlock]) -> set[str]:
    """Return the registers that some way through the blocks reads before anything is written to them."""
    return _live_into(blocks)[0]


def live_after(body: list[Instruction | Label], opcode: str) -> list[set[str]]:
    """Return for each instruction of one opcode the registers whose values are read after it."""
    blocks = _cut(_without_guarded_ends(body))
    into = _live_into(blocks)
    found: list[set[str]] = []
    for block in blocks:
        live = set().union(*(into[s] for s in block.successors if s != EXIT_BLOCK))
        of_block: list[set[str]] = []
        for item in reversed(block.items):
            if item.opcode[0] == opcode:
                of_block.append(set(live))
            reads, writes = reads_and_writes(item)
            if item.guard is None:
                live -= set(writes)
            live |= set(reads)
        found += reversed(of_block)
    return found


def first_reads(items: Iterable[Instruction]) -> tuple[set[str], set[str]]:
    """Return the registers that are read before these instructions write them, and those written for sure."""
    first: set[str] = set()
    written: set[str] = set()
    for item in items:
        reads, writes = reads_and_writes(item)
        first.update([name for name in reads if name not in written])
        if item.guard is None:
            written.update(writes)
    return first, written


def passing(blocks: list[BasicBlock]) -> set[str]:
    """Return the registers whose value goes from one basic block, or one pass through it, to another."""
    home: dict[str, int] = {}
    found: set[str] = set()
    for number, block in enumerate(blocks):
        found |= first_reads(block.items)[0]
        for item in block.items:
            reads, writes = reads_and_writes(item)
            found.update([name for name in (*reads, *writes) if home.setdefault(name, number) != number])
            if item.guard is not None:
                found.update(writes)
    return found


def _live_into(blocks: list[BasicBlock]) -> list[set[str]]:
    """Return for each block the registers that it, or one after it, reads before it writes them."""
    wanted: list[set[str]] = []
    given: list[set[str]] = []
    for block in blocks:
        first, written = first_reads(block.items)
        wanted.append(first)
        given.append(written)
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(blocks))):
            after = set().union(*(wanted[s] for s in blocks[i].successors if s != EXIT_BLOCK))
            more = after - given[i] - wanted[i]
            if more:
                wanted[i] |= more
                changed = True
    return wanted


#: Opcodes whose first operand is no destination; those in the second line are made here, not by PTX.
_NO_TARGET = frozenset(
    {
        *("st", "red", "bra", "cp", "fence", "membar", "stackrestore", "sust", "sured"),
        *(SWITCH, "save_frame", "no_target"),
    }
)


def reads_and_writes(item: Instruction) -> tuple[list[str], list[str]]:
    """Return the names of the registers that an instruction reads and those that it writes."""
    # Everything that looks at a program asks, so the answer is kept with the instruction.
    known = item.flow
    if known is None:
        known = item.__dict__["flow"] = _reads_and_writes(item)
    return known


def _reads_and_writes(item: Instruction) -> tuple[list[str], list[str]]:
    from_first = item.opcode[0] in _NO_TARGET
    from_first |= item.opcode[0] in _BARRIERS and "red" not in item.opcode
    sources: list[str] = [item.guard] if item.guard else []
    targets: list[str] = []
    for position, operand in enumerate(item.operands):
        names = registers_in(operand)
        second = position == 1 and len(item.operands) > 1 and has_second_target(item)
        first = position == 0 and not from_first and not isinstance(operand, Mem)
        if first or second:
            targets += names
            if item.opcode[0] == "wgmma":  # it adds to its target
                sources += names
        else:
            sources += names
    return sources, targets


def has_second_target(item: Instruction) -> bool:
    """Tell whether an instruction writes its second operand too."""
    if item.opcode[0] == "elect":
        return True
    if item.opcode[0] in ("tex", "tld4"):  # whether the texel is resident
        return isinstance(item.operands[1], Reg)
    if item.opcode[0] == "setp":
        return len(item.operands) - any(f in item.opcode for f in ("and", "or", "xor")) == 4
    if item.opcode[0] == "lop3":
        return len(item.operands) == 7
    if item.opcode[0] == "shfl":
        return len(item.operands) - ("sync" in item.opcode) == 5
    return item.opcode[0] == "match" and "all" in item.opcode and len(item.operands) == 4


def registers_in(operand: Operand) -> list[str]:
    """Return the registers of an operand."""
    if isinstance(operand, Reg):
        return [operand.name]
    return [leaf.name for leaf in leaves(operand) if isinstance(leaf, Reg)]


#: Instructions that machine code has no need of.
FREE = ("mov", "bra")
#: How many instructions of PTX may be one too many to be the end with more to do.
_CLOSE = 1


def common_end(
    successors: Sequence[tuple[int, ...]], ends: Sequence[int], opcodes: Sequence[Sequence[str]]
) -> int | None:
    """Return, of several ends of a kernel, the one that diverged lanes meet before; None where nothing ends.

    Where one way out of a branch ends the thread, lanes cannot all meet after the branch, and ptxas chooses
    for whom the others wait. What it chooses was read off the machine code of small kernels: the end that
    most ways lead to. But where a loop leaves for two ends, for one after its rounds and for the other in the
    middle of every round, lanes meet before the one with more to do, and reach the other when they leave.

    Negative successors stand for the end of the thread; `ends` are blocks after which threads always end,
    with something to do before; `opcodes` are the first parts of those of each block.
    """
    ways = Counter(after for goals in successors for after in goals)
    usual = max(ends, key=lambda i: (ways[i], i), default=None)
    if usual is None or len(ends) == 1:
        return usual
    before = before_each(successors)
    runs = {end: _run(end, successors, before) for end in ends}
    work = {
        end: sum(name not in FREE for block in run for name in opcodes[block]) for end, run in runs.items()
    }
    for end, run in runs.items():
        for place in before[run[-1]]:
            left = _after_rounds(place, successors, before)
            after = {other for other in ends if runs[other][-1] in left} - {end}
            if usual in after | {end} and after:
                last = max(after, key=lambda i: work[i])
                return end if work[end] + _CLOSE >= work[last] else last
    return usual


def before_each(successors: Sequence[Collection[int]]) -> list[list[int]]:
    """Return the blocks from which control comes to each, given where it goes on from each."""
    before: list[list[int]] = [[] for _ in successors]
    for number, goals in enumerate(successors):
        for goal in {*goals}:
            if goal >= 0:
                before[goal].append(number)
    return before


def _run(end: int, successors: Sequence[tuple[int, ...]], before: list[list[int]]) -> list[int]:
    """Return an end with the blocks that do nothing but lead to it, from the last to the first."""
    run = [end]
    while len(places := before[run[-1]]) == 1 and len({*successors[places[0]]}) == 1:
        run.append(places[0])
    return run


def _after_rounds(place: int, successors: Sequence[tuple[int, ...]], before: list[list[int]]) -> set[int]:
    """Return where a loop leads to after its rounds, if it passes a block in each and holds no loop."""

    def behind(block: int, within: set[int]) -> set[int]:
        return reached(within.intersection(successors[block]), lambda i: within.intersection(successors[i]))

    leading: set[int] = reached(before[place], lambda i: before[i])
    loop = leading & behind(place, {*range(len(successors))})
    if place not in loop:
        return set()
    heads = {i for i in loop if i == 0 or not loop.issuperset(before[i])}
    inner, others = loop - heads, loop - {place}
    if any(i in behind(i, inner) for i in inner):
        return set()  # there is a loop in it
    if any(head in behind(head, {*others, head}) for head in heads - {place}):
        return set()
    latches = [i for i in loop if heads & {*successors[i]}]
    return {goal for i in latches for goal in successors[i]} - loop


def reached(starts: Iterable[T], step: Callable[[T], Iterable[T]]) -> set[T]:
    """Return all that steps lead to, the starts themselves included."""
    found: set[T] = set()
    left = [*starts]
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += step(one)
    return found


def leads_to(flow: Sequence[BasicBlock], line: int, other: int) -> bool:
    """Tell whether a thread may access memory in one line and then in another, with no barrier between."""
    lines = [
        [item.line for item in block.body if any(isinstance(operand, Mem) for operand in item.operands)]
        for block in flow
    ]
    held = [number for number, own in enumerate(lines) if line in own]
    if any(other in lines[number][lines[number].index(line) :] for number in held):
        return True

    def onward(number: int) -> set[int]:
        stops = flow[number].end in (End.BARRIER, End.CLUSTER_WAIT)
        return set() if stops else {*flow[number].successors} - {EXIT_BLOCK}

    behind = reached(set().union(*map(onward, held)), onward)
    return any(other in lines[number] for number in behind)
