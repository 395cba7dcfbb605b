# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Branch paths that wait at the barrier of their cluster."""

from dataclasses import dataclass

from gpuprof.executor.decode import RunnableBlock
from gpuprof.executor.divergence.branch_paths import BranchPath, as_one, in_batch, lanes_of, let_go
from gpuprof.executor.divergence.hangs import HeldLanes, Position, Told
from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Bools, first_true
from gpuprof.executor.memory.accesses import CLUSTER_PHASES, Access
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.cluster_steps import end_phases


@dataclass(eq=False)
class _Waiting:
    """A path at `barrier.cluster.wait`."""

    path: BranchPath
    line: int


class ClusterWaits:
    """Who waits at barriers of clusters, in one batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._waiting: list[_Waiting] = []

    @property
    def paths(self) -> list[BranchPath]:
        """The paths that wait."""
        return [w.path for w in self._waiting]

    def come(self, block: RunnableBlock, path: BranchPath) -> list[BranchPath]:
        """A path comes to a wait; return it if it can go on."""
        barrier = self.batch.cluster_barrier
        path.block = block.target
        if (early := path.mask.lanes & ~barrier.pending).any():
            text = "waits at the barrier of its cluster, but has not arrived there"
            self.batch.fault(FaultKind.BARRIER, text, block.line, first_true(early))
        self._waiting.append(_Waiting(path, block.line))
        lanes = in_batch(path.mask.lanes, self.batch)
        return self.release() if not (lanes & ~barrier.over).any() else []

    def release(self) -> list[BranchPath]:
        """Return the paths whose clusters have arrived."""
        if not self._waiting:
            return []
        end_phases(self.batch, self._waiting[0].line)  # threads may have ended since
        over = self.batch.cluster_barrier.over
        line = self._waiting[0].line
        going = let_go(self._waiting, self._waiting.copy(), over)
        if going:
            self._acquire(lanes_of(going, self.batch), line)
        return as_one(going)

    def _acquire(self, lanes: Bools, line: int) -> None:
        """Threads go on past the barrier of their cluster: what was done before it is settled for them."""
        batch, barrier = self.batch, self.batch.cluster_barrier
        live = in_batch(batch.live.lanes, batch)
        quiet = barrier.quiet(lanes, live, batch.events.accesses)
        for parity, phase in enumerate(CLUSTER_PHASES):
            part = lanes & barrier.parity(parity)
            if part.any():
                batch.events.synchronise(Access.ACQUIRE, part, phase, line)
        if quiet.any():
            batch.events.hear("settle", None if quiet.all() else quiet)
        barrier.wait(lanes)

    def held(self) -> list[HeldLanes]:
        """Return who waits, and of how many threads how many have arrived."""

        def tell(position: Position) -> Told:
            pending, live = (
                int(in_batch(lanes, self.batch)[position[0]].sum())
                for lanes in (self.batch.cluster_barrier.pending, self.batch.live.lanes)
            )
            return Told(f"the barrier of its cluster, where {pending} of {live} threads have arrived")

        return [HeldLanes(w.path.mask.lanes, (w.line, 0), tell) for w in self._waiting]

    def describe(self) -> str:
        """Say who waits at the barrier of a cluster, after what keeps others from arriving."""
        if not self._waiting:
            return ""
        w = self._waiting[0]
        thread, block = self.batch.names(first_true(in_batch(w.path.mask.lanes, self.batch)))
        return f"; thread {thread} of block {block} waits at the barrier of their cluster in line {w.line}"
