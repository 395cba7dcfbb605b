# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each warp may rely on: until when what each other warp did happened before what it does now.

Arrivals at barriers release what a warp may rely on, its own work included; waits there acquire it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools

#: Moments of each warp, in the last dimension; 0 where it did nothing.
Times = NDArray[Any]
#: A barrier, and the parity of its phase; a barrier of some of a block's warps has a number below 0.
Phase = tuple[int, int]


class WarpClocks:
    """The clocks of the warps of each block, or cluster of blocks. Arrays are replaced and never changed.

    `known` has shape (blocks or 1, warps, warps): what the second warp did before this moment is settled for
    the first. `released` is what arrivals at each phase handed on: shape (blocks or 1, warps).
    """

    def __init__(self, warps: int, dtype: Any = np.int64) -> None:
        self.known: Times = np.zeros((1, warps, warps), dtype=dtype)
        self.released: dict[Phase, Times] = {}

    def copy(self) -> "WarpClocks":
        """Return clocks of their own in the same state."""
        result = WarpClocks(0)
        result.known, result.released = self.known, self.released.copy()
        return result

    def view(self, now: int) -> Times:
        """Return what each warp may rely on, all that it did itself so far included."""
        view = self.known.copy()
        own = np.arange(view.shape[1])
        view[:, own, own] = now
        return view

    def meet(self, warps: Bools, view: Times, blocks: int) -> None:
        """Whole blocks meet: each of their warps, which are true in `warps`, knows what any of them knows."""
        together = view.reshape(len(view), blocks, -1, view.shape[2]).max(axis=2)
        together = np.repeat(together, view.shape[1] // blocks, axis=1)
        self.known = np.where(warps[:, :, None], np.maximum(self.known, together), self.known)

    def release(self, phase: Phase, warps: Bools, view: Times) -> None:
        """Some warps, true in shape (blocks or 1, warps), hand on at a phase what a view of theirs says."""
        told = np.where(warps[:, :, None], view, view.dtype.type(0)).max(axis=1)
        before = self.released.get(phase)
        self.released[phase] = told if before is None else np.maximum(before, told)

    def acquire(self, phase: Phase, warps: Bools) -> None:
        """Some warps go on past a phase."""
        told = self.released.get(phase)
        if told is None:
            return
        self.known = np.where(warps[:, :, None], np.maximum(self.known, told[:, None]), self.known)
        if phase[0] < 0:  # the next round of the barrier begins
            waiting = warps.any(axis=1, keepdims=True)
            self.released[phase] = np.where(waiting, told.dtype.type(0), told)
