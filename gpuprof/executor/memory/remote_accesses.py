# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks of a cluster that touch each other's shared memory, and whether it is still there.

The shared memory of a block is given to others when its last thread ends. Who touches it must make the block
wait: at the barrier of the cluster, or at an mbarrier at which the others arrive when they are done.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import SharedPattern

#: Patterns of which it is remembered whose memory they reach.
_REMEMBERED = 4096


@dataclass(frozen=True)
class RemoteAccess:
    """An access to memory that is gone, or may be: line, (cluster, warp, lane), and the rank of its block."""

    line: int
    position: tuple[int, int, int]
    rank: int


class RemoteAccesses:
    """Who touched whose shared memory, in one batch of clusters.

    If it is `strict`, blocks must not end while others may still touch their memory. Where threads order what
    they do by fences and flags, only what is touched when its block has ended is wrong.
    """

    def __init__(self, clusters: int, layout: ClusterLayout, *, strict: bool) -> None:
        self._layout = layout
        self._strict = strict
        #: The counting sites of accesses that went to other blocks' memory.
        self.sites: set[int] = set()
        shape = (clusters, layout.blocks, layout.blocks * layout.warps)
        self._ended: Bools = np.zeros(shape[:2], dtype=np.bool_)
        #: Whose memory, by rank, each warp touched, where its block has not waited for that since; and where
        #: the warp has said that it is done.
        self._open: Bools = np.zeros(shape, dtype=np.bool_)
        self._done: Bools = np.zeros(shape, dtype=np.bool_)
        self._line = np.zeros(shape, dtype=np.int64)
        self._lane = np.zeros(shape, dtype=np.int64)
        self._reaches: Kept[tuple[Bools, NDArray[np.intp]] | None] = Kept(_REMEMBERED)

    def touch(self, pattern: SharedPattern, line: int, site: int) -> RemoteAccess | None:
        """Note an access; return it if it touches the memory of a block that has ended."""
        stride, mask = self._layout.stride, pattern.mask
        reach = self._reaches.of(pattern.serial, lambda: self._reach(pattern.address // stride, mask))
        if reach is not None:
            self.sites.add(site)
        return self._note(reach, line)

    def touch_ranks(self, ranks: NDArray[np.int64], mask: Mask, line: int) -> RemoteAccess | None:
        """Note that the lanes in `mask` touch memory of these ranks, of a shape that broadcasts to theirs."""
        return self._note(self._reach(ranks, mask), line)

    def _note(self, reach: tuple[Bools, NDArray[np.intp]] | None, line: int) -> RemoteAccess | None:
        if reach is None:
            return None
        touched, lane = reach
        gone = touched & self._ended[:, :, None]
        if gone.any():
            cluster, rank, warp = (int(i) for i in np.argwhere(gone)[0])
            first = np.broadcast_to(lane, self._open.shape)[cluster, rank, warp]
            return RemoteAccess(line, (cluster, warp, int(first)), rank)
        self._open |= touched
        self._done &= ~touched
        self._line = np.where(touched, line, self._line)
        self._lane = np.where(touched, lane, self._lane)
        return None

    def _reach(self, ranks: NDArray[np.int64], mask: Mask) -> tuple[Bools, NDArray[np.intp]] | None:
        """Return which other blocks' memory each warp touches, and by which lane; None where no warp does.

        Shapes (clusters or 1, ranks, warps).
        """
        shape = (max(len(ranks), len(mask.lanes)), mask.warps, WARP)
        owner, lanes = np.broadcast_to(ranks, shape), np.broadcast_to(mask.lanes, shape)
        remote = lanes & (owner != self._layout.rank_of_warp)
        if not remote.any():
            return None
        cluster, warp, lane = np.nonzero(remote)
        rank = owner[remote]
        touched: Bools = np.zeros((shape[0], *self._open.shape[1:]), dtype=np.bool_)
        first: NDArray[np.intp] = np.full(touched.shape, WARP, dtype=np.intp)
        touched[cluster, rank, warp] = True
        np.minimum.at(first, (cluster, rank, warp), lane)
        return touched, first

    def arrive(self, lanes: Bools) -> None:
        """Threads arrive at the barrier of their cluster: they are done with what they touched so far."""
        self._done |= self._open & np.asarray(lanes.any(axis=2))[:, None, :]

    def met(self, complete: Bools) -> None:
        """The barrier of the clusters that are true in `complete` is over."""
        self._open &= ~(self._done & complete[:, None, None])

    def signal(self, ranks: NDArray[np.int64], mask: Mask) -> None:
        """Threads arrive at mbarriers of these ranks: their blocks are done with memory there."""
        reach = self._reach(ranks, mask)
        if reach is not None:
            shape = self._open.shape
            by_warp = np.broadcast_to(reach[0], shape).reshape(*shape[:2], -1, self._layout.warps)
            signalling = np.repeat(np.asarray(by_warp.any(axis=3)), self._layout.warps, axis=2)
            self._done |= self._open & signalling

    def observe(self, lanes: Bools) -> None:
        """Threads waited for an mbarrier with success: their blocks have waited for who was done by then."""
        shape = self._open.shape
        waiting = np.broadcast_to(lanes.any(axis=2), (shape[0], shape[2]))
        ranks = np.asarray(waiting.reshape(*shape[:2], -1).any(axis=2))
        self._open &= ~(self._done & ranks[:, :, None])

    def end(self, live: Bools) -> RemoteAccess | None:
        """Threads ended; return an access for which a block that has ended with them did not wait."""
        blocks = self._layout.by_block(live, len(self._ended))
        alive = np.asarray(blocks.any(axis=(1, 2))).reshape(self._ended.shape)
        ending = ~alive & ~self._ended
        if not ending.any():
            return None
        self._ended |= ending
        left = self._open & ending[:, :, None]
        if not (self._strict and left.any()):
            return None
        cluster, rank, warp = (int(i) for i in np.argwhere(left)[0])
        place = (cluster, rank, warp)
        return RemoteAccess(int(self._line[place]), (cluster, warp, int(self._lane[place])), rank)
