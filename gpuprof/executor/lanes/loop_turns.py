# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many turns warps make in a loop, entry by entry: it decides which code of an unrolled loop runs."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Counts, Mask


class LoopTurns:
    """Turns of one loop of a batch, whose body is one basic block.

    Attributes:
        entries: How often warps entered the loop and made so many turns, by turns: shape (blocks,).
    """

    def __init__(self) -> None:
        self.entries: dict[int, Counts] = defaultdict(lambda: np.zeros(1, dtype=np.int64))
        self._now: NDArray[np.int64] | None = None

    def turn(self, mask: Mask) -> None:
        """Count one turn of the warps in `mask`."""
        if self._now is None:
            self._now = np.zeros((mask.blocks, mask.warps, 1), dtype=np.int64)
        self._now += mask.active_warps

    def enter(self, mask: Mask) -> None:
        """Begin anew with the warps in `mask`, which are before the loop."""
        if self._now is not None:
            ended = np.where(mask.active_warps, self._now, 0)
            self._add(ended)
            self._now -= ended

    def end(self) -> None:
        """Count the turns of the last entries."""
        if self._now is not None:
            self._add(self._now)
            self._now = None

    def _add(self, turns: NDArray[np.int64]) -> None:
        for count in np.unique(turns).tolist():
            if count:
                self.entries[count] = self.entries[count] + (turns == count).sum(axis=(1, 2))
