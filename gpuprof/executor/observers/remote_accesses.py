# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks of a cluster that touch each other's shared memory, and whether it is still there.

The shared memory of a block is given to others when its last thread ends. Who touches it must make the block
wait: at the barrier of the cluster, or at an mbarrier at which the others arrive when they are done. What the
copy engine brings is waited for by who waits for its bytes; what it takes, by who hears of those that did.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.memory.accesses import CLUSTER_PHASES, Access, Listener, Signal
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern

#: Patterns of which it is remembered whose memory they reach.
_REMEMBERED = 4096
_BY_THREADS = frozenset({Access.READ, Access.WRITE, Access.ATOMIC, Access.MBARRIER})
_BY_COPIES = frozenset({Access.BULK, Access.REDUCTION})


@dataclass(frozen=True)
class _Reach:
    """Which other blocks' memory warps touch, and by which lane: shape (clusters or 1, ranks, warps)."""

    touched: Bools
    lane: NDArray[np.intp]


class RemoteAccesses(Listener):
    """Who touched whose shared memory, in one batch of clusters.

    `names` says threadIdx and blockIdx of a place in it, and `fault` raises what is wrong. If it is
    `strict`, blocks must not end while others may still touch their memory. Where threads order what they do
    by fences and flags, only what is touched when its block has ended is wrong.
    """

    def __init__(
        self,
        clusters: int,
        layout: ClusterLayout,
        events: Events,
        names: Callable[[tuple[int, int, int]], tuple[Any, Any]],
        fault: Callable[..., NoReturn],
        *,
        strict: bool,
    ) -> None:
        self._layout = layout
        self._events, self._names, self._fault = events, names, fault
        self._strict = strict
        shape = (clusters, layout.blocks, layout.blocks * layout.warps)
        self._ended: Bools = np.zeros(shape[:2], dtype=np.bool_)
        #: Whose memory, by rank, each warp touched, where its block has not waited for that since; and where
        #: the warp has said that it is done.
        self._open: Bools = np.zeros(shape, dtype=np.bool_)
        self._done: Bools = np.zeros(shape, dtype=np.bool_)
        self._line = np.zeros(shape, dtype=np.int64)
        self._lane = np.zeros(shape, dtype=np.int64)
        #: Likewise the copies that are not waited for, by their pattern.
        self._copies: dict[int, tuple[Bools, _Reach, int]] = {}
        self._reaches: Kept[_Reach | None] = Kept(_REMEMBERED)

    def touch(
        self, access: Access, pattern: SharedPattern | ChunkPattern, line: int, values: object = None
    ) -> None:
        """As a listener."""
        if access not in _BY_THREADS and access not in _BY_COPIES:
            return
        reach = self._reach_of(pattern)
        if reach is None:
            return
        gone = reach.touched & self._ended[:, :, None]
        if gone.any():
            self._blame(gone, reach.lane, line)
        if access in _BY_COPIES:
            touched = np.broadcast_to(reach.touched, self._open.shape)
            self._copies[pattern.serial] = touched.copy(), reach, line
            return
        self._note(reach.touched, reach.lane, line)
        if access is Access.MBARRIER:
            self._signal(reach.touched)

    def passes(self, source: ChunkPattern, target: ChunkPattern, line: int) -> None:
        """As a listener: who gets a copy is at its source, until it tells the block there that it is over."""
        reach = self._reach_of(target)
        if reach is not None:
            touched: Bools = np.zeros_like(self._open)
            cluster, rank, warp = np.nonzero(np.broadcast_to(reach.touched, touched.shape))
            touched[cluster, warp // self._layout.warps, rank * self._layout.warps] = True
            self._note(touched, np.zeros((1, 1, 1), dtype=np.intp), line)

    def _note(self, touched: Bools, lane: NDArray[np.intp], line: int) -> None:
        self._open |= touched
        self._done &= ~touched
        self._line = np.where(touched, line, self._line)
        self._lane = np.where(touched, lane, self._lane)

    def _reach_of(self, pattern: SharedPattern | ChunkPattern) -> _Reach | None:
        return self._reaches.of(pattern.serial, lambda: self._reach(pattern))

    def _reach(self, pattern: SharedPattern | ChunkPattern) -> _Reach | None:
        """Return which other blocks' memory each warp touches; None where no warp does."""
        stride, leading = self._layout.stride, pattern.leading
        if isinstance(pattern, ChunkPattern):
            cluster, warp, lane, owner = pattern.block, pattern.warp, pattern.lane, pattern.start // stride
        else:
            shape = (leading, pattern.mask.warps, WARP)
            cluster, warp, lane = np.nonzero(np.broadcast_to(pattern.mask.lanes, shape))
            owner = np.broadcast_to(pattern.address // stride, shape)[cluster, warp, lane]
        remote = np.flatnonzero(owner != warp // self._layout.warps)
        if not remote.size:
            return None
        touched: Bools = np.zeros((leading, *self._open.shape[1:]), dtype=np.bool_)
        first: NDArray[np.intp] = np.full(touched.shape, WARP, dtype=np.intp)
        where = cluster[remote], owner[remote], warp[remote]
        touched[where] = True
        np.minimum.at(first, where, lane[remote])
        return _Reach(touched, first)

    def synchronise(self, access: Access, signal: Signal, line: int) -> None:
        """As a listener: of clusters' barriers, and of waits for copies."""
        if signal.copy is not None and access is Access.OBSERVED:
            self._waited(signal.copy.serial, self._ranks(signal.lanes))
        elif signal.phase in CLUSTER_PHASES:
            if access in (Access.RELEASE, Access.RELAXED):
                self._arrive(signal.lanes)
            elif access is Access.ACQUIRE:
                self.awaited(signal.lanes)

    def _waited(self, serial: int, ranks: Bools) -> None:
        """Blocks of these ranks have waited for a copy."""
        if serial in self._copies:
            left = self._copies[serial][0]
            left &= ~ranks[:, :, None]
            if not left.any():
                del self._copies[serial]

    def _arrive(self, lanes: Bools) -> None:
        """Threads arrive at the barrier of their cluster: they are done with what they touched so far.

        So are their copies: that these are over, who meets there knows or is told.
        """
        arriving = np.asarray(lanes.any(axis=2))[:, None, :]
        for left, reach, line in self._copies.values():
            if (started := left & arriving).any():
                self._note(started, reach.lane, line)
                left &= ~started
        self._done |= self._open & arriving

    def _signal(self, touched: Bools) -> None:
        """Blocks use mbarriers of others: they are done with memory there."""
        shape = self._open.shape
        by_warp = np.broadcast_to(touched, shape).reshape(*shape[:2], -1, self._layout.warps)
        self._done |= self._open & np.repeat(np.asarray(by_warp.any(axis=3)), self._layout.warps, axis=2)

    def awaited(self, lanes: Bools) -> None:
        """As a listener: their blocks have waited for who was done by then."""
        self._open &= ~(self._done & self._ranks(lanes)[:, :, None])

    def _ranks(self, lanes: Bools) -> Bools:
        """Return whose blocks these threads are of: shape (clusters, ranks)."""
        shape = self._open.shape
        waiting = np.broadcast_to(lanes.any(axis=2), (shape[0], shape[2]))
        return np.asarray(waiting.reshape(*shape[:2], -1).any(axis=2))

    def ended(self, live: Bools) -> None:
        """As a listener: what was touched, and not waited for, by blocks that end."""
        blocks = self._layout.by_block(live, len(self._ended))
        alive = np.asarray(blocks.any(axis=(1, 2))).reshape(self._ended.shape)
        ending = ~alive & ~self._ended
        if not ending.any():
            return
        self._ended |= ending
        if not self._strict:
            return
        if (wrong := self._open & ending[:, :, None]).any():
            self._blame(wrong, self._lane, self._line)
        for left, reach, line in self._copies.values():
            if (wrong := left & ending[:, :, None]).any():
                self._blame(wrong, reach.lane, line)

    def _blame(self, wrong: Bools, lane: NDArray[Any], line: NDArray[Any] | int) -> None:
        self._events.hear("settle", None)  # what went wrong before comes first
        cluster, rank, warp = place = tuple(int(i) for i in np.argwhere(wrong)[0])
        number, first = (int(np.broadcast_to(part, wrong.shape)[place]) for part in (line, lane))
        _, block = self._names((cluster, rank * self._layout.warps, 0))
        text = (
            f"accesses shared memory of block {block}, which ends without waiting for that: a barrier of the"
        )
        text += " cluster is missing"
        self._fault(FaultKind.OUT_OF_BOUNDS, text, number, (cluster, warp, first))
