# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared memory seen through two proxies: that of ordinary accesses, and that of the copy engine.

What threads write is not visible to the copy engine until a `fence.proxy.async` lies between: after the
write, before the copy, and in an order with both. It may be the writer's own, executed before the barrier, or
that of the thread that starts the copy, behind it. Of reads nothing is asked: they are over when their thread
arrives at the barrier that lets a copy overwrite what they read. Nor of mbarriers: nobody but operations on
mbarriers touches them, and those of a copy are ordered behind the one that set it up as those of threads are.
CUDA's own library, libcu++, sets them up without any fence.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.memory.accesses import (
    ORDERED,
    SETTLED,
    Access,
    Entry,
    Signal,
    Touch,
    warp_of,
)
from gpuprof.executor.memory.races import Interval, Lasting, Verdict
from gpuprof.executor.memory.shared_memory import SharedPattern

#: The warps of each block, or of each place, as bits.
WarpBits = NDArray[np.uint32]
#: What leaves something behind that the copy engine does not see.
_GENERIC = (Access.WRITE, Access.ATOMIC, Access.LANDED)


class ProxiedInterval(Interval):
    """Shared memory between two barriers, and which of it the copy engine does not see as it is.

    What a fence makes visible counts for the threads that are ordered after it. Those are told apart by warp,
    except that the thread of a fence of its own is known by its number.
    """

    #: Also: one more than the source line of the last ordinary write that no fence has followed.
    LASTING: ClassVar[dict[str, Any]] = {**Interval.LASTING, "unfenced": np.int32}
    #: Also: the thread, plus one, whose fence came after that write, and the warps that are ordered behind
    #: such a fence, as bits; and when the first of them was.
    PASSING: ClassVar[dict[str, Any]] = {
        **Interval.PASSING,
        "fencer": np.int32,
        "fenced_warps": np.uint32,
        "fence_time": np.int32,
    }

    unfenced: NDArray[np.int32]
    fencer: NDArray[np.int32]
    fenced_warps: WarpBits
    fence_time: NDArray[np.int32]

    def __init__(self, lasting: Lasting, granule: int, report: Callable[[Verdict], None]) -> None:
        super().__init__(lasting, granule, report)
        self._now = 0
        #: The sets of warps for which something is settled, as bits.
        self._settled: WarpBits = np.zeros(0, dtype=np.uint32)

    @property
    def fenced(self) -> Bools:
        """Where some threads are ordered behind a fence."""
        return np.asarray((self.fencer != 0) | (self.fenced_warps != 0))

    def apply(self, entry: Entry) -> None:
        """Judge one entry and remember it."""
        self._now += 1
        self.judge(entry)
        if entry.access in _GENERIC:
            self._leave_unfenced(self.touch(entry))

    def judge(self, entry: Entry) -> None:
        """Judge one entry by what it did."""
        match entry.access, entry.pattern:
            case Access.FENCE, Signal() as signal:
                self._fence(signal)
            case _:
                super().apply(entry)

    def forget(self, released: Bools) -> None:
        """Blocks that are true in `released` passed a barrier; the others did not."""
        self.widen(len(released))
        self.unfenced[self.fenced & released[:, None]] = 0
        super().forget(released)

    def settle(self) -> None:
        """All passed a barrier."""
        self.unfenced[self.fenced] = 0

    def order_warps(self, entry: Entry) -> None:
        """After __syncwarp, all threads of a warp are ordered behind the fence of one."""
        super().order_warps(entry)
        assert isinstance(entry.pattern, SharedPattern)
        mask = entry.pattern.mask
        synced = np.broadcast_to(mask.active_warps[..., 0], (len(self.written), mask.warps))
        block, place = np.nonzero(self.fencer)
        warp = warp_of(self.fencer[block, place])
        chosen = synced[block, warp]
        block, place = block[chosen], place[chosen]
        self.fenced_warps[block, place] |= self._bit(warp[chosen])

    def hand_on(self, times: NDArray[np.int32], waiting: WarpBits) -> None:
        """Warps waited for others: they are behind the fences that those were behind when they arrived.

        Args:
            times: When the warps of each bit arrived, less than 0 where they did not: shape (blocks, bits).
            waiting: The warps that waited: shape (blocks,).
        """
        block, place = np.nonzero(self.fenced & (waiting != 0)[:, None])
        if not block.size:
            return
        since, fencer = self.fence_time[block, place], self.fencer[block, place]
        behind = self.fenced_warps[block, place] | np.where(
            fencer > 0, self._bit(warp_of(fencer)), np.uint32(0)
        )
        among = (behind[:, None] >> np.arange(times.shape[1], dtype=np.uint32) & 1).astype(np.bool_)
        arrived = (among & (times[block] >= since[:, None])).any(axis=1)
        block, place = block[arrived], place[arrived]
        self.fenced_warps[block, place] |= waiting[block]

    def hand_on_in_blocks(self, complete: Bools, sets: WarpBits) -> None:
        """Whole blocks of clusters met: each is behind the fences that any of its warps is behind.

        Args:
            complete: The blocks: shape (clusters, blocks of one).
            sets: The warps of each block.
        """
        block, place = np.nonzero(self.fenced & complete.any(axis=1, keepdims=True))
        fencer, behind = self.fencer[block, place], self.fenced_warps[block, place]
        known = behind | np.where(fencer > 0, self._bit(warp_of(fencer)), np.uint32(0))
        for rank, members in enumerate(sets):
            inside = complete[block, rank] & ((known & members) != 0)
            behind = np.where(inside, behind | members, behind)
        self.fenced_warps[block, place] = behind

    def _bit(self, warp: NDArray[Any]) -> WarpBits:
        return np.left_shift(np.uint32(1), self.layout.bit_of(warp).astype(np.uint32))

    def require_fence(self, touch: Touch, text: str) -> None:
        """Report a place that a copy touches and that it does not see as it was written.

        Args:
            touch: What the copy touches.
            text: What it does, with {0} for the byte.
        """
        line = touch.held(self.unfenced)
        if not line.any():
            return
        behind = touch.held(self.fenced_warps) & self._bit(touch.warp)[:, None]
        fenced = (touch.held(self.fencer) == touch.owner) | (behind != 0)
        hits = np.argwhere((line != 0) & ~fenced)
        if not len(hits):
            return
        row, column = (int(i) for i in hits[0])
        did = f", which line {int(line[row, column]) - 1} wrote, and no fence.proxy.async lies between"
        self.found(FaultKind.PROXY, touch, (row, column), text + did)

    def taken_over(self, touch: Touch) -> None:
        """A copy overwrites these places: what was written before is no more."""
        self.unfenced[touch.rows, touch.granules] = 0

    def _leave_unfenced(self, touch: Touch) -> None:
        place = touch.rows, touch.granules
        self.unfenced[place] = touch.entry.line + 1
        self.fencer[place] = 0
        self.fenced_warps[place] = 0

    def _fence(self, signal: Signal) -> None:
        """Threads execute a fence: it covers what is ordered before it."""
        block, place = np.nonzero(self.unfenced)
        if not block.size:
            return
        blocks, (warps, width) = len(self.written), signal.lanes.shape[1:]
        lanes = np.broadcast_to(signal.lanes, (blocks, warps, width)).reshape(blocks, warps * WARP)
        # Of a fence of one thread it is known whose it is.
        alone = lanes.sum(axis=1) == 1
        number = np.where(alone, lanes.argmax(axis=1) + 1, 0)[block].astype(np.int32)
        fencing = warp_bits(np.asarray(lanes.reshape(blocks, warps, WARP).any(axis=2)), self.layout)[block]

        writer, updater = self.writer[block, place], self.updater[block, place]
        owner = np.where(writer != 0, writer, updater)
        is_thread, is_warp = (owner > 0) & (owner < ORDERED), (owner >= ORDERED) & (owner < SETTLED)
        own = is_thread & lanes[block, np.where(is_thread, owner - 1, 0)]
        # Who is behind the write: its own thread, its warp, those for whom it is settled, or all.
        behind = np.where(is_warp, self._bit(warp_of(owner)), np.uint32(0xFFFFFFFF))
        if (passed_on := owner >= SETTLED).any():
            behind = np.where(passed_on, self._settled[np.where(passed_on, owner - SETTLED, 0)], behind)
        behind = np.where(is_thread, np.uint32(0), behind) & fencing
        number = np.where(own, owner, np.where(behind != 0, number, np.int32(0)))
        behind = np.where(number != 0, np.uint32(0), behind)

        done = (number != 0) | (behind != 0)
        block, place, number, behind = block[done], place[done], number[done], behind[done]
        before = self.fenced[block, place]
        self.fence_time[block, place] = np.where(before, self.fence_time[block, place], self._now)
        known = self.fencer[block, place]
        replaced = (known != 0) & (number != 0) & (known != number)
        behind = np.where(replaced, self._bit(warp_of(known)), behind)
        self.fencer[block, place] = np.where(number != 0, number, known)
        self.fenced_warps[block, place] |= behind


def warp_bits(warps: Bools, layout: ClusterLayout) -> WarpBits:
    """Return the true ones of each block's warps as bits."""
    warps = layout.grouped(warps)
    bits = np.left_shift(warps.astype(np.uint32), np.arange(warps.shape[1], dtype=np.uint32))
    return np.asarray(bits.sum(axis=1, dtype=np.uint32))
