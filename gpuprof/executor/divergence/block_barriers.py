# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Branch paths that wait at the barriers of their block (`bar`, `barrier`), and when they go on.

A path stops there unless all living lanes of its blocks are there with it. When nothing else can run, the
barriers that are complete let their paths go.
"""

from dataclasses import replace
from functools import partial
from typing import NoReturn

import numpy as np
from msgspec import Struct, field

from gpuprof.executor.decode import RunnableBlock
from gpuprof.executor.divergence.branch_paths import BranchPath, Joins, as_one, lanes_of, let_go
from gpuprof.executor.divergence.hangs import HeldLanes, Position, Told
from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import WARP, Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import CLUSTER_PHASES, Access
from gpuprof.executor.memory.mbarriers import by_parity
from gpuprof.executor.steps.barrier_steps import Agreement, check_operands
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.cluster_steps import end_phases

#: Barriers of a block, at most.
_NUMBERS = 16


class Waiting(Struct, eq=False):
    """A path at the barrier that ends a block: its number, how many threads it takes, and the path's votes.

    None stands for all threads of a thread block.
    """

    path: BranchPath
    block: RunnableBlock
    barrier: int = 0
    expected: int | None = None
    votes: Bools | None = None

    @property
    def line(self) -> int:
        return self.block.line


class BlockBarriers(Struct):
    """Who waits at barriers of blocks, in one batch.

    Lanes that have left one of its joins need not come with the others of their warp.
    """

    batch: Batch
    joins: Joins
    waiting: list[Waiting] = field(default_factory=list)
    #: Lanes that arrived at a barrier without waiting there (`bar.arrive`), by barrier.
    _arrivals: dict[int, Bools] = field(default_factory=dict)
    _agreement: Agreement = field(default_factory=Agreement)

    def come(self, block: RunnableBlock, path: BranchPath) -> list[BranchPath]:
        """A path comes to a barrier; return what of it goes on."""
        path.block = block.target
        operands = block.barrier(self.batch)
        if all(operand.size == 1 for operand in operands):
            values = (int(operand.flat[0]) for operand in operands)
            return [path] if self._meet(block, path, *values) else []
        # Warps may be at different barriers, as their registers say.
        groups = _by_values(operands, path.mask)
        if len(groups) == 1:
            return [path] if self._meet(block, path, *groups[0][0]) else []
        if path.above is not None:
            path.above.pending += len(groups) - 1
        parts = [(values, replace(path, mask=mask)) for values, mask in groups]
        return [part for values, part in parts if self._meet(block, part, *values)]

    def _meet(
        self, block: RunnableBlock, path: BranchPath, identity: int = 0, expected: int | None = None
    ) -> bool:
        """Wait at one barrier, or arrive there; True when the path can go on."""
        batch = self.batch
        check_operands(batch, block.line, path.mask, identity, expected)
        votes = block.reduction.votes(batch, path.mask) if block.reduction else None
        everybody = batch.alone and path.mask is batch.mask
        if expected is None and everybody and not self.waiting:
            self._settle(batch.every_block, block.line)
            if block.reduction is not None and votes is not None:
                block.reduction.give(batch, path.mask.lanes, votes, path.mask.lanes)
            return True
        self._agreement.come(batch, block.line, path.mask, identity, expected)
        if block.aligned:
            missing = path.mask.active_warps & ~path.mask.lanes & ~self.joins.loose
            text = "is not at the barrier where other threads of its warp wait: it is in divergent code"
            batch.refuse(FaultKind.BARRIER, batch.live, missing, block.line, text)
        if expected is not None and batch.means.partial:
            self._record(Access.RELEASE, path.mask.lanes, identity, block.line)
        if block.arrives_only:
            before = self._early(identity)
            self._arrivals[identity] = before | path.mask.lanes
            return True
        # Nothing tells whether that phase is over.
        text = f"waits at barrier {identity}, where it has arrived before: it may be counted twice there"
        batch.refuse(FaultKind.BARRIER, path.mask, self._early(identity), block.line, text)
        self.waiting.append(Waiting(path, block, identity, expected, votes))
        return False

    def _early(self, identity: int) -> Bools:
        return self._arrivals.get(identity, np.zeros(self.batch.shape, dtype=np.bool_))

    def release(self) -> list[BranchPath]:
        """Return the paths of blocks whose barrier is complete, if there is one."""
        batch = self.batch
        absent = self._by_block(~batch.live.lanes)
        for identity in {w.barrier for w in self.waiting}:
            group = [w for w in self.waiting if w.barrier == identity]
            early = self._early(identity)
            here = self._by_block(early | lanes_of((w.path for w in group), batch))
            expected = next((w.expected for w in group if w.expected is not None), None)
            if expected is None:
                complete = np.asarray((here | absent).all(axis=(1, 2)) & here.any(axis=(1, 2)))
            else:
                # The hardware counts whole warps; lanes that have ended are not waited for.
                warps = (here | absent).all(axis=2) & here.any(axis=2)
                complete = np.asarray(warps.sum(axis=1) * WARP >= expected)
            if complete.any():
                within = batch.layout.in_batch(complete)
                self._require_one_place(group, within)
                self._order(identity, complete, group, early)
                self._agreement.complete(identity, complete)
                self._reduce(group, within)
                if identity in self._arrivals:
                    self._arrivals[identity] = self._arrivals[identity] & ~within
                return as_one(let_go(self.waiting, group, within))
        return []

    def _by_block(self, lanes: Bools) -> Bools:
        """Return lanes of the batch by their blocks: shape (blocks, warps of one, 32)."""
        return self.batch.layout.by_block(lanes, self.batch.blocks)

    def _reduce(self, group: list[Waiting], within: Bools) -> None:
        """Give those that voted at a barrier the result, in the blocks whose warps are true in `within`."""
        voting = [(w.path.mask.lanes, w.block.reduction, w.votes) for w in group if w.votes is not None]
        yes, voters = np.zeros((2, *self.batch.shape), dtype=np.bool_)
        for lanes, _, votes in voting:
            yes |= votes
            voters |= lanes
        for lanes, reduction, _ in voting:
            assert reduction is not None
            reduction.give(self.batch, lanes & within, yes, voters)

    def _order(self, identity: int, complete: Bools, group: list[Waiting], early: Bools) -> None:
        """Tell the searches for races that a barrier is over in the blocks that are true in `complete`."""
        batch = self.batch
        waited = lanes_of((w.path for w in group), batch)
        # Who arrived without waiting has gone on, perhaps to its end.
        there = self._by_block(waited | ~batch.live.lanes).all(axis=(1, 2))
        everybody = complete & there & ~self._by_block(early).any(axis=(1, 2))
        if not batch.means.partial:
            everybody = complete
        some = complete & ~everybody
        if some.any():
            lanes = waited & batch.layout.in_batch(some)
            self._record(Access.ACQUIRE, lanes, identity, group[0].line)
        if everybody.any():
            self._settle(everybody, group[0].line)

    def _settle(self, blocks: Bools, line: int) -> None:
        """All threads of these blocks have met: what they did is settled for their block."""
        lanes = self.batch.layout.in_batch(blocks)
        self.batch.events.synchronise(Access.MEET, lanes, _phase_of(0, 0), line)
        if self._arrivals:
            self._end_phases_that_nobody_waits_for(blocks)

    def _end_phases_that_nobody_waits_for(self, blocks: Bools) -> None:
        """All threads of these blocks know of each other's arrivals: a barrier that got its count is over."""
        for identity, arrived in self._arrivals.items():
            if all(w.barrier != identity for w in self.waiting):
                warps = self._by_block(arrived).any(axis=2).sum(axis=1)
                over = blocks & (warps * WARP >= self._agreement.counts[identity])
                self._arrivals[identity] = arrived & ~self.batch.layout.in_batch(over)

    def _record(self, access: Access, lanes: Bools, identity: int, line: int) -> None:
        """Tell the race detector of threads at a barrier of some of a block's warps."""
        batch = self.batch
        for rank in range(batch.layout.blocks):
            part = batch.spread(lanes) & (batch.layout.rank_of_warp == rank)
            if part.any():
                batch.events.synchronise(access, part, _phase_of(identity, rank), line)

    def _require_one_place(self, group: list[Waiting], within: Bools) -> None:
        """Refuse lanes of a warp that came one by one to different barriers, where they must be together."""
        if not self.joins.loose.any():
            return
        place = np.full(self.batch.shape, -1, dtype=np.int64)
        for w in group:
            chosen = self.batch.spread(w.path.mask.lanes & within & self.joins.loose)
            met = place.max(axis=2, keepdims=True)
            if w.block.aligned and (apart := chosen & (met >= 0) & (met != w.path.block)).any():
                text = "is at another barrier than other threads of its warp: it is in divergent code"
                self.batch.fault(FaultKind.BARRIER, text, w.line, first_true(apart))
            place[chosen] = w.path.block

    def held(self) -> list[HeldLanes]:
        """Return who waits, and of how many threads how many have come."""
        return [
            HeldLanes(w.path.mask.lanes, (w.line, w.block.ptx_line), partial(self._tell, w))
            for w in self.waiting
        ]

    def _tell(self, w: Waiting, position: Position) -> Told:
        batch, layout = self.batch, self.batch.layout
        here = self._early(w.barrier) | lanes_of(
            (o.path for o in self.waiting if o.barrier == w.barrier), batch
        )
        block = position[0] * layout.blocks + position[1] // layout.warps
        came, live = (int(self._by_block(lanes)[block].sum()) for lanes in (here, batch.live.lanes))
        name = f"barrier {w.barrier}" if w.barrier or w.expected is not None else "`__syncthreads`"
        return Told(f"{name}, where {came} of {live if w.expected is None else w.expected} threads have come")

    def never(self, also: str) -> NoReturn:
        """Report the first thread that does not come to a barrier where others of its block wait."""
        batch, first = self.batch, self.waiting[0]
        arrived = lanes_of((w.path for w in self.waiting if w.barrier == first.barrier), batch)
        position = first.path.mask.first()
        missing = batch.spread(batch.live.lanes) & ~arrived
        missing[: position[0]] = False
        if batch.layout.several:
            missing[position[0]] &= batch.layout.rank_of_warp[0] >= position[1] // batch.layout.warps
        batch.fault(
            FaultKind.BARRIER,
            f"never reaches the barrier that the rest of its block waits at{also}",
            first.line,
            first_true(missing) if missing.any() else position,
        )


