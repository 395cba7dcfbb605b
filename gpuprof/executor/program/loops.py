# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which loops may be there to wait: what other threads do decides how long they turn."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuprof.executor.program.flow import EXIT_BLOCK, BasicBlock, reads_and_writes
from gpuprof.executor.program.ptx import Instruction

_STRONG = {"volatile", "relaxed", "acquire", "mmio"}
_READS = ("ld", "atom")
_WRITES = ("st", "red")


@dataclass(frozen=True)
class WaitingLoop:
    """A loop in which memory is read that others may change meanwhile.

    Attributes:
        header: The basic block where each turn begins.
        found: Registers that hold what a turn read.
        given: Registers that say where it read, and what it wrote where.
        near: Whether it reads shared memory only, which threads of its own block alone can change.
    """

    header: int
    found: tuple[str, ...]
    given: tuple[str, ...]
    near: bool


def waiting_loops(blocks: list[BasicBlock]) -> dict[int, list[WaitingLoop]]:
    """Return such loops by the blocks from which control goes back to their headers."""
    loops: dict[int, list[WaitingLoop]] = {}
    for last, block in enumerate(blocks):
        for header in sorted(set(block.successors)):
            if header == EXIT_BLOCK or header > last:
                continue
            items = [item for number in _body(blocks, header, last) for item in blocks[number].body]
            if (loop := _waiting(header, items)) is not None:
                loops.setdefault(last, []).append(loop)
    return loops


def _body(blocks: list[BasicBlock], header: int, last: int) -> Iterator[int]:
    """Yield the blocks from which control gets to the last one without passing the header, and that."""
    inside, pending = {header}, [last]
    while pending:
        number = pending.pop()
        if number in inside:
            continue
        inside.add(number)
        pending += [other for other, block in enumerate(blocks) if number in block.successors]
    yield from inside


def _waiting(header: int, items: list[Instruction]) -> WaitingLoop | None:
    names = [item.opcode[0] for item in items]
    strong = any(item.opcode[0] == "ld" and _STRONG & set(item.opcode) for item in items)
    if not strong and not {"atom", "nanosleep", "fence", "membar"} & set(names):
        return None
    constant = {"param", "const", "local", "nc"}
    reads = [i for i in items if i.opcode[0] in _READS and not constant & set(i.opcode)]
    writes = [i for i in items if i.opcode[0] in _WRITES and not constant & set(i.opcode)]
    found = [name for item in reads for name in reads_and_writes(item)[1]]
    given = [name for item in (*reads, *writes) for name in reads_and_writes(item)[0]]
    if not found:
        return None
    near = all("shared" in item.opcode for item in reads)
    return WaitingLoop(header, tuple(dict.fromkeys(found)), tuple(dict.fromkeys(given)), near)
