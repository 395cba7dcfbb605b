# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which accesses to global memory happen before which: the causality order of PTX, as far as it is followed.

What threads of one block did before a barrier is settled for all of them, and what lanes did before
`__syncwarp` for those lanes; mbarriers and barriers of some warps settle what was done before the arrivals.
Threads of different blocks are ordered by the barrier of their cluster, by releases and acquisitions, which
`releases` follows, and launches by the end of the launch before.
"""

from functools import cached_property

import numpy as np

from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.meetings import in_bits
from gpuprof.executor.memory.accesses import ORDERING, Access, Listener, Signal
from gpuprof.executor.memory.moments import (
    OF_BLOCK,
    OF_CLUSTER,
    OF_MANY,
    OF_WARP,
    ONE,
    Numbers,
    Timeline,
    kind_of,
    moment_of,
    thread_of,
)
from gpuprof.executor.memory.releases import Knowledge, Releases
from gpuprof.executor.memory.warp_clocks import WarpClocks


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
        self.clocks = WarpClocks(warps, layout.blocks)
        self.knowledge: Knowledge | None = None
        self.apart_from = OF_BLOCK if by_warps else OF_CLUSTER if releases is not None else OF_MANY + 1
        if releases is not None:
            self.knowledge = Knowledge(releases, self.clocks, first, blocks)

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

    def synchronise(self, access: Access, signal: Signal, line: int) -> None:
        if access in ORDERING:
            self.clocks.hear(access, signal, self.timeline.advance())

    def fence(self, mask: Mask, *, near: bool) -> None:
        """Threads in `mask` execute a fence, which reaches their own block alone if it is `near`."""
        if self.knowledge is not None:
            now = self.timeline.advance()
            self.knowledge.fence(np.broadcast_to(mask.lanes, self.knowledge.shape), now, near)

    def ordered(self, stamps: Numbers, who: Numbers, lanes: Numbers | None = None) -> Bools:
        """Return whether what each stamp tells happened before what the thread beside it does now.

        Of stamps of a warp, which `lanes` they stand for may be given, as bits.
        """
        known, whole, count = self.clocks.known, self.clocks.whole, self.layout.blocks
        kind, earlier, moment = kind_of(stamps), thread_of(stamps), moment_of(stamps)
        # Warps, and threads, count through the cluster.
        cluster, thread = np.divmod(who - self.first * self.block_threads, self.warps * WARP)
        earlier_cluster, earlier_thread = np.divmod(earlier, self.warps * WARP)
        together = earlier_cluster == cluster + self.first // count
        row, warp = cluster if len(known) > 1 else 0, thread // WARP
        earlier_warp = np.where(together, earlier_thread // WARP, 0)
        settled = (earlier == who) & (kind == ONE)
        # What a lane did by itself may be settled alone; of several of a warp it is not kept which.
        heard = (kind != ONE) | self.clocks.alone[0, earlier_warp, earlier_thread % WARP]
        upto = np.where(heard, *(part[row, warp, earlier_warp] for part in (known, whole)))
        settled |= together & (kind <= OF_WARP) & (moment < upto)
        if self.clocks.lanes is not None:
            # Of a stamp of several lanes, all others must have met this one since.
            named, inside = kind == ONE, thread % WARP
            meant = np.int64(1) << earlier_thread % WARP
            if lanes is not None:
                meant, named = np.where(named, meant, lanes), kind <= OF_WARP
            others = in_bits((meant & ~(np.int64(1) << inside)).astype(np.uint32)[:, None])
            told = self.clocks.lanes[cluster if len(self.clocks.lanes) > 1 else 0, warp, inside]
            met = np.where(others, told, moment[:, None] + 1).min(axis=1)
            settled |= together & (warp == earlier_warp) & named & (moment < met)
        if (wide := together & (kind > OF_WARP) & (kind < OF_MANY)).any():
            of_block = known.reshape(*known.shape[:2], count, -1).min(axis=3)
            upto = of_block[row, warp, earlier_warp // (self.warps // count)]
            upto = np.where(kind == OF_CLUSTER, of_block.min(axis=2)[row, warp], upto)
            settled |= wide & (moment < upto)
        if self.knowledge is not None and not settled.all():
            asked = np.flatnonzero(~settled & (kind != OF_MANY))
            settled[asked] = self.knowledge.covers(
                cluster[asked] * self.warps + warp[asked],
                earlier_cluster[asked],
                earlier_thread[asked],
                kind[asked],
                moment[asked],
            )
        return np.asarray(settled)
