# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which counts of a kernel's PTX tell how often each basic block of its machine code executes.

The executor counts exactly how often warps run each PTX instruction, and each machine instruction tells which
PTX instruction it came from. ptxas moves instructions, though: out of loops, into other branches, under
predicates; it copies them where it unrolls; and it makes branches of its own. So only what cannot leave its
block speaks for it, from stores and barriers, which never move, down to loads. An instruction that stands in
several blocks speaks for their sum.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from math import gcd

from msgspec import Struct

from gpuprof.executor import Loop, loops_of, reached
from gpuprof.machine_code.sass import DIVERGED, Block, MachineCode, SassInstruction
from gpuprof.records import grouped

_END = re.compile(r"\s*(?:ret|exit)\b")
_CONTROL = re.compile(r"\s*(?:[\w$]+:\s*)?(?:@!?[\w$%]+\s+)?(?:bra|brx|ret|exit)\b")
_BRANCH = re.compile(r"\s*@!?[\w$%]+\s+bra(?:\.uni)?\s+([\w$]+)\s*;")
_LABEL = re.compile(r"\s*([\w$]+):(?!:)")
#: Instructions that read or write local memory, or any.
_ACCESS = re.compile(r"\s*(?:@!?[\w$%]+\s+)?(?:ld|st)\.(?!shared|global|param|const)")
_ONE = re.compile(r"\s*(?:@!?[\w$%]+\s+)?(?:ld|st|atom|red|bar|barrier|shfl|vote|match|redux|cp\.async)\.")


