# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""When accesses happen, and until when what was done is settled for whom.

Every access has a *moment*: a number that grows whenever threads synchronise. A *stamp* packs who touched
something and when: (kind, thread of the launch, moment). Its kind says whether that was one thread, or stands
for several of its warp, of its block, of its cluster, or of several of these.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools

MOMENT_BITS = 28
_KIND_SHIFT = 60
_MOMENT = (1 << MOMENT_BITS) - 1
_THREAD = (1 << (_KIND_SHIFT - MOMENT_BITS)) - 1
#: The kinds of stamps; each stands for more than the one before.
ONE, OF_WARP, OF_BLOCK, OF_CLUSTER, OF_MANY = range(5)

#: Stamps, or numbers of threads in the launch.
Numbers = NDArray[np.int64]


def with_kind(stamps: Numbers, kind: NDArray[Any] | int) -> Numbers:
    """Return stamps of another kind."""
    bare = stamps & ((1 << _KIND_SHIFT) - 1)
    return np.asarray(bare | (np.asarray(kind, dtype=np.int64) << _KIND_SHIFT), dtype=np.int64)


def kind_of(stamps: Numbers) -> Numbers:
    """Return the kind of each stamp."""
    return stamps >> _KIND_SHIFT


def thread_of(stamps: Numbers) -> Numbers:
    """Return the number of each stamp's thread in the launch."""
    return (stamps >> MOMENT_BITS) & _THREAD


def moment_of(stamps: Numbers) -> Numbers:
    """Return the moment of each stamp."""
    return stamps & _MOMENT


class Timeline:
    """The moments of one launch, and the source line of each."""

    def __init__(self) -> None:
        self.lines = [0]
        self._present: dict[int, int] = {}

    @property
    def now(self) -> int:
        """The moment that comes next: all accesses so far were earlier."""
        return len(self.lines)

    def moment(self, line: int) -> int:
        """Return the moment of an access: the same for all that a line makes until threads synchronise."""
        if line not in self._present:
            self._present[line] = len(self.lines)
            self.lines.append(line)
        return self._present[line]

    def advance(self) -> int:
        """Threads synchronise: return the first moment of what they do from now on."""
        self._present.clear()
        return len(self.lines)


@dataclass(frozen=True)
class Settled:
    """What threads of a block may rely on, at one time: what was done before a moment is settled for whom.

    Arrays are replaced and never changed.
    """

    #: What any thread did, for its block: shape (blocks,); and for the lanes of its warp: (clusters, warps).
    blocks: Numbers
    warps: Numbers | None = None
    #: Where lanes met without the others of their warp: what lane j did, for lane i: (clusters, warps, i, j).
    lanes: Numbers | None = None
    #: What warp j did, for warp i of its cluster: shape (clusters, i, j).
    met: Numbers | None = None


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
