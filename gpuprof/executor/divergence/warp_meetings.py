# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Branch paths that wait at warp operations for lanes of their warp that are elsewhere.

A path's lanes may be of many warps: it is divided into those that can go on and those that wait. When
nothing else can run, the waiting ones are gathered by operation and member mask; lanes whose group is all
there exchange their values, each by the instruction that it came to. Lanes at one place go on as one path.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

import numpy as np
from msgspec import Struct

from gpuprof.executor.decode import RunnableBlock
from gpuprof.executor.divergence.branch_paths import BranchPath, Registers, as_one, lanes_of, let_go
from gpuprof.executor.divergence.hangs import HeldLanes, Position, Told, ranges
from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import WARP, Bools, first_true
from gpuprof.executor.lanes.meetings import Arrival, LaneBits, Meeting, groups, in_bits, missing
from gpuprof.executor.steps.batch import Batch


class Gathered(Struct, eq=False):
    """A path that stopped at a warp operation, which all of its lanes execute."""

    path: BranchPath
    arrival: Arrival


class WarpMeetings:
    """Who waits at warp operations in one batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.waiting: list[Gathered] = []

    def come(self, path: BranchPath, step: int, arrival: Arrival) -> list[BranchPath]:
        """A path has come to a warp operation, number `step` of its block, where some lanes must wait.

        The parts that go on are warps of which nobody waits, and lanes that a guard keeps from executing it.
        """
        busy = np.asarray(arrival.incomplete.any(axis=2, keepdims=True))
        lanes, executing = path.mask.lanes, arrival.mask.lanes
        registers = Registers.of(self.batch)
        going = []
        for part, first in ((lanes & ~busy, step), (lanes & busy & ~executing, step + 1)):
            if part.any():
                mask = path.mask.of(part)
                going.append(replace(path, mask=mask, step=first, registers=registers))
        stays = path.mask.of(np.asarray(executing & busy))
        self.waiting.append(Gathered(replace(path, mask=stays, step=step, registers=registers), arrival))
        if path.above is not None:
            path.above.pending += len(going)
        return going

    def meet(self, blocks: Sequence[RunnableBlock]) -> list[BranchPath]:
        """Let lanes exchange values whose groups are all there; return the paths that go on."""
        for operation in dict.fromkeys(g.arrival.operation for g in self.waiting):
            gathered = [g for g in self.waiting if g.arrival.operation == operation]
            lanes, members, group = self._groups(gathered)
            live = self.batch.live.lanes
            complete = lanes & (missing(group, members, live) == 0)
            if complete.any():
                values = [
                    self._together(gathered, [g.arrival.values[i] for g in gathered])
                    for i in range(len(gathered[0].arrival.values))
                ]
                meeting = Meeting(complete, group, values)
                return [self._exchange(part, meeting, blocks) for part in self._parts(gathered, complete)]
        return []

    def _groups(self, gathered: list[Gathered]) -> tuple[Bools, LaneBits, LaneBits]:
        """Return the lanes that came, their member masks, and for each the lanes that gave the same."""
        lanes = lanes_of((g.path for g in gathered), self.batch)
        members = self._together(gathered, [g.arrival.members for g in gathered])
        return lanes, members, self.batch.spread(groups(lanes, members))

    def _together(self, gathered: list[Gathered], values: list[np.ndarray]) -> np.ndarray:
        result = np.zeros(self.batch.shape, dtype=values[0].dtype)
        for g, value in zip(gathered, values, strict=True):
            np.copyto(result, value, where=self.batch.spread(g.path.mask.lanes))
        return result

    def _parts(self, gathered: list[Gathered], complete: Bools) -> list[BranchPath]:
        """Take the complete lanes from those that wait, as one path for each place."""
        going = let_go(self.waiting, gathered, complete)
        for part in going:
            assert part.registers is not None
            part.registers.restore(self.batch, part.mask.lanes)
        registers = Registers.of(self.batch)
        return [replace(part, registers=registers) for part in as_one(going)]

    def _exchange(self, path: BranchPath, meeting: Meeting, blocks: Sequence[RunnableBlock]) -> BranchPath:
        batch = self.batch
        assert path.registers is not None
        path.registers.restore(batch, path.mask.lanes)
        batch.mask, batch.alone, batch.meeting = path.mask, False, meeting
        blocks[path.block].steps[path.step](batch)
        batch.meeting = None
        path.step += 1
        path.registers = Registers.of(batch)
        return path

    def awaited(self) -> Bools:
        """Return the lanes that others wait for: shape (blocks, warps, WARP)."""
        result = np.zeros(self.batch.shape, dtype=np.bool_)
        for operation in dict.fromkeys(g.arrival.operation for g in self.waiting):
            gathered = [g for g in self.waiting if g.arrival.operation == operation]
            lanes, members, group = self._groups(gathered)
            wanted = np.where(lanes, missing(group, members, self.batch.live.lanes), np.uint32(0))
            result |= in_bits(np.bitwise_or.reduce(wanted, axis=2, keepdims=True))
        return result

    def held(self) -> list[HeldLanes]:
        """Return who waits, and for which lanes of its warp."""
        return [
            HeldLanes(g.path.mask.lanes, (g.arrival.line, 0), partial(self._tell, g)) for g in self.waiting
        ]

    def _tell(self, g: Gathered, position: Position) -> Told:
        lanes = self._absent(g, position)[1]
        return Told(f"`{g.arrival.operation}` with lane{'s' * (len(lanes) > 1)} {ranges(lanes)} of its warp")

    def _absent(self, g: Gathered, position: Position) -> tuple[int, list[int]]:
        """Return the member mask of a lane, and which of those it names have not come."""
        gathered = [other for other in self.waiting if other.arrival.operation == g.arrival.operation]
        _, members, group = self._groups(gathered)
        wanted = int(missing(group, members, self.batch.live.lanes)[position])
        return int(members[position]), [lane for lane in range(WARP) if wanted >> lane & 1]

    def never(self, others: Sequence[tuple[BranchPath, str, int]]) -> NoReturn:
        """Report the first lanes that wait for others which do not come; `others` wait elsewhere."""
        g = self.waiting[0]
        position = first_true(self.batch.spread(g.path.mask.lanes))
        members, absent = self._absent(g, position)
        text = f"waits at `{g.arrival.operation}` with member mask {members:#010x} for"
        text += f" lane{'s' * (len(absent) > 1)} {', '.join(map(str, absent))} of its warp"
        here = [(g.path, f"at `{g.arrival.operation}`", g.arrival.line) for g in self.waiting]
        for path, what, line in (*here, *others):
            if self.batch.spread(path.mask.lanes)[(*position[:2], absent[0])]:
                text += f", which wait{'s' * (len(absent) == 1)} {what} in line {line}"
                break
        self.batch.fault(FaultKind.BARRIER, text, g.arrival.line, position)
