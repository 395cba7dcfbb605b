# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run a batch: which lanes execute which basic block next, and where diverged lanes meet again.

A *branch path* is lanes at one place. A branch on which its lanes disagree splits it in two, which run
one after the other until both reach the immediate post-dominator; there a *join* puts them together again.
All warps of the batch share these paths, and a warp's lanes split exactly where that warp diverges, so
each warp sees the order of instructions that a stack of its own would give it.

A path stops at a barrier of its block or cluster until all that it waits for have come. If nobody can go
on, warps that wait at a join for others stuck in a barrier go on alone: the hardware joins lanes of a warp,
never warps.

A path whose wait for an mbarrier failed is parked until that barrier's phase ends. Where nothing can run
and no phase can end, parked paths get a few more tries, since what they do between two tries may help.

A path that polls in vain rests until nothing else can run. A path that comes to a warp operation waits
for the lanes that its member mask names. Where these are held at a join with them, lanes of a warp part.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from operator import length_hint
from typing import NoReturn

import numpy as np
from msgspec import Struct

from gpuprof.executor.decode import Program, RunnableBlock
from gpuprof.executor.divergence.block_barriers import BlockBarriers, ClusterWaits
from gpuprof.executor.divergence.branch_paths import BranchPath, Join, Joins, Registers
from gpuprof.executor.divergence.hangs import Hang
from gpuprof.executor.divergence.polling import Polling
from gpuprof.executor.divergence.warp_meetings import WarpMeetings
from gpuprof.executor.divergence.warp_turns import WarpTurns
from gpuprof.executor.faults import FaultKind, Index, KernelFault, SharedByte
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.meetings import Arrival
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.mbarriers import Stall
from gpuprof.executor.program.flow import EXIT_BLOCK, End
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Step

#: How often threads may wait for mbarriers in vain, while nothing changes, before that is a deadlock.
_PATIENCE = 64


class _Parked(Struct, eq=False):
    """A path that waits for mbarriers."""

    path: BranchPath
    stall: Stall


class Help(Enum):
    """Who may change what paths poll for."""

    NOBODY = "nobody else: they poll until they find it, or for ever"
    OTHERS = "blocks of other batches"
    OWN_WARP = "lanes of their own warps that await them at a join, then blocks of other batches"


