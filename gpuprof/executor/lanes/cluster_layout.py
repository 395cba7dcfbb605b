# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the blocks of a cluster lie in a batch: side by side, as if they were one block.

A cluster of several blocks takes the place of one block of a batch. Its warps are those of its blocks, rank
after rank, and so is its shared memory. What runs, moves or judges a batch therefore sees what one block does
to another's memory as what it does to its own; only block barriers, names and addresses tell blocks apart.
"""

from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP

#: Blocks lie so far apart that banks, and what tensor copies swizzle, are as they would be alone.
_APART_BYTES = 1024


class ClusterLayout(Struct, frozen=True, dict=True):
    """The blocks of a cluster, or a lone block.

    `warps` and `shared_bytes` are of each block; `shared_start` is the address of the first byte of its own
    memory.
    """

    extents: tuple[int, int, int] = (1, 1, 1)
    warps: int = 32
    shared_bytes: int = 0
    shared_start: int = 0

    @cached_property
    def blocks(self) -> int:
        x, y, z = self.extents
        return x * y * z

    @cached_property
    def several(self) -> bool:
        return self.blocks > 1

    @cached_property
    def stride(self) -> int:
        """Bytes from one block's shared memory to the next one's."""
        return -(-self.shared_bytes // _APART_BYTES) * _APART_BYTES

    @property
    def all_bytes(self) -> int:
        """Bytes of shared memory of all blocks, one after the other."""
        return (self.blocks - 1) * self.stride + self.shared_bytes

    @cached_property
    def rank_of_warp(self) -> NDArray[np.int64]:
        """The rank of each warp's block: shape (1, warps of the cluster, 1)."""
        return np.repeat(np.arange(self.blocks), self.warps).reshape(1, -1, 1)

    def by_block(self, lanes: NDArray[Any], count: int) -> NDArray[Any]:
        """Return lanes of `count` clusters as those of their blocks: shape (blocks, warps of one, 32)."""
        whole = np.broadcast_to(lanes, (count, self.blocks * self.warps, WARP))
        return whole.reshape(count * self.blocks, self.warps, WARP) if self.several else whole

    def in_batch(self, blocks: NDArray[Any]) -> NDArray[Any]:
        """Return a value of each block, of shape (blocks,), as one of its warps: (clusters, warps, 1)."""
        if not self.several:
            return blocks[:, None, None]
        return np.repeat(blocks, self.warps).reshape(-1, self.blocks * self.warps, 1)

    def index_of(self, first: tuple[int, int, int], rank: int) -> tuple[int, int, int]:
        """Return the blockIdx of a block, given that of the cluster's first one."""
        x, y, _ = self.extents
        inside = rank % x, rank // x % y, rank // (x * y)
        return first[0] + inside[0], first[1] + inside[1], first[2] + inside[2]

    def indices_of(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the blockIdx of all blocks, cluster by cluster, given those of the first: shape (n, 3)."""
        offsets = np.array([self.index_of((0, 0, 0), rank) for rank in range(self.blocks)])
        return np.asarray(first[:, None] + offsets).reshape(-1, 3)

    def byte(self, place: int) -> tuple[str, int]:
        """Return what a message calls a byte of the cluster's shared memory, and its place in its block."""
        if not self.several:
            return f"byte {place} of shared memory", place
        rank, within = divmod(place, self.stride)
        return f"byte {within} of the shared memory of rank {rank}", within


#: Where nobody says otherwise: a block by itself.
LONE_BLOCK = ClusterLayout()
