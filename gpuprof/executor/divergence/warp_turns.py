# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which warps of a batch go on first, where that is the card's choice.

By itself a batch runs all its warps together, which hides what a warp finds that comes too early or too late.
Lanes of a warp stay together: how a card divides these is no matter of chance.
"""

import numpy as np

from gpuprof.executor.divergence.branch_paths import BranchPath, leave
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.steps.batch import Batch

#: Orders that are not drawn by lot: first to last, last to first, and from the middle on.
FIXED = 3
#: How often warps that are drawn by lot stop in the middle of a basic block, at most: who polls shall rest.
_MOST_STOPS = 256


class WarpTurns:
    """The order of the warps of one batch.

    Its number is from 0; orders from `FIXED` on are drawn by lot, anew at each turn. The warps are divided
    into so many parts, which go one after the other.
    """

    def __init__(self, batch: Batch, number: int, parts: int) -> None:
        self._numbers = np.random.default_rng(number)
        self._by_lot = number >= FIXED
        self._stops = _MOST_STOPS if self._by_lot else 0
        count = batch.blocks * batch.warps
        self._shape, self._parts = (batch.blocks, batch.warps, 1), min(parts, count)
        places = np.arange(count)
        places = (places, places[::-1], np.roll(places, count // 2))[min(number, FIXED - 1)]
        self._ranks = (places * self._parts // count).reshape(self._shape)

    def take(self, ready: list[BranchPath]) -> BranchPath:
        """Take from paths that can run those lanes of one whose warps come first."""
        if self._by_lot:
            self._ranks = self._numbers.integers(self._parts, size=self._shape)

        def first(path: BranchPath) -> int:
            return int(np.where(path.mask.active_warps, self._ranks, self._parts).min())

        path = min(reversed(ready), key=first)
        ready.remove(path)
        going, staying = leave(path, self._ranks == first(path))
        assert going is not None
        if staying is not None:
            staying.memory = staying.memory and staying.memory.copy()
            ready.append(staying)
        return going

    def stops(self, mask: Mask) -> bool:
        """Whether lanes that have just touched what others touch without order let others go on here."""
        if not self._stops or (mask.whole and self._parts == 1):
            return False
        stops = bool(self._numbers.integers(2))
        self._stops -= stops
        return stops