class PtxText:
    """Lines of a PTX text, by their numbers from 1.

    `control` are those that are branches or ends; of them `ends` are unconditional ends, and `conditional`
    are under a predicate.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.control = {number for number, text in enumerate(lines, 1) if _CONTROL.match(text)}
        self.ends = {number for number in self.control if _END.match(lines[number - 1])}
        self.conditional = {number for number in self.control if "@" in lines[number - 1]}

    def is_access(self, line: int) -> bool:
        """Whether a line may read or write local memory."""
        return bool(_ACCESS.match(self._lines[line - 1]))

    def becomes_one(self, line: int) -> bool:
        """Whether a line becomes one instruction: a load, store, copy, atomic, barrier, shuffle or vote."""
        return bool(_ONE.match(self._lines[line - 1]))

    def statements(self, line: int) -> int:
        """How many end in a line, or one if it goes on in the next."""
        return max(1, self._lines[line - 1].count(";"))

    def copies(self, line: int) -> bool:
        """Whether a line is an asynchronous copy, or of a group of them."""
        return "cp.async" in self._lines[line - 1]

    @cached_property
    def led_by(self) -> dict[int, int]:
        """Of branches, the one that alone leads there, where both lead to one place, as of `if (a && b)`."""
        return dict(self._pairs())

    def _pairs(self) -> Iterator[tuple[int, int]]:
        before: tuple[int, str] | None = None
        for number, text in enumerate(self._lines, 1):
            if _LABEL.match(text):
                before = None
            if number not in self.control:
                continue
            branch = _BRANCH.match(text)
            if branch and before and before[1] in (branch[1], *self._labels_behind(number)):
                yield number, before[0]
            before = (number, branch[1]) if branch else None

    def _labels_behind(self, number: int) -> Iterator[str]:
        for text in self._lines[number:]:
            if label := _LABEL.match(text):
                yield label[1]
            elif text.strip() and not text.lstrip().startswith((".loc", "//")):
                return


#: What ptxas leaves where it stands, and then what it moves at most out of loops.
FIXED = frozenset(
    {
        *("ST", "STG", "STS", "STL", "STSM", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS", "LDGSTS"),
        *("BAR", "SHFL", "VOTE", "MATCH", "REDUX", "WARPSYNC", "SYNCS", "LDGDEPBAR", "NANOSLEEP"),
        *("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "UBLKCP", "UTMALDG", "UTMASTG"),
    }
)
_LOADS = frozenset({"LD", "LDG", "LDS", "LDL", "LDSM", "TEX", "TLD", "SULD", "SUST"})
#: What reads constants only, and may therefore stand anywhere; so may what has no operand but constants.
_CONSTANTS = frozenset({"LDC", "ULDC", "S2R", "S2UR", "CS2R", "MOV", "UMOV", "R2UR", "PLOP3", "UPLOP3"})
_MOVES = ("IMAD.MOV", "HFMA2.MMA", "IMAD.U32")
_ARITHMETIC = frozenset({"FFMA", "FADD", "FMUL", "DFMA", "DADD", "DMUL", "HFMA2", "HADD2", "HMUL2", "MUFU"})
#: Share of a loop's instructions that stand in its copies alike.
_MOST = 0.5
#: What brings registers to local memory and back: whichever instruction needs them lends its line.
_SPILLS = frozenset({"LDL", "STL"})
_BRANCHES = frozenset({"BRA", "BRX", "EXIT", "RET"})


class Anchors(Struct):
    """Execution-count anchors of one block of machine code: PTX lines that tell how often it runs.

    `fixed` lines have instructions that never leave their block; of `guarded` ones, under a predicate, the
    block runs at least as often. The block is so many `times` what the PTX has around a line: once for each
    iteration of a loop that ptxas made straight code. None of these, of `loads` and of `others` stands
    in another block. For the threads, not warps, of `lanes` the block runs. `branches` are those that end it,
    which ptxas may have made one. The access of line `made` stands here alone, behind a branch that its
    predicate became: the block runs for warps of which a lane makes it.
    """

    fixed: list[int] = []
    guarded: list[int] = []
    times: dict[int, int] = {}
    loads: list[int] = []
    others: list[int] = []
    lanes: int | None = None
    made: int | None = None
    branches: tuple[int, ...] = ()


class Copies(Struct, frozen=True):
    """A loop of the PTX, by the basic block where iterations begin, that ptxas unrolled.

    Each block of machine code is so many of its iterations: `factors`, by the block's number; its body has
    these `lines` of the PTX. Where some of a
    block's are under predicates that those of other blocks are not, the block runs anyway: `guarded` has how
    many are under each.
    """

    loop: int
    factors: Mapping[int, int]
    lines: frozenset[int]
    guarded: Mapping[int, Sequence[int]] = {}


class Link(Struct, frozen=True, dict=True):
    """Machine code and the anchors of its blocks.

    `homes` are the basic blocks of the executor's program that a line of the PTX text stands in. Loops go by
    the blocks where their iterations begin: `twins` are those of the PTX's own loops, of those that were not
    unrolled.
    """

    code: MachineCode
    homes: Mapping[int, tuple[int, ...]]
    sources: Mapping[int, int]
    anchors: tuple[Anchors, ...]
    copies: tuple[Copies, ...]
    loops: Mapping[int, Loop]
    twins: Mapping[int, int]

    @cached_property
    def merged_atomics(self) -> frozenset[int]:
        """Lines of the PTX text whose atomic operation one lane does for all of its warp."""
        return merged_atomics(self.code)


def link(
    code: MachineCode,
    ptx: str,
    places: Sequence[Sequence[tuple[int, int]]],
    loops: Mapping[int, Loop],
    waits: Set[int],
) -> Link:
    """Find the anchors of each block.

    `places` has for each basic block of the executor's program its instructions' lines in the PTX text and in
    the source; `loops` are that program's, and `waits` the basic blocks of those that only wait.
    """
    text = PtxText(ptx.splitlines())
    # The executor ends threads where they jump to a lone end.
    counted = [() if len(block) == 1 and block[0][0] in text.ends else block for block in places]
    own = loops_of(code.blocks)
    finder = _AnchorFinder(code, counted, text, loops, waits)
    anchors = tuple(finder.anchors(number, own) for number in range(len(code.blocks)))
    copies = tuple(finder.copies(own))
    unrolled = {one.loop for one in copies}
    # What ended each iteration, and stands once now, ends some of them.
    ended = {
        line
        for line in text.control & finder.homes.keys()
        if any(_innermost(home, loops) in unrolled for home in finder.homes[line])
    }
    for each in anchors:
        each.fixed = [line for line in each.fixed if line not in ended]
    twins = {header: _twin(anchors[header], finder.homes, loops) for header in own}
    return Link(
        code,
        finder.homes,
        {line: source for block in places for line, source in block if line},
        anchors,
        copies,
        own,
        {header: twin for header, twin in twins.items() if twin is not None and twin not in unrolled},
    )


def _twin(anchors: Anchors, homes: Mapping[int, tuple[int, ...]], loops: Mapping[int, Loop]) -> int | None:
    """Return the loop of the PTX that the anchors of a block of the machine code stand in."""
    for line in (*anchors.fixed, *anchors.loads, *anchors.others):
        if len(homes[line]) == 1:
            (home,) = homes[line]
            header = _innermost(home, loops)
            if header is not None and home in loops[header].each_iteration:
                return header
    return None


def _innermost(home: int, loops: Mapping[int, Loop]) -> int | None:
    around = [header for header, loop in loops.items() if home in loop.body]
    return min(around, key=lambda header: len(loops[header].body), default=None)


def _homes(places: Sequence[Sequence[tuple[int, int]]]) -> dict[int, tuple[int, ...]]:
    homes: dict[int, list[int]] = defaultdict(list)
    for number, block in enumerate(places):
        # An instruction under a predicate that ends a block was made a branch around it: the branch counts.
        around = number > 0 and block and places[number - 1] and block[0] == places[number - 1][-1]
        for line in dict.fromkeys(line for line, _ in (block[1:] if around else block)):
            if line:
                homes[line].append(number)
    return {line: tuple(numbers) for line, numbers in homes.items()}


class _AnchorFinder:
    """Finds what the instructions of machine code say of their blocks."""

    def __init__(
        self,
        code: MachineCode,
        counted: Sequence[Sequence[tuple[int, int]]],
        text: PtxText,
        loops: Mapping[int, Loop],
        waits: Set[int],
    ) -> None:
        self.code = code
        self.counted = counted
        self.homes = homes = _homes(counted)
        self.text = text
        self.loops = loops
        #: Lines of loops that only wait, which say how long the executor's threads waited, and no card's.
        self.waiting = {line for line, where in homes.items() if not waits.isdisjoint(where)}
        #: In which blocks the instructions of a line and opcode stand, and how often.
        self.places: dict[tuple[int, str], dict[int, int]] = {}
        #: In which blocks anything of a line stands.
        self.spread: dict[int, set[int]] = defaultdict(set)
        #: Lines that became branches though they are none in the PTX: their instructions may be skipped.
        self.skipped: set[int] = set()
        #: Lines that are branches in the machine code, and how many.
        self.branches: Counter[int] = Counter()
        #: Blocks for warps whose lanes are not all there.
        self.apart = _apart(code.blocks)
        for number, block in enumerate(code.blocks):
            if block.subroutine:
                continue
            for one in block.instructions:
                places = self.places.setdefault((one.line, one.opcode), {})
                places[number] = places.get(number, 0) + 1
                self.spread[one.line].add(number)
                if one.name in _BRANCHES and one.opcode != DIVERGED:
                    self.branches[one.line] += 1
        self.skipped = {*self.branches} - text.control
        #: Whether warps that skip what comes last end there, before the others do.
        self.ends_early = any(self.places.get((line, "EXIT")) for line in self.skipped)

    def anchors(self, number: int, own: Mapping[int, Loop]) -> Anchors:
        """Return the anchors of one block; `own` are the loops of the machine code."""
        block, found = self.code.blocks[number], Anchors()
        if block.subroutine or number in self.apart:
            return found
        if (line := _elected(block)) is not None:
            found.lanes = line
            return found
        made = self._iterations(block)
        # Whether control goes from its end back to the begin of a loop that it is in.
        turns = any(after in own and number in own[after].body for after in block.successors)
        for one in block.instructions:
            if one.opcode == DIVERGED or one.line not in self.homes or one.line in self.waiting:
                continue
            if self._is_skipped(one, block):
                if one.name in FIXED and not one.guard and len(self.places[one.line, one.opcode]) == 1:
                    found.made = one.line
                continue
            if one.name in _SPILLS and not self.text.is_access(one.line):
                continue
            if len(self.places[one.line, one.opcode]) > 1:
                continue
            if self.ends_early and one.name == "EXIT" and one.line in self.text.ends:
                continue
            if one.name in _BRANCHES:
                # A jump that always follows a conditional one is executed by other warps than that one.
                if one.line in self.text.conditional or not one.guard:
                    found.branches = tuple(self._made_one(one.line))
                    # A loop that asks before each iteration may have been made one that asks behind it.
                    (found.others if turns else found.fixed).append(found.branches[-1])
            elif one.name in FIXED or one.is_system_call:
                times = self.places[one.line, one.opcode][number]
                if times == 1 or self._becomes_one(one.line):
                    (found.guarded if one.guard else found.fixed).append(one.line)
                    around = (made.get(home, 1) for home in self.homes[one.line])
                    found.times[one.line] = max(times, *around)
                else:
                    found.loads.append(one.line)
            elif one.name in _LOADS:
                (found.guarded if one.guard else found.loads).append(one.line)
            elif not one.guard and len(self.spread[one.line]) == 1 and not _may_stand_anywhere(one):
                found.others.append(one.line)
        return found

    def _is_access(self, line: int, name: str) -> bool:
        """Whether an instruction does what its line says, and may stay in its block for that."""
        # Before copies are waited for as a group, ptxas loads from shared memory under a false predicate.
        lent = name == "LDS" and self.text.copies(line)
        lent |= name in _SPILLS and not self.text.is_access(line)
        return name in FIXED | _LOADS and not lent

    def _becomes_one(self, line: int) -> bool:
        return self.text.becomes_one(line) and self.text.statements(line) == 1

    def _iterations(self, block: Block) -> dict[int, int]:
        """Return how many times a block of the machine code is each basic block of the PTX.

        ptxas drops what a later iteration overwrites: what stands most often stands for all.
        """
        found: dict[int, int] = {}
        always = ((one.line, one.opcode) for one in block.instructions if not one.guard)
        for (line, opcode), times in Counter(always).items():
            known = line in self.homes and self._becomes_one(line)
            if known and self._is_access(line, opcode.partition(".")[0]):
                each = times // self._of_an_iteration(line, [times])
                found |= {home: max(each, found.get(home, 1)) for home in self.homes[line]}
        return found

    def _is_skipped(self, one: SassInstruction, block: Block) -> bool:
        """Whether an instruction may stand behind a branch that its line became."""
        last = block.instructions[-1]
        return one.line in self.skipped and (
            self.branches[one.line] > 1 or last.line != one.line or last is one
        )

    def _made_one(self, line: int) -> Iterator[int]:
        """Yield a branch and those before it that ptxas made one with it, and which it is as frequent as."""
        yield line
        before = self.text.led_by.get(line)
        while before is not None and before not in self.branches and before in self.homes:
            yield before
            before = self.text.led_by.get(before)

    def copies(self, own: Mapping[int, Loop]) -> Iterator[Copies]:
        """Yield the loops that were unrolled: what stays in its block stands in several, here more often.

        Of a loop whose first iteration was taken out, all that moves data stands before the loop and in it.
        `own` are the loops of the machine code.
        """
        found: dict[int, dict[tuple[tuple[int, int], ...], list[tuple[int, str]]]] = defaultdict(dict)
        moves: dict[int, set[tuple[tuple[int, int], ...]]] = defaultdict(set)
        for (line, opcode), where in self.places.items():
            homes, name = self.homes.get(line, ()), opcode.partition(".")[0]
            stays = name in _ARITHMETIC or self._is_access(line, name)
            if not stays or line in self.skipped | self.waiting or len(homes) != 1:
                continue
            header = _innermost(homes[0], self.loops)
            if header is None:
                continue
            if homes[0] in self.loops[header].each_iteration or self._is_guarded(line, opcode):
                each = self._of_an_iteration(line, where.values())
                pattern = tuple(sorted((number, times // each) for number, times in where.items()))
                found[header].setdefault(pattern, []).append((line, opcode))
                if name in FIXED | _LOADS:
                    moves[header].add(pattern if self.text.becomes_one(line) else ())
        for loop, patterns in found.items():
            pattern, alike = max(patterns.items(), key=lambda one: len(one[1]))
            factors = dict(pattern)
            # One instruction may stand in two blocks for other reasons.
            copied = max(factors.values()) > min(factors.values()) or len(factors) > 2
            alone = moves[loop] == {pattern}
            peeled = len(factors) == 2 and alone and goes_into(min(factors), max(factors), own)
            if (copied or peeled) and len(alike) >= _MOST * sum(map(len, patterns.values())):
                guarded = self._guarded(alike)
                whole = gcd(*factors.values(), *chain(*guarded.values()))
                yield Copies(
                    loop,
                    {number: factor // whole for number, factor in factors.items()},
                    frozenset(
                        line
                        for line, homes in self.homes.items()
                        if not self.loops[loop].body.isdisjoint(homes)
                    ),
                    {number: [one // whole for one in each] for number, each in guarded.items()},
                )

    def _of_an_iteration(self, line: int, times: Collection[int]) -> int:
        """How many of a line's instructions one iteration has: of a vector two words may be loaded apart."""
        listed = [one for one, _ in self.counted[self.homes[line][0]]].count(line)
        each = max(1, listed // self.text.statements(line))
        return 1 if any(count % each for count in times) else each

    def _guards(self, line: int, opcode: str) -> dict[int, Counter[str]]:
        """Return how many of what a line became of an opcode are under each predicate, by block."""
        return {
            number: Counter(
                one.guard
                for one in self.code.blocks[number].instructions
                if (one.line, one.opcode) == (line, opcode)
            )
            for number in self.places[line, opcode]
        }

    def _is_guarded(self, line: int, opcode: str) -> bool:
        """Whether all that a line became of an opcode is under predicates: its block runs anyway."""
        return not any("" in each for each in self._guards(line, opcode).values())

    def _guarded(self, alike: Iterable[tuple[int, str]]) -> dict[int, list[int]]:
        """Return how many copies are under each predicate, of blocks with none without, unlike others."""
        for one in alike:
            guards = self._guards(*one)
            each = self._of_an_iteration(one[0], self.places[one].values())
            under = {
                number: sorted(times // each for times in found.values())
                for number, found in guards.items()
                if "" not in found
            }
            if under and len(under) < len(guards):
                return under
        return {}


def goes_into(number: int, after: int, loops: Mapping[int, Loop]) -> bool:
    """Whether a block stands outside a loop that another is in, and in none that this one is not in."""
    inside = {header for header, loop in loops.items() if number in loop.body}
    return inside < {header for header, loop in loops.items() if after in loop.body}


def _apart(blocks: Sequence[Block]) -> set[int]:
    """Return the blocks that only warps get to whose lanes are not all there."""
    whole = reached([0], lambda one: [way for way in blocks[one].ways if way != blocks[one].apart])
    return {*range(len(blocks))} - whole


def _may_stand_anywhere(one: SassInstruction) -> bool:
    return one.name in _CONSTANTS or one.opcode.startswith(_MOVES)


def _elected(block: Block) -> int | None:
    """Return the line of a block that elects lane after lane, as bulk copies do; None of any other."""
    first, last = block.instructions[0], block.instructions[-1]
    return first.line if first.name == "ELECT" and last.opcode == "BRA.U.ANY" else None


_ATOMICS = frozenset({"RED", "REDG", "ATOM", "ATOMG"})
#: What makes one value of those that the lanes of a warp bring.
_COMBINING = frozenset({"REDUX", "POPC", "UPOPC"})
#: What sums up the lanes before each one: lanes that want to know what was there before, of whole warps only.
_SCANNING = "SHFL.UP"


def merged_atomics(code: MachineCode) -> frozenset[int]:
    """Return the lines of the PTX text whose atomic operation reaches memory once for each warp.

    Where it can prove that lanes of a warp have one address, ptxas adds up what they bring (REDUX, or a vote
    and a count where all bring the same) and puts the operation under a predicate that holds for one lane.
    Atomics that it leaves alone have nothing of that at their line of the PTX.
    """
    instructions = [one for block in code.blocks for one in block.instructions]
    atomics = {one.line for one in instructions if one.name in _ATOMICS} - {0}
    by_line = grouped((one for one in instructions if one.line in atomics), lambda one: one.line)
    return frozenset(line for line, beside in by_line.items() if _is_merged(beside))


def _is_merged(instructions: list[SassInstruction]) -> bool:
    atomics = [one for one in instructions if one.name in _ATOMICS]
    combined = any(one.name in _COMBINING for one in instructions)
    scanned = any(one.opcode.startswith(_SCANNING) for one in instructions)
    return combined and not scanned and all(one.guard for one in atomics)