@dataclass
class Scheduler:
    """Runs all lanes of a batch to their end.

    Args:
        budget: Instructions that the batch may take before it counts as endless.
        order: Which of its warps go first, where others are let go on between any two steps; None for all
            together.

    Attributes:
        progress: How often paths ran and did more than poll in vain.
    """

    program: Program
    batch: Batch
    budget: int
    order: WarpTurns | None = None
    steps: int = 0
    lane_instructions: int = 0
    progress: int = 0
    _ready: list[BranchPath] = field(default_factory=list)
    _parked: list[_Parked] = field(default_factory=list)
    _started: bool = False
    _polling: Polling = field(init=False)
    _meetings: WarpMeetings = field(init=False)
    _joins: Joins = field(init=False)
    _barriers: BlockBarriers = field(init=False)
    _cluster_waits: ClusterWaits = field(init=False)
    #: How often parked paths were tried in vain, and the state of the mbarriers then.
    _tries: int = 0
    _tried_version: int = -1

    def __post_init__(self) -> None:
        self._polling = Polling(self.batch)
        self._meetings = WarpMeetings(self.batch)
        self._joins = Joins(self.batch)
        self._barriers = BlockBarriers(self.batch, self._joins)
        self._cluster_waits = ClusterWaits(self.batch)

    def run(self, help_from: Help = Help.NOBODY) -> bool:
        """Run to the end, or until only other batches can help.

        Tells whether this is the end; if not, call it again. `help_from` may change what paths poll for
        when nothing here can run.
        """
        steps = self.interruptible(help_from)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return bool(end.value)

    def interruptible(self, help_from: Help) -> Generator[None, None, bool]:
        """As `run`, and let others go on wherever it pauses."""
        if not self._started:
            self._ready, self._started = [BranchPath(0, self.batch.mask)], True
        self._polling.state_changed = True
        while self._ready or self._stuck():
            if self._ready:
                ready = self._ready
                yield from self._advance(ready.pop() if self.order is None else self.order.take(ready))
            elif not self._go_on():
                if self._polling.resting and help_from is Help.OTHERS:
                    return False
                if self._go(self._joins.lanes(self._stuck())):
                    help_from = Help.NOBODY if help_from is Help.NOBODY else Help.OTHERS
                elif self._polling.resting and help_from is Help.OWN_WARP:
                    return False
                elif not self._try_parked():
                    with self._hanging():
                        if not self._go(self._polling.to_the_end(self.program.blocks)):
                            self._deadlock()
        self.batch.events.hear("settle")
        if not self.batch.means.phased:
            return True
        batch = self.batch
        for groups, what in ((batch.bulk_stores.reads, "bulk copy"), (batch.products, "wgmma")):
            if unread := groups.unfinished:
                text = f"ends without waiting for its {what}, which still reads shared memory"
                batch.fault(FaultKind.ASYNC_COPY, text, unread.line, first_true(unread.waiting))
        batch.bulk_stores.end()
        return True

    def _go_on(self) -> bool:
        """Find lanes that can run; False if there are none but by parting those of a warp for good."""
        return (
            self._go(self._barriers.release())
            or self._go(self._cluster_waits.release())
            or self._go(self._meetings.meet(self.program.blocks))
            or self._resume_parked()
            or self._go(self._joins.warps(self._stuck()))
            or self._go(self._polling.again())
            or self._go(self._awaited())
        )

    def _advance(self, path: BranchPath) -> Generator[None, None, None]:
        """Run one path until it ends, splits, or stops at a barrier."""
        batch, blocks, tally = self.batch, self.program.blocks, self.batch.tally
        batch.mask = mask = path.mask
        batch.alone = mask is batch.live or mask.whole or not np.count_nonzero(batch.live.lanes & ~mask.lanes)
        changed, self._polling.state_changed = self._polling.state_changed, True
        # Whether it has done nothing but poll in vain so far, in the loop where it begins.
        waiting, path.waiting = path.waiting or self.program.listing.loops.get(path.block), None
        self.progress += 1
        while path.block != path.rejoin:
            if path.block == EXIT_BLOCK:
                break
            block = blocks[path.block]
            if block.left_to and self._joins.left(path):
                break
            if waiting is not None and path.block not in waiting.body:
                waiting = None
            if path.registers is None:
                tally.ran(path.block, path.mask)
                self.lane_instructions += block.length * path.mask.total_threads
                self.steps += block.length
                batch.clock.executed = self.steps
                if self.steps > self.budget:
                    text = f"still runs after {self.budget:,} instructions: the loop may not end"
                    with self._hanging(path):
                        batch.fault(FaultKind.ENDLESS, text, block.line, path.mask.first())
                if batch.control_slice is not None:
                    batch.control_slice.spend(len(block.sliced) * path.mask.total_threads)
                steps = iter(self._steps(block))
            else:
                steps = iter(self._resumed(block, path))
            try:
                if self.order is not None:
                    for step in steps:
                        step(batch)
                        yield
                        if self._stops(block, path, length_hint(steps)):
                            return
                else:
                    for step in steps:
                        step(batch)
            except Arrival as arrival:
                batch.stall = None  # those whose wait failed will try again
                number = len(self._steps(block)) - length_hint(steps) - 1
                self._ready += self._meetings.come(path, number, arrival)
                return
            if block.end in (End.BRANCH, End.SWITCH):
                before = len(self._ready)
                if waiting is not None and waiting.body.issuperset(block.successors):
                    path.waiting = waiting  # its sides go on with the iteration
                follow = self._branch if block.end is End.BRANCH else self._switch
                if not follow(block, path):
                    if path.waiting:
                        self._only_polled(changed)
                    if batch.stall is not None:
                        self._park(batch.stall, self._ready[before:])
                    if block.back_edges:
                        split = self._ready[before:]
                        self._ready[before:] = [s for s in split if not self._polling.rest(s, block)]
                    return
                path.waiting = None
            elif block.end in (End.BARRIER, End.CLUSTER_WAIT):
                waits = self._barriers if block.end is End.BARRIER else self._cluster_waits
                if (going := waits.come(block, path)) != [path]:
                    self._ready += going
                    return
            elif block.end is End.EXIT:
                path.block = EXIT_BLOCK
            elif block.end is End.TRAP:
                batch.fault(FaultKind.TRAP, batch.trap, block.line, path.mask.first())
            else:
                path.block = block.target
            if batch.stall is not None:
                self._ready.append(path)
                self._park(batch.stall, [path])
                return
            if block.back_edges and path.block != path.rejoin:
                if self._polling.rest(path, block):
                    if waiting is not None:
                        self._only_polled(changed)
                    return
                if path.block in block.back_edges:
                    waiting = None
        if path.block == EXIT_BLOCK:
            self._exit(path.mask)
        elif waiting is not None and path.block in waiting.body:
            self._only_polled(changed)
        self._arrived(path.above)

    def _only_polled(self, changed: bool) -> None:
        """Forget that a path ran: so far it has done nothing but poll."""
        self._polling.state_changed = changed
        self.progress -= 1

    def _stops(self, block: RunnableBlock, path: BranchPath, left: int) -> bool:
        """Let other warps go on in the middle of a basic block, if their order is such."""
        assert self.order is not None
        done = len(block.steps) - left
        if done not in block.meets or self.batch.stall is not None or not self.order.stops(path.mask):
            return False
        path.step, path.registers = done, Registers.of(self.batch)
        self._ready.append(path)
        return True

    def _exit(self, mask: Mask) -> None:
        batch, live, layout = self.batch, self.batch.live, self.batch.layout
        batch.live = live.of(live.lanes & ~mask.lanes)
        if layout.several:
            before, after = (
                np.asarray(layout.by_block(each.lanes, batch.blocks).any(axis=(1, 2)))
                for each in (live, batch.live)
            )
            if (before & ~after).any():
                batch.events.synchronise(Access.ENDED, layout.in_batch(~after), (0, 0), 0)

    def _arrived(self, join: Join | None) -> None:
        """One path of `join` is done."""
        if join is not None:
            join.pending -= 1
            self._resume(join)

    def _resume(self, join: Join) -> None:
        """When the last path of `join` is done, let the lanes still alive go on together."""
        if join.pending:
            return
        lanes = join.lanes & self.batch.live.lanes
        if lanes.any():
            mask = self.batch.live.of(lanes)
            path = BranchPath(join.block, mask, join.rejoin, join.above, 0, None, join.memory, join.waiting)
            self._ready.append(path)
        else:
            self._arrived(join.above)

    def _branch(self, block: RunnableBlock, path: BranchPath) -> bool:
        """Follow a branch; False when the path split in two."""
        mask = path.mask
        holds = self.batch.registers[block.predicate]
        if holds.size == 1 and not mask.empty:
            path.block = block.otherwise if holds.item() == block.negated else block.target
            return True
        if block.negated:
            holds = ~holds
        taken = holds if mask.whole else holds & mask.lanes
        if not np.count_nonzero(taken):
            path.block = block.otherwise
            return True
        passed = ~holds if mask.whole else ~holds & mask.lanes
        if not np.count_nonzero(passed):
            path.block = block.target
            return True
        one, other = mask.of(taken), mask.of(passed)
        diverged = one.active_warps & other.active_warps
        self.batch.tally.add(block.site, "divergent_warps", mask.per_block(diverged))
        self._split(block, path, [(block.target, one), (block.otherwise, other)])
        return False

    def _switch(self, block: RunnableBlock, path: BranchPath) -> bool:
        """Follow a jump by the value of a register; False when the path split."""
        mask, goals = path.mask, dict[int, Bools]()
        for value, part in mask.divided(self.batch.registers[block.value]):
            goal = block.cases.get(value, block.target)
            goals[goal] = goals.get(goal, False) | part.lanes
        if len(goals) == 1:
            (path.block,) = goals
            return True
        sides = [(goal, mask.of(taken)) for goal, taken in goals.items()]
        ways = np.sum([side.active_warps for _, side in sides], axis=0)
        self.batch.tally.add(block.site, "divergent_warps", mask.per_block(ways > 1))
        self.batch.tally.least |= block.calls and bool((ways > 1).any())
        self._split(block, path, sides)
        return False

    def _split(self, block: RunnableBlock, path: BranchPath, sides: list[tuple[int, Mask]]) -> None:
        join, rejoin, memory = path.above, path.rejoin, path.memory
        for place in self._joins.ahead(block, path):
            join, rejoin = Join(place, path.mask.lanes, rejoin, join, 1, memory, path.waiting), place
        for target, mask in sides:
            if target == EXIT_BLOCK:
                self._exit(mask)
        going = [(target, mask) for target, mask in sides if target not in (rejoin, EXIT_BLOCK)]
        self._ready += [
            BranchPath(target, mask, rejoin, join, 0, None, memory and memory.copy(), path.waiting)
            for target, mask in going
        ]
        if join is not None:
            join.pending += len(going) - 1  # the path is replaced by its sides
            self._resume(join)

    def _park(self, stall: Stall, paths: list[BranchPath]) -> None:
        """Take those paths from the ready ones whose lanes cannot get through their wait yet."""
        self.batch.stall = None
        for path in paths:
            if (path.mask.lanes & stall.lanes).any():
                self._ready.remove(path)
                self._parked.append(_Parked(path, stall))

    def _resume_parked(self) -> bool:
        """Let copies arrive that parked paths wait for, and let those go on whose phase ended."""
        if not self._parked:
            return False
        for stall in {id(p.stall): p.stall for p in self._parked}.values():
            self.batch.bulk.deliver(stall.columns, stall.lanes)
        phase = self.batch.mbarriers.phase
        moved = [p for p in self._parked if (phase[:, p.stall.watched] != p.stall.phases).any()]
        self._unpark(moved)
        return bool(moved)

    def _try_parked(self) -> bool:
        """Let all parked paths try again, unless they did so often and nothing has changed since."""
        if not self._parked:
            return False
        version = self.batch.mbarriers.version
        self._tries = self._tries + 1 if version == self._tried_version else 0
        self._tried_version = version
        if self._tries >= _PATIENCE:
            return False
        self._unpark(list(self._parked))
        return True

    def _resumed(self, block: RunnableBlock, path: BranchPath) -> list[Step]:
        """Return the steps of a block that a path has yet to run, with its registers as it left them."""
        assert path.registers is not None
        path.registers.restore(self.batch, path.mask.lanes)
        first, path.step, path.registers = path.step, 0, None
        return self._steps(block)[first:]

    def _steps(self, block: RunnableBlock) -> list[Step]:
        return block.steps if self.batch.control_slice is None else block.sliced

    def _unpark(self, chosen: list[_Parked]) -> None:
        for parked in chosen:
            self._parked.remove(parked)
            self._ready.append(parked.path)

    def _stuck(self) -> list[BranchPath]:
        return [
            *(w.path for w in self._barriers.waiting),
            *(w.path for w in self._cluster_waits.waiting),
            *(p.path for p in self._parked),
            *(resting.path for resting in self._polling.resting),
            *(g.path for g in self._meetings.waiting),
        ]

    def _awaited(self) -> list[BranchPath]:
        """Return lanes that go on without those of their warp that only they can help, if there are any."""
        going: list[BranchPath] = []
        if self._meetings.waiting:
            going = self._joins.lanes(self._stuck(), self._meetings.awaited())
        if not going and (near := self._polling.near()):
            going = self._joins.lanes(self._stuck(), within=near)
        return going

    def _go(self, paths: list[BranchPath]) -> bool:
        """Let paths run, if there are any."""
        self._ready += paths
        return bool(paths)

    @contextmanager
    def _hanging(self, running: BranchPath | None = None) -> Iterator[None]:
        """Add to a fault that is a hang what every warp waits for, or runs."""
        try:
            yield
        except KernelFault as fault:
            if fault.kind not in (FaultKind.BARRIER, FaultKind.MBARRIER, FaultKind.ENDLESS):
                raise
            hang, paths = Hang(self.program, self.batch), [running] if running else []
            turning = [*paths, *(resting.path for resting in self._polling.resting), *self._ready]
            held = [
                *self._barriers.held(),
                *self._cluster_waits.held(),
                *self._meetings.held(),
                *(hang.stalled(p.stall, p.path.mask.lanes) for p in self._parked),
                *(hang.turning(path.mask.lanes, path.block) for path in turning),
            ]
            block = next(n for n in range(self.batch.blocks) if fault.block in self._names(n))
            raise fault.hanging(hang.waits(held, block)) from fault

    def _names(self, block: int) -> list[Index]:
        layout = self.batch.layout
        return [self.batch.names((block, rank * layout.warps, 0))[1] for rank in range(layout.blocks)]

    def _deadlock(self) -> None:
        if self._parked:
            self._endless_wait(self._parked[0].stall)
        if self._meetings.waiting:
            others = [(w.path, f"at barrier {w.barrier}", w.line) for w in self._barriers.waiting]
            self._meetings.never(others)
        self._barriers.never(self._cluster_waits.describe())

    def _endless_wait(self, stall: Stall) -> NoReturn:
        """Report threads that wait for a phase of an mbarrier which nothing can end."""
        batch, barriers = self.batch, self.batch.mbarriers
        batch.events.hear("settle")  # what went wrong before comes first
        position = first_true(stall.lanes)
        column = int(np.broadcast_to(stall.columns, stall.lanes.shape)[position])
        where, offset = batch.layout.byte(barriers.offsets[column])
        text = f"waits for ever for the mbarrier at {where}"
        if missing := barriers.describe(position[0], column):
            text += f": {missing}"
        text += self._cluster_waits.describe()
        batch.fault(FaultKind.MBARRIER, text, stall.at[0], position, SharedByte(offset))
