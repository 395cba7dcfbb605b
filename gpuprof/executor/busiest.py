# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the busiest multiprocessor of a device has to do at least, whichever blocks it is given."""

from collections import defaultdict
from math import ceil

import numpy as np
from numpy.typing import NDArray

#: Different amounts of work that are told apart; with more, blocks are taken to share the work evenly.
_MOST_AMOUNTS = 4096
#: Weights of a sample are ratios: a whole number of blocks may be off by rounding.
_ROUNDING = 1e-9


class Busiest:
    """Collects how many blocks of a grid do how much of each kind of work.

    Args:
        apart: Whether what is called a block is a cluster, whose blocks run on several multiprocessors: how
            they share its work is not known, and all work counts as shared evenly.
    """

    def __init__(self, *, apart: bool = False) -> None:
        self._apart = apart
        self._blocks: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))

    def add(
        self, name: str, work: NDArray[np.int64] | NDArray[np.float64], weights: NDArray[np.float64]
    ) -> None:
        """Add some blocks.

        Args:
            name: The kind of work.
            work: How much of it each block does, shape (blocks,).
            weights: How many blocks of the grid each one stands for, likewise.
        """
        known = self._blocks[name]
        first = work[0]
        if (work == first).all():
            known[float(first)] += float(weights.sum())
            return
        amounts, place = np.unique(work, return_inverse=True)
        for amount, blocks in zip(amounts, np.bincount(place, weights), strict=True):
            known[float(amount)] += float(blocks)

    def least(self, name: str, multiprocessors: int) -> float:
        """The least that the busiest multiprocessor does of one kind of work.

        Of the n blocks that do at least w each, some multiprocessor runs at least n / multiprocessors,
        rounded up (the pigeonhole principle). That holds for every w; the largest product is the answer, or
        the even share where that is more.
        """
        known = self._blocks[name]
        least = sum(amount * blocks for amount, blocks in known.items()) / multiprocessors
        if self._apart or len(known) > _MOST_AMOUNTS:
            return least
        blocks = 0.0
        for amount in sorted(known, reverse=True):
            blocks += known[amount]
            least = max(least, ceil(blocks / multiprocessors - _ROUNDING) * amount)
        return least
