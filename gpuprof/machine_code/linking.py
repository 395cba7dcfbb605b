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
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import gcd

from gpuprof.executor import Loop, loops_of
from gpuprof.machine_code.merged_atomics import merged_atomics
from gpuprof.machine_code.sass import Block, Instruction, MachineCode

#: What ptxas leaves where it stands, and then what it moves at most out of loops.
_FIXED = frozenset(
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
_BRANCHES = frozenset({"BRA", "BRX", "EXIT", "RET"})
_END = re.compile(r"\s*(?:ret|exit)\b")
_CONTROL = re.compile(r"\s*(?:[\w$]+:\s*)?(?:@!?[\w$%]+\s+)?(?:bra|brx|ret|exit)\b")


@dataclass(slots=True)
class Voices:
    """What speaks for one block of machine code: lines of the PTX text.

    Attributes:
        fixed: Lines whose instructions never leave their block, and that stand in no other.
        guarded: Such lines, of instructions under a predicate: the block runs at least as often.
        loads: Lines of loads that stand in no other block.
        others: Lines of anything else that stand in no other block.
        lanes: The line whose threads, not warps, the block runs for.
        branch: The line of the branch that ends it; None where it ends in none of the PTX's.
    """

    fixed: list[int] = field(default_factory=list)
    guarded: list[int] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    lanes: int | None = None
    branch: int | None = None


@dataclass(frozen=True, slots=True)
class Copies:
    """A loop of the PTX that ptxas unrolled.

    Args:
        loop: The basic block where each turn begins.
        factors: How many turns each block of machine code is, by its number.
    """

    loop: int
    factors: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Link:
    """Machine code and what speaks for its blocks.

    Args:
        code: The machine code.
        homes: The basic blocks of the executor's program that a line of the PTX text stands in.
        sources: The source line of each line of the PTX text.
        voices: For each block of the machine code.
        copies: The loops that were unrolled.
        loops: The machine code's loops, by the blocks where their turns begin.
        twins: Of those that were not unrolled, where the turns of the PTX's own loop begin.
    """

    code: MachineCode
    homes: Mapping[int, tuple[int, ...]]
    sources: Mapping[int, int]
    voices: tuple[Voices, ...]
    copies: tuple[Copies, ...]
    loops: Mapping[int, Loop]
    twins: Mapping[int, int]

    @property
    def watched_loops(self) -> tuple[int, ...]:
        """Loops whose turns the executor must count, by the basic blocks where turns begin."""
        return tuple(dict.fromkeys((*(one.loop for one in self.copies), *self.twins.values())))

    @property
    def merged_atomics(self) -> frozenset[int]:
        """Lines of the PTX text whose atomic operation one lane does for all of its warp."""
        return merged_atomics(self.code)


def link(
    code: MachineCode, ptx: str, places: Sequence[Sequence[tuple[int, int]]], loops: Mapping[int, Loop]
) -> Link:
    """Find what speaks for each block.

    Args:
        code: The machine code.
        ptx: The PTX text that it was assembled from.
        places: For each basic block of the executor's program, its instructions' lines in the PTX text and in
            the source.
        loops: The program's loops, by the basic blocks where their turns begin.
    """
    texts = ptx.splitlines()
    control = {number for number, text in enumerate(texts, 1) if _CONTROL.match(text)}
    ends = {number for number in control if _END.match(texts[number - 1])}
    # The executor ends threads where they jump to a lone end.
    counted = [() if len(block) == 1 and block[0][0] in ends else block for block in places]
    conditional = {number for number in control if "@" in texts[number - 1]}
    listener = _Listener(code, _homes(counted), control, conditional)
    voices = tuple(listener.voices(number) for number in range(len(code.blocks)))
    copies, own = tuple(listener.copies(loops)), loops_of(code.blocks)
    unrolled = {one.loop for one in copies}
    twins = {header: _twin(voices[header], listener.homes, loops) for header in own}
    return Link(
        code,
        listener.homes,
        {line: source for block in places for line, source in block if line},
        voices,
        copies,
        own,
        {header: twin for header, twin in twins.items() if twin is not None and twin not in unrolled},
    )


def _twin(voices: Voices, homes: Mapping[int, tuple[int, ...]], loops: Mapping[int, Loop]) -> int | None:
    """Return the loop of the PTX that what speaks for a block of the machine code stands in."""
    for line in (*voices.fixed, *voices.loads, *voices.others):
        if len(homes[line]) == 1:
            (home,) = homes[line]
            header = _innermost(home, loops)
            if header is not None and home in loops[header].each_turn:
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


class _Listener:
    """Hears what the instructions of machine code say of their blocks.

    Args:
        code: The machine code.
        homes: As in `Link`.
        control: Lines of the PTX text that are branches or ends there.
        conditional: Of them those under a predicate.
    """

    def __init__(
        self,
        code: MachineCode,
        homes: Mapping[int, tuple[int, ...]],
        control: Set[int],
        conditional: Set[int],
    ) -> None:
        self.code = code
        self.homes = homes
        self.conditional = conditional
        #: In which blocks the instructions of a line and opcode stand, and how often.
        self.places: dict[tuple[int, str], dict[int, int]] = {}
        #: In which blocks anything of a line stands.
        self.spread: dict[int, set[int]] = defaultdict(set)
        #: Lines that became branches though they are none in the PTX: their instructions may be skipped.
        self.skipped: set[int] = set()
        for number, block in enumerate(code.blocks):
            if block.subroutine:
                continue
            for one in block.instructions:
                places = self.places.setdefault((one.line, one.opcode), {})
                places[number] = places.get(number, 0) + 1
                self.spread[one.line].add(number)
                if one.name in _BRANCHES and one.line not in control:
                    self.skipped.add(one.line)

    def voices(self, number: int) -> Voices:
        """Return what speaks for one block."""
        block, own = self.code.blocks[number], Voices()
        if block.subroutine:
            return own
        if (line := _elected(block)) is not None:
            own.lanes = line
            return own
        for one in block.instructions:
            if one.line not in self.homes or one.line in self.skipped:
                continue
            if len(self.places[one.line, one.opcode]) > 1:
                continue
            if one.name in _BRANCHES:
                # A jump that always follows a conditional one is executed by other warps than that one.
                if one.line in self.conditional or not one.guard:
                    own.fixed.append(one.line)
                    own.branch = one.line
            elif one.name in _FIXED:
                (own.guarded if one.guard else own.fixed).append(one.line)
            elif one.name in _LOADS:
                (own.guarded if one.guard else own.loads).append(one.line)
            elif not one.guard and len(self.spread[one.line]) == 1 and not _may_stand_anywhere(one):
                own.others.append(one.line)
        return own

    def copies(self, loops: Mapping[int, Loop]) -> Iterator[Copies]:
        """Yield the loops that were unrolled: what stays in its block stands in several, here more often."""
        found: dict[int, Counter[tuple[tuple[int, int], ...]]] = defaultdict(Counter)
        for (line, opcode), where in self.places.items():
            homes, name = self.homes.get(line, ()), opcode.partition(".")[0]
            stays = name in (_FIXED | _LOADS | _ARITHMETIC) and line not in self.skipped
            if not stays or len(homes) != 1:
                continue
            header = _innermost(homes[0], loops)
            if header is None:
                continue
            if homes[0] in loops[header].each_turn or self._is_guarded(line, opcode):
                found[header][tuple(sorted(where.items()))] += 1
        for loop, patterns in found.items():
            pattern, times = patterns.most_common(1)[0]
            factors = dict(pattern)
            # One instruction may stand in two blocks for other reasons.
            copied = max(factors.values()) > min(factors.values()) or len(factors) > 2
            if copied and times >= _MOST * patterns.total():
                whole = gcd(*factors.values())
                yield Copies(loop, {number: factor // whole for number, factor in factors.items()})

    def _is_guarded(self, line: int, opcode: str) -> bool:
        """Whether all that a line became of an opcode is under predicates: its block runs anyway."""
        return all(
            bool(one.guard)
            for number in self.places[line, opcode]
            for one in self.code.blocks[number].instructions
            if (one.line, one.opcode) == (line, opcode)
        )


def _may_stand_anywhere(one: Instruction) -> bool:
    return one.name in _CONSTANTS or one.opcode.startswith(_MOVES)


def _elected(block: Block) -> int | None:
    """Return the line of a block that elects lane after lane, as bulk copies do; None of any other."""
    first, last = block.instructions[0], block.instructions[-1]
    return first.line if first.name == "ELECT" and last.opcode == "BRA.U.ANY" else None
