# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a launch keeps beside registers and memories: frames of calls, printed text, steps left, and time."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_accesses import Observer


class Frames:
    """A stack of values for every lane of a batch; `depth` is how many calls each lane is in."""

    def __init__(self, blocks: int, warps: int) -> None:
        self.depth: NDArray[np.int64] = np.zeros((blocks, warps, WARP), dtype=np.int64)
        self._lanes = np.arange(self.depth.size).reshape(self.depth.shape)
        self._kept: dict[Hashable, Lanes] = {}

    def holds(self, key: Hashable) -> bool:
        """Tell whether values were kept under a key."""
        return key in self._kept

    def keep(self, key: Hashable, value: Lanes, mask: Mask) -> None:
        """Keep the values of the lanes in `mask` at the depth that each has."""
        levels = int(self.depth.max()) + 1
        kept = self._kept.get(key)
        if kept is None or len(kept) < levels:
            more = np.zeros(
                (max(levels, 2 * (0 if kept is None else len(kept))), self.depth.size), value.dtype
            )
            if kept is not None:
                more[: len(kept)] = kept
            self._kept[key] = kept = more
        chosen = np.broadcast_to(mask.lanes, self.depth.shape)
        kept[self.depth[chosen], self._lanes[chosen]] = np.broadcast_to(value, self.depth.shape)[chosen]

    def kept(self, key: Hashable) -> Lanes:
        """Return the value of every lane at its depth; of lanes that kept none there, anything."""
        kept = self._kept[key]
        return np.asarray(kept[np.minimum(self.depth, len(kept) - 1), self._lanes])

    def move(self, mask: Mask, levels: int) -> None:
        """Let the lanes in `mask` be deeper, or less deep."""
        self.depth = np.where(mask.lanes, self.depth + levels, self.depth)


#: Calls of `printf` whose text is kept.
_MOST_CALLS = 4096


class Printed:
    """Collects what `printf` prints."""

    def __init__(self) -> None:
        self.calls = 0
        self._texts: list[str] = []

    def add(self, text: Callable[[], str]) -> None:
        """Take the text of one call, which is made up only if it is kept."""
        self.calls += 1
        if len(self._texts) < _MOST_CALLS:
            self._texts.append(text())

    @property
    def text(self) -> str:
        """What the kept calls printed, one after the other."""
        return "".join(self._texts)


class TooMuchWork(Exception):
    """A launch takes more steps than it may."""


class SliceRun(Struct):
    """Launches of control slices: how many steps of single lanes they may still take together.

    `valueless` watches the memory that they share for reads of what they left without a value.
    """

    left: float
    valueless: Observer

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            TooMuchWork: There have been too many.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


#: Registers that tell the time, and which bits of it.
CLOCKS: dict[str, tuple[int, np.dtype[Any]]] = {
    "%clock": (0, np.dtype(np.uint32)),
    "%clock_hi": (32, np.dtype(np.uint32)),
    "%clock64": (0, np.dtype(np.int64)),
    "%globaltimer": (0, np.dtype(np.int64)),
    "%globaltimer_lo": (0, np.dtype(np.uint32)),
    "%globaltimer_hi": (32, np.dtype(np.uint32)),
}
#: Cycles that an instruction takes, whatever it is.
_CYCLES = 4


class Clock(Struct):
    """Counts time, in instructions, for the registers that tell it.

    Time only moves on, and does so the faster the more often it is read, so that loops which wait for a time
    to come end soon.
    """

    executed: int = 0
    _reads: int = 0
    _ahead: int = 0

    def read(self, name: str) -> Lanes:
        """Return a register's value, later than all that were read before."""
        self._reads += 1
        self._ahead += self._reads
        shift, dtype = CLOCKS[name]
        now = _CYCLES * self.executed + self._ahead
        return np.array(now >> shift, dtype=np.int64).astype(dtype).reshape(1, 1, 1)
