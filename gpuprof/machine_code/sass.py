# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read what nvdisasm prints: a kernel's instructions, in basic blocks with the ways between them."""

import re
from collections.abc import Iterator
from sys import intern

from msgspec import Struct, structs

from gpuprof.executor import predecessors

_SECTION = re.compile(r"^\.text\.(\S+):$")
_LINE = re.compile(r'^\s*//## File "[^"]*", line (\d+)')
_LABEL = re.compile(r"^\s*([.$\w]+):$")
_SIZE_OF = re.compile(r"^\s*\.size\s+(\S+?),")
_INSTRUCTION = re.compile(
    r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;\s*(?:/\*.*)?$"
)
_GOAL = re.compile(r"`\(([^)]+)\)")
_TARGETS = re.compile(r'BRANCH_TARGETS ([^"*]*)')
#: The branch of warps whose lanes are not all there, beside instructions for all lanes.
DIVERGED = "BRA.DIV"
#: A predicate that always holds.
_ALWAYS = ("PT", "UPT")
#: Opcodes after which a warp goes elsewhere, or nowhere.
_JUMPS = frozenset({"BRA", "BRX", "BRXU", "JMP", "JMX"})
_ENDS = _JUMPS | {"EXIT", "RET", "KILL"}


class SassInstruction(Struct, frozen=True):
    """One machine instruction.

    `guard` is for example `!P0`, or empty; the opcode has its modifiers: `LDG.E.128`. `line` is that of the
    PTX text that it came from, 0 where it has none; `name` is the opcode without modifiers.
    """

    address: int
    guard: str
    opcode: str
    operands: str
    line: int
    name: str = ""

    def __post_init__(self) -> None:
        structs.force_setattr(self, "name", intern(self.opcode.partition(".")[0]))

    @property
    def is_system_call(self) -> bool:
        """Whether it calls what the driver brings, such as vprintf; a kernel's own are called relatively."""
        return self.opcode.startswith("CALL.ABS")


class Block(Struct):
    """Instructions that a warp executes one after the other.

    At its end it may call the subroutine that begins at the block `callee`; where it `leaves`, warps or some
    of their threads may end or go back to a caller. `subroutine` says that it belongs to one that ptxas
    brought. Lanes of the block `together`, however they parted since, go on here together; a warp whose lanes
    are not all there goes to the block `apart`.
    """

    instructions: list[SassInstruction]
    successors: tuple[int, ...] = ()
    callee: int | None = None
    leaves: bool = False
    subroutine: bool = False
    together: int | None = None
    apart: int | None = None

    @property
    def ways(self) -> tuple[int, ...]:
        """The blocks that it leads to, and the one that it calls."""
        return (*self.successors, *(() if self.callee is None else (self.callee,)))


class MachineCode(Struct, frozen=True):
    """A kernel's machine code.

    The blocks are in the order of addresses, and the first is the entry; it is `complete` if all ways between
    them are known.
    """

    blocks: tuple[Block, ...]
    complete: bool


class _SectionBody(Struct):
    """A section as read: instructions, and which instruction follows each label."""

    instructions: list[SassInstruction] = []
    labels: dict[str, int] = {}
    functions: list[str] = []


def read_machine_code(listing: str, entry: str) -> MachineCode:
    """Return one kernel's machine code from what nvdisasm printed; ValueError if the kernel is not there."""
    body = _body(listing, entry)
    if not body.instructions:
        raise ValueError(f"nvdisasm shows no kernel {entry}")
    return _cut(body, entry)


def _body(listing: str, entry: str) -> _SectionBody:
    body, inside, line = _SectionBody(), False, 0
    for text in listing.splitlines():
        if section := _SECTION.match(text):
            inside = section[1] == entry
        elif not inside:
            continue
        elif place := _LINE.match(text):
            line = int(place[1])
        elif label := _LABEL.match(text):
            body.labels[label[1]] = len(body.instructions)
        elif size := _SIZE_OF.match(text):
            body.functions.append(size[1])
        elif found := _INSTRUCTION.match(text):
            address, guard, opcode, operands = found.groups()
            guard = "" if guard in _ALWAYS else guard or ""
            body.instructions.append(SassInstruction(int(address, 16), guard, opcode, operands, line))
    return body


def _cut(body: _SectionBody, entry: str) -> MachineCode:
    code, labels = body.instructions, body.labels
    # Newer nvdisasms also label what nothing leads to.
    named = {goal for one in code for goal in (*_GOAL.findall(one.operands), *_goals(one))}
    leaders = {0, *(place for label, place in labels.items() if label in {*named, *body.functions})}
    leaders |= {i + 1 for i, one in enumerate(code) if one.name in (*_ENDS, "CALL", "BSYNC")}
    starts = sorted(start for start in leaders if start < len(code))
    number = {start: i for i, start in enumerate(starts)}
    starts_of_functions = [labels[name] for name in body.functions if name in labels and name != entry]
    first_of_others = min(starts_of_functions, default=len(code))
    blocks, complete = [], True
    for start, end in zip(starts, [*starts[1:], len(code)], strict=True):
        block = Block(code[start:end], subroutine=start >= first_of_others)
        complete &= _link(block, number, labels, end, first_of_others)
        blocks.append(block)
    _find_meetings(blocks, number, labels)
    return MachineCode(tuple(blocks), complete)


def _link(
    block: Block, number: dict[int, int], labels: dict[str, int], end: int, first_of_others: int
) -> bool:
    """Fill in where a block leads; return whether that is known."""
    last = block.instructions[-1]
    goals = [number[labels[name]] for name in _goals(last) if labels.get(name) in number]
    following = [number[end]] if end in number else []
    block.leaves = any(one.name in ("EXIT", "RET", "KILL") for one in block.instructions)
    jumps = last.name in _JUMPS
    if last.name == "CALL":
        # By a call of a place in the kernel, which nothing comes back from, ptxas leaves some loops of sm_89.
        jumps = any(labels.get(name, first_of_others) < first_of_others for name in _goals(last))
    if last.name == "CALL" and not jumps:
        block.callee = goals[0] if goals else None
        block.successors = tuple(following)
        return bool(goals) or last.is_system_call
    if last.name not in _ENDS and not jumps:
        block.successors = tuple(following)
        return True
    # Predicates of the warp stand among the operands: `BRA.U UP0, …`, `BRA P1, …`.
    conditional = bool(last.guard) or (jumps and bool(re.match(r"!?U?P\d", last.operands)))
    if last.opcode == DIVERGED and goals:
        conditional, block.apart = True, goals[0]
    block.successors = tuple(dict.fromkeys((*(goals if jumps else ()), *(following if conditional else ()))))
    return bool(goals) or not jumps


def _find_meetings(blocks: list[Block], number: dict[int, int], labels: dict[str, int]) -> None:
    """Fill in where lanes go on together: behind the BSYNCs of a BSSY, which names that place beforehand."""
    comers = predecessors(blocks)
    for opened, block in enumerate(blocks):
        for one in block.instructions:
            goals = _GOAL.findall(one.operands) if one.name == "BSSY" else ()
            for goal in (number[labels[name]] for name in goals if labels.get(name) in number):
                if any(blocks[before].instructions[-1].name == "BSYNC" for before in comers[goal]):
                    blocks[goal].together = opened


def _goals(last: SassInstruction) -> Iterator[str]:
    if targets := _TARGETS.search(last.operands):
        yield from (name.strip() for name in targets[1].split(","))
    elif last.name in ("BRA", "JMP", "CALL"):
        yield from _GOAL.findall(last.operands)
