# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Branch paths that turn in a loop until others change what it reads: they rest so that the others get there.

The hardware lets every lane go on, whoever else is waiting. Here one path runs at a time, and one that
polls must stop. A turn was in vain if it read something, and what it read and wrote was as in the turn
before.
"""

from collections.abc import Sequence

from msgspec import Struct

from gpuprof.executor.decode import BackEdge, RunnableBlock
from gpuprof.executor.divergence.branch_paths import BranchPath, Memory
from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes, differ
from gpuprof.executor.steps.batch import Batch

#: Turns in vain after which a loop is left to others even if it counts them, or watches a clock.
_PATIENCE = 64


class Resting(Struct, eq=False):
    """A path that polls in vain.

    It stands at the header of its loop. It `repeats` if nothing at all differs between two iterations: it
    does not even count them. `turns` are those in vain since others did something.
    """

    path: BranchPath
    near: bool
    repeats: bool
    turns: int


class Polling:
    """The paths of one batch that poll in vain.

    `state_changed` tells whether anything else has happened since they tried last.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.resting: list[Resting] = []
        self.state_changed = True

    def rest(self, path: BranchPath, block: RunnableBlock) -> bool:
        """A path leaves a block: tell whether it rests now, because it ended a turn in vain there."""
        edge = block.back_edges.get(path.block)
        found = _turned_in_vain(self.batch, path, edge) if edge is not None else None
        if found is not None:
            self.resting.append(found)
        return found is not None

    def again(self) -> list[BranchPath]:
        """Return those that try again: all if others did something meanwhile, else those that count turns."""
        hopeless = [one for one in self.resting if one.repeats or one.turns >= _PATIENCE]
        left = [] if self.state_changed else hopeless
        chosen = [one.path for one in self.resting if one not in left]
        for path in chosen if self.state_changed else ():
            if path.memory is not None:  # what it finds may differ from what it found last
                path.memory.registers, path.memory.turns = [], 0
        self.state_changed, self.resting = False, left
        return chosen

    def to_the_end(self, blocks: Sequence[RunnableBlock]) -> list[BranchPath]:
        """Return all, to turn until the budget is spent, unless no turn differs from the one before."""
        if self.resting and all(resting.repeats for resting in self.resting):
            path = self.resting[0].path
            text = "loops forever: nothing that can still run changes what it polls there"
            self.batch.fault(FaultKind.ENDLESS, text, blocks[path.block].line, path.mask.first())
        chosen, self.resting = self.resting, []
        return [resting.path for resting in chosen]

    def near(self) -> list[BranchPath]:
        """Return those that only threads of their own block can help."""
        return [resting.path for resting in self.resting if resting.near]


def _turned_in_vain(batch: Batch, path: BranchPath, edge: BackEdge) -> Resting | None:
    """Judge the turn of a loop that a path has just ended; None if something was new in it."""
    registers = batch.registers
    if path.memory is None:
        path.memory = Memory()
    memory = path.memory
    now = [registers[slot] for slot in (*edge.found, *edge.given)]
    before = memory.watched.get(edge.header)
    memory.watched[edge.header] = now
    if before is None:
        return None
    read = any(a is not b for a, b in zip(now[: len(edge.found)], before, strict=False))
    if not read or not _same(before, now, path.mask):
        memory.turns = 0
        return None
    memory.turns += 1
    repeats = bool(memory.registers) and _same(memory.registers, registers, path.mask)
    memory.registers = list(registers)
    return Resting(path, edge.near, repeats, memory.turns)


def _same(before: list[Lanes], now: list[Lanes], mask: Mask) -> bool:
    return not any(a is not b and (differ(a, b) & mask.lanes).any() for a, b in zip(before, now, strict=True))