def _phase_of(identity: int, rank: int) -> tuple[int, int]:
    """Return what the race detector knows a block's barrier by; those of mbarriers are not negative."""
    return -1 - identity - _NUMBERS * rank, 0


def _by_values(operands: list[Lanes], mask: Mask) -> list[tuple[tuple[int, ...], Mask]]:
    """Divide the lanes in `mask` by what their operands say."""
    shape = np.broadcast_shapes(mask.lanes.shape, *(operand.shape for operand in operands))
    lanes = np.broadcast_to(mask.lanes, shape)
    held = np.stack([np.broadcast_to(operand, shape) for operand in operands], axis=-1)
    different = np.unique(held[lanes], axis=0)
    return [(tuple(values.tolist()), mask.of(lanes & (held == values).all(axis=-1))) for values in different]


class ClusterWaits:
    """Who waits at barriers of clusters, in one batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.waiting: list[Waiting] = []

    def come(self, block: RunnableBlock, path: BranchPath) -> list[BranchPath]:
        """A path comes to a wait; return it if it can go on."""
        barrier = self.batch.cluster_barrier
        path.block = block.target
        text = "waits at the barrier of its cluster, but has not arrived there"
        self.batch.refuse(FaultKind.BARRIER, path.mask, ~barrier.pending, block.line, text)
        self.waiting.append(Waiting(path, block))
        lanes = self.batch.spread(path.mask.lanes)
        return self.release() if not (lanes & ~barrier.over).any() else []

    def release(self) -> list[BranchPath]:
        """Return the paths whose clusters have arrived."""
        if not self.waiting:
            return []
        end_phases(self.batch, self.waiting[0].line)  # threads may have ended since
        over = self.batch.cluster_barrier.over
        line = self.waiting[0].line
        going = let_go(self.waiting, self.waiting.copy(), over)
        if going:
            self._acquire(lanes_of(going, self.batch), line)
        return as_one(going)

    def _acquire(self, lanes: Bools, line: int) -> None:
        """Threads go on past the barrier of their cluster: what was done before it is settled for them."""
        batch, barrier = self.batch, self.batch.cluster_barrier
        for parity, part in by_parity(lanes, barrier.due):
            batch.events.synchronise(Access.ACQUIRE, part, CLUSTER_PHASES[parity], line)
        barrier.wait(lanes)

    def held(self) -> list[HeldLanes]:
        """Return who waits, and of how many threads how many have arrived."""

        def tell(position: Position) -> Told:
            pending, live = (
                int(self.batch.spread(lanes)[position[0]].sum())
                for lanes in (self.batch.cluster_barrier.pending, self.batch.live.lanes)
            )
            return Told(f"the barrier of its cluster, where {pending} of {live} threads have arrived")

        return [HeldLanes(w.path.mask.lanes, (w.line, 0), tell) for w in self.waiting]

    def describe(self) -> str:
        """Say who waits at the barrier of a cluster, after what keeps others from arriving."""
        if not self.waiting:
            return ""
        w = self.waiting[0]
        thread, block = self.batch.names(first_true(self.batch.spread(w.path.mask.lanes)))
        return f"; thread {thread} of block {block} waits at the barrier of their cluster in line {w.line}"
