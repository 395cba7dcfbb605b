# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Until when what each warp did is settled for each other one: what barriers, arrivals, waits and fences do.

One order for all kinds of memory: accesses to shared memory are judged by it between two barriers
(`observers.races`), those to global memory through a whole launch (`thread_order`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.lanes.scalars import uniform_blocks
from gpuprof.executor.memory.accesses import (
    CLUSTER_PHASES,
    FENCE_PHASE,
    NEAR_FENCE_PHASE,
    Access,
    Signal,
)
from gpuprof.executor.memory.moments import Phase

#: Moments of each warp, in the last dimension; 0 where it did nothing.
Times = NDArray[Any]
#: From the title of an array of a state, and the array, to another one in its place.
Change = Callable[[str, NDArray[Any]], NDArray[Any]]


class WarpClocks:
    """The clocks of the warps of each block, or cluster of so many `blocks`.

    `times` has shape (blocks or 1, warps, 2 * warps): what the second warp did before this moment is settled
    for the first. Two halves: in `known` that holds for lanes in `alone`, of shape (1, warps, 32), which have
    arrived at an mbarrier without all of their warp, in `whole` for all lanes. `released` is what arrivals at
    each phase handed on, of shape (blocks or 1, 2 * warps); `fences` is what each warp could rely on at its
    last fence, of either reach. Arrays are replaced and never changed.

    Where lanes met without the rest of a warp, `lanes` is what lane j did, for lane i: shape (blocks or 1,
    warps, i, j).
    Where blocks order what they do through global memory, `held` are the sets of releases (see `releases`)
    that each warp has acquired, of shape (blocks, warps), and `handed` what arrivals handed on of these.
    """

    def __init__(self, warps: int, blocks: int = 1) -> None:
        self.blocks = blocks
        self.times: Times = np.zeros((1, warps, 2 * warps), dtype=np.int64)
        self.alone: Bools = np.zeros((1, warps, WARP), dtype=np.bool_)
        self.released: dict[Phase, Times] = {}
        self.fences: dict[Phase, Times] = {}
        self.lanes: Times | None = None
        self.held: NDArray[Any] | None = None
        #: Whether warps of a block may hold different ones.
        self.uneven = False
        self.handed: dict[Phase, NDArray[Any]] = {}

    @property
    def known(self) -> Times:
        """Until when what lanes in `alone` did is settled: shape (blocks or 1, warps, warps)."""
        return self.times[..., : self.times.shape[1]]

    @property
    def whole(self) -> Times:
        return self.times[..., self.times.shape[1] :]

    def copy(self) -> "WarpClocks":
        """Return clocks of their own in the same state."""
        result = WarpClocks(0, self.blocks)
        result.times, result.released, result.fences = self.times, self.released.copy(), self.fences.copy()
        result.alone, result.lanes = self.alone, self.lanes
        return result

    def change(self, change: Change) -> None:
        """Replace all arrays, of which each has a row for each block, or one for all."""
        self.times, self.alone = change("clock", self.times), change("alone", self.alone)
        self.lanes = None if self.lanes is None else change("lanes", self.lanes)
        for title, table in (("released", self.released), ("fences", self.fences)):
            table.update({phase: change(f"{title} {phase}", times) for phase, times in table.items()})

    def hear(self, access: Access, signal: Signal, now: int) -> None:
        """Threads do what orders them, at a moment after all that was done before."""
        warps, phase = np.asarray(signal.lanes.any(axis=2)), signal.phase
        match access:
            case Access.SYNCWARP:
                self._sync(warps, now)
            case Access.SYNCLANES:
                self._sync_lanes(signal.lanes, now)
            case Access.MEET:
                self._meet(warps, now)
            case Access.RELEASE:
                self._release(phase, warps, self._view(now, self._arriving(signal)))
            case Access.RELAXED:
                # What its warp did before its last fence.
                near = () if phase in CLUSTER_PHASES else (NEAR_FENCE_PHASE,)
                for fence in (FENCE_PHASE, *near):
                    if fence in self.fences:
                        self._release(phase, warps, self.fences[fence])
            case Access.ACQUIRE:
                self._acquire(phase, warps)
            case Access.FENCED:
                before = self.fences.get(phase, np.int64(0))
                self.fences[phase] = np.where(warps[:, :, None], self._view(now), before)

    def _sync(self, warps: Bools, now: int) -> None:
        """The threads of each of some warps, which are true in shape (blocks or 1, warps), meet."""
        self.times = np.where(warps[:, :, None] & self._own(), now, self.times)

    def _sync_lanes(self, lanes: Bools, now: int) -> None:
        """Some lanes of each of some warps meet."""
        before = np.zeros((1, 1, WARP, WARP), dtype=np.int64) if self.lanes is None else self.lanes
        shape = max(len(before), len(lanes)), self.times.shape[1], WARP
        lanes, before = np.broadcast_to(lanes, shape), np.broadcast_to(before, (*shape, WARP))
        chosen = lanes.any(axis=2)
        view, here = before[chosen], lanes[chosen][..., None]
        own = np.arange(WARP)
        view[:, own, own] = now
        told = np.where(here, view, 0).max(axis=1, keepdims=True)
        self.lanes = before.copy()
        self.lanes[chosen] = np.where(here, np.maximum(view, told), view) * ~np.eye(WARP, dtype=np.bool_)

    def limits(self, block: int, lanes: Bools, now: int) -> Times:
        """Return until when all threads of a block are ordered before what `lanes` do now: (warps, 32)."""
        warps = np.flatnonzero(lanes.any(axis=1))
        known, whole = np.split(self.times[block % len(self.times), warps].max(axis=0)[:, None], 2)
        limits = np.where(self.alone[0], known, whole)
        if self.lanes is not None:
            for warp in warps.tolist():
                told = self.lanes[block % len(self.lanes), warp, lanes[warp]].max(axis=0)
                limits[warp] = np.maximum(limits[warp], told)
        limits[lanes] = now
        return limits

    def _meet(self, warps: Bools, now: int) -> None:
        """Whole blocks meet: each of their warps, which are true in `warps`, knows what any of them knows."""
        everybody = bool(warps.all())
        if everybody and self.blocks == 1:
            self.times = np.full((1, *self.times.shape[1:]), now)
        else:
            together = self._of_blocks(np.maximum, self._view(now))
            self.times = np.where(warps[:, :, None], np.maximum(self.times, together), self.times)
        if self.held is not None and self.uneven:
            together = self._of_blocks(np.bitwise_or, self.held)
            self.held = together if everybody else np.where(warps, together, self.held)
            self.uneven = not everybody

    def _of_blocks(self, join: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Return for each warp what the warps of its block have, joined."""
        warps = values.shape[1] // self.blocks
        together = join.reduce(values.reshape(len(values), self.blocks, warps, *values.shape[2:]), axis=2)
        return np.repeat(together, warps, axis=1)

    def _own(self, whole: Bools | bool = True) -> Bools:
        """Return which of `times` are a warp's about itself; of those for all lanes that of `whole` warps."""
        own = np.eye(self.times.shape[1], dtype=np.bool_)
        all_lanes = own & np.asarray(whole)[..., None]
        return np.concatenate([np.broadcast_to(own, all_lanes.shape), all_lanes], axis=-1)

    def _view(self, now: int, whole: Bools | bool = True) -> Times:
        """Return what each warp may rely on, with all that it did so far, or its lanes in `alone`."""
        return np.where(self._own(whole), now, self.times)

    def _arriving(self, signal: Signal) -> Bools | bool:
        """Return which warps arrive whole, as all do but at mbarriers; else lanes do, for those they met."""
        if signal.phase[0] <= 0:
            return True
        whole = np.asarray(signal.lanes.all(axis=2))
        if (lanes := signal.lanes & ~whole[..., None]).any():
            if self.lanes is not None:
                since = np.diagonal(self.whole, axis1=1, axis2=2)[..., None, None]
                lanes = lanes | ((self.lanes > since) & lanes[..., None]).any(axis=2)
            if (lanes & ~self.alone).any():
                # Other `times`, too, as `limits` differ.
                self.alone, self.times = self.alone | lanes.any(axis=0), self.times.copy()
        return whole

    def _release(self, phase: Phase, warps: Bools, view: Times) -> None:
        told = np.where(warps[:, :, None], view, 0).max(axis=1)
        before = self.released.get(phase)
        self.released[phase] = told if before is None else np.maximum(before, told)
        if self.held is not None:
            sets = np.bitwise_or.reduce(np.where(warps, self.held, 0), axis=1)
            self.handed[phase] = sets | self.handed[phase] if phase in self.handed else sets

    def _acquire(self, phase: Phase, warps: Bools) -> None:
        told = self.released.get(phase)
        if told is None:
            return
        self.times = np.where(warps[:, :, None], np.maximum(self.times, told[:, None]), self.times)
        waiting, over = np.asarray(warps.any(axis=1)), phase[0] < 0  # the next round of the barrier begins
        if over:
            self.released[phase] = np.where(waiting[:, None], 0, told)
        if self.held is not None:
            sets = self.handed[phase]
            self.held, self.uneven = np.where(warps, self.held | sets[:, None], self.held), True
            if over:
                self.handed[phase] = np.where(waiting, 0, sets)

    def forget(self) -> None:
        """Forget of what was told at each phase that which everybody knows."""
        known = self.times.min(axis=1)
        for table, limit in ((self.released, known), (self.fences, known[:, None])):
            news = {phase: np.where(times <= limit, np.int64(0), times) for phase, times in table.items()}
            table.clear()
            table.update({phase: uniform_blocks(times) for phase, times in news.items() if times.any()})
