# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which accesses to global memory happen before which: the causality order of PTX, as far as it is followed.

What threads of one block did before a barrier is settled for all of them, and what lanes did before
`__syncwarp` for those lanes; mbarriers and barriers of some warps settle what was done before the arrivals.
Threads of different blocks are ordered by the barrier of their cluster, by releases and acquisitions, which
`releases` follows, and launches by the end of the launch before.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.meetings import LaneBits, in_bits
from gpuprof.executor.memory.accesses import CLUSTER_PHASES, Access, Listener, Signal
from gpuprof.executor.memory.moments import (
    OF_BLOCK,
    OF_CLUSTER,
    OF_MANY,
    OF_WARP,
    ONE,
    Numbers,
    Settled,
    Timeline,
    WarpClocks,
    kind_of,
    moment_of,
    thread_of,
)
from gpuprof.executor.memory.releases import AcquiredPlace, Knowledge, Releases


class ThreadOrder(Listener):
    """The order of what the threads of one batch do, among themselves and after what earlier batches did.

    `blocks` are clusters of the batch, which a block by itself also is; `first` blocks of the launch ran in
    batches before. Stamps of the kind `apart_from` and wider may stand for threads of which only some are
    ordered: by releases, or if `by_warps` by barriers of some warps of a block.
    """

    def __init__(
        self,
        timeline: Timeline,
        first: int,
        blocks: int,
        warps: int,
        releases: Releases | None = None,
        layout: ClusterLayout = LONE_BLOCK,
        *,
        by_warps: bool = False,
    ) -> None:
        self.timeline = timeline
        self.first = first
        self.blocks, self.warps = blocks, warps
        self.layout = layout
        self.block_threads = warps // layout.blocks * WARP
        self.settled = Settled(np.zeros(blocks * layout.blocks, dtype=np.int64))
        self.clocks = WarpClocks(warps)
        self.knowledge: Knowledge | None = None
        self.apart_from = OF_BLOCK if by_warps else OF_CLUSTER if releases is not None else OF_MANY + 1
        if releases is not None:
            self.knowledge = Knowledge(releases, first, blocks, warps, layout.blocks)

    @cached_property
    def threads(self) -> Numbers:
        """The number of every thread in the launch: shape (blocks, warps, 32)."""
        count = self.blocks * self.warps * WARP
        numbers = np.arange(count, dtype=np.int64) + self.first * self.block_threads
        return numbers.reshape(self.blocks, self.warps, WARP)

    def position(self, thread: int) -> tuple[int, int, int]:
        """Return the (block, warp, lane) in the batch of a thread, by its number in the launch."""
        warp, lane = divmod(thread - self.first * self.block_threads, WARP)
        return *divmod(warp, self.warps), lane

    @property
    def _untouched(self) -> bool:
        """Whether nobody has touched anything yet, nor could have released it: there is nothing to order."""
        return self.timeline.now == 1 and self.knowledge is None

    def barrier(self, blocks: Bools | None = None) -> None:
        """All threads of the blocks that are true, of shape (blocks,), met; None for all."""
        if self._untouched:
            return
        now, before = self.timeline.advance(), self.settled.blocks
        after = np.full_like(before, now) if blocks is None else np.where(blocks, now, before)
        self.settled = replace(self.settled, blocks=after)
        if self.layout.several:  # what their warps learnt of other blocks, they tell each other
            met = np.ones_like(before, dtype=np.bool_) if blocks is None else blocks
            self.clocks.meet(self.layout.in_batch(met)[..., 0], self.clocks.view(now), self.layout.blocks)
            self.settled = replace(self.settled, met=self.clocks.known)
        if self.knowledge is not None:
            self.knowledge.share(blocks)

    def synchronise(self, access: Access, signal: Signal, line: int) -> None:
        """Threads arrive at an mbarrier, at a barrier of some warps or of a cluster, or go on past it.

        A relaxed arrival releases what was fenced before.
        """
        if self._untouched:
            return
        warps = np.broadcast_to(signal.lanes.any(axis=2), (self.blocks, self.warps))
        if access is Access.RELEASE:
            self.clocks.release(signal.phase, warps, self._view(self.timeline.advance()))
            if self.knowledge is not None:
                self.knowledge.hand_in(signal.phase, warps)
        elif access is Access.RELAXED and signal.phase in CLUSTER_PHASES and self.knowledge is not None:
            lanes = np.broadcast_to(signal.lanes, self.knowledge.shape)
            now = self.timeline.advance()
            self.knowledge.hand_in_fenced(signal.phase, lanes, now, self._limits, self.settled)
        elif access is Access.ACQUIRE:
            if signal.phase in self.clocks.released:
                self.timeline.advance()
                self.clocks.acquire(signal.phase, warps)
                self.settled = replace(self.settled, met=self.clocks.known)
            if self.knowledge is not None:
                self.knowledge.hand_out(signal.phase, warps)

    def _view(self, now: int) -> Numbers:
        """Return what each warp may rely on, its own work so far included: shape (clusters, warps, warps)."""
        view = self.clocks.view(now)
        return view if self.layout.several else np.maximum(view, self.settled.blocks[:, None, None])

    def sync_warp(self, mask: Mask, meets: LaneBits, whole: Bools) -> None:
        """As a listener."""
        if self._untouched:
            return
        now = self.timeline.advance()
        shape = (self.blocks, self.warps, WARP)
        whole = np.broadcast_to(whole, shape[:2])
        alone = np.broadcast_to(mask.active_warps[..., 0], shape[:2]) & ~whole
        warps = self.settled.warps if self.settled.warps is not None else np.zeros(shape[:2], dtype=np.int64)
        self.settled = replace(self.settled, warps=np.where(whole, now, warps))
        if alone.any():
            self._sync_lanes(np.broadcast_to(mask.lanes, shape), np.broadcast_to(meets, shape), alone, now)

    def _sync_lanes(self, lanes: Bools, meets: LaneBits, chosen: Bools, now: int) -> None:
        """Lanes of the chosen warps meet those that their bits name."""
        before = self.settled.lanes
        before = np.zeros((*lanes.shape, WARP), dtype=np.int64) if before is None else before
        view = before[chosen]
        own = np.arange(WARP)
        view[:, own, own] = now
        together = in_bits(meets[chosen][..., None]) & lanes[chosen][:, :, None]
        known = view * ~np.eye(WARP, dtype=np.bool_)
        for lane in range(WARP):
            np.maximum(known, np.where(together[:, :, lane, None], view[:, lane, None, :], 0), out=known)
        after = before.copy()
        after[chosen] = known
        self.settled = replace(self.settled, lanes=after)

    def fence(self, mask: Mask, *, near: bool) -> None:
        """Threads in `mask` execute a fence, which reaches their own block alone if it is `near`."""
        if self.knowledge is not None:
            now = self.timeline.advance()
            self.knowledge.fence(np.broadcast_to(mask.lanes, self.knowledge.shape), now, self._limits, near)

    def _limits(self, block: int, lanes: Bools, now: int) -> Numbers:
        """Return until when every thread of a cluster is ordered before what `lanes` of it do now.

        Shapes (warps, 32).
        """
        settled = self.settled
        limits = self._limits_by_barriers(block, lanes)
        warps = np.flatnonzero(lanes.any(axis=1))
        if settled.warps is not None:
            limits[warps] = np.maximum(limits[warps], settled.warps[block, warps, None])
        if settled.lanes is not None:
            for warp in warps.tolist():
                told = settled.lanes[block, warp, lanes[warp]].max(axis=0)
                limits[warp] = np.maximum(limits[warp], told)
        if settled.met is not None:
            limits = np.maximum(limits, settled.met[block, warps].max(axis=0)[:, None])
        limits[lanes] = now
        return limits

    def _limits_by_barriers(self, cluster: int, lanes: Bools) -> Numbers:
        """Return until when every thread is ordered before `lanes` by barriers of all threads."""
        settled, count = self.settled, self.layout.blocks
        of_blocks = settled.blocks[cluster * count : (cluster + 1) * count]
        if count > 1:
            here = lanes.reshape(count, -1).any(axis=1)
            of_blocks = np.where(here, of_blocks, 0)
        limits = np.repeat(of_blocks, self.block_threads).reshape(lanes.shape)
        return limits

    def signal(
        self,
        variables: dict[int, AcquiredPlace],
        place: Numbers,
        who: Numbers,
        line: int,
        *,
        reads: bool,
        writes: bool,
        near: bool = False,
        relaxed: bool = False,
    ) -> int:
        """Threads use a variable by strong operations, and may so release and acquire; return their moment.

        They take effect in the order of `place`, where in the buffer each one goes. One that reads and writes
        continues what was released there before. `near` ones are signals for their own block alone; `relaxed`
        ones acquire what they find only with their next fence.
        """
        if self.knowledge is None:
            return self.timeline.moment(line)
        self.timeline.advance()
        moment = self.timeline.moment(line)
        self.timeline.advance()
        threads = who - self.first * self.block_threads
        self.knowledge.signal(
            variables,
            place,
            threads,
            moment,
            self._limits,
            self.settled,
            reads=reads,
            writes=writes,
            near=near,
            relaxed=relaxed,
        )
        return moment

    def ordered(self, stamps: Numbers, who: Numbers) -> Bools:
        """Return whether what each stamp tells happened before what the thread beside it does now."""
        settled = self.settled
        kind, earlier, moment = kind_of(stamps), thread_of(stamps), moment_of(stamps)
        count = self.layout.blocks
        block, thread = np.divmod(who, self.block_threads)
        earlier_block = earlier // self.block_threads
        inside = block - self.first
        known = (earlier == who) & (kind == ONE)
        known |= (earlier_block == block) & (kind <= OF_BLOCK) & (moment < settled.blocks[inside])
        together = earlier_block // count == block // count if count > 1 else earlier_block == block
        near = together & (kind <= OF_WARP)
        # Warps count through the cluster from here on.
        cluster, earlier_thread = inside // count, earlier % (self.warps * WARP)
        warp, earlier_warp = inside % count * (self.warps // count) + thread // WARP, earlier_thread // WARP
        if settled.warps is not None:
            same = near & (warp == earlier_warp)
            known |= same & (moment < settled.warps[cluster, warp])
            if settled.lanes is not None:
                told = settled.lanes[cluster, warp, thread % WARP, earlier_thread % WARP]
                known |= same & (kind == ONE) & (moment < told)
        if settled.met is not None:
            known |= near & (moment < settled.met[cluster, warp, np.where(near, earlier_warp, 0)])
            if count > 1 and (wide := together & (kind > OF_WARP) & (kind < OF_MANY)).any():
                of_block = settled.met.reshape(*settled.met.shape[:2], count, -1).min(axis=3)
                upto = of_block[cluster, warp, np.where(wide, earlier_thread // self.block_threads, 0)]
                upto = np.where(kind == OF_CLUSTER, of_block.min(axis=2)[cluster, warp], upto)
                known |= wide & (moment < upto)
        if self.knowledge is not None and not known.all():
            open_ones = np.flatnonzero(~known & (kind != OF_MANY))
            told = self.knowledge.covers(
                cluster[open_ones] * self.warps + warp[open_ones],
                earlier_block[open_ones] // count,
                earlier_thread[open_ones],
                kind[open_ones],
                moment[open_ones],
            )
            known[open_ones] = told
        return np.asarray(known)
