# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What functions that call themselves keep while they wait for the inner call, thread by thread."""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.lanes.scalars import Lanes


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
