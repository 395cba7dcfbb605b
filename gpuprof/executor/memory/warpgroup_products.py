# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in shared memory (`wgmma`) that go on while the threads do: what they still read."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.bulk_copies import BulkCopies
from gpuprof.executor.memory.shared_memory import ChunkPattern


@dataclass(frozen=True, eq=False)
class _Product:
    """What one instruction reads; `group` is the number of the group it belongs to, in each lane."""

    pattern: ChunkPattern
    line: int
    group: NDArray[np.int64]
    reading: Bools


class WarpgroupProducts:
    """The products in flight of one batch."""

    def __init__(self, copies: BulkCopies, warps: int) -> None:
        self._copies = copies
        self._shape = (copies.barriers.blocks, warps, WARP)
        self._flying: list[_Product] = []
        self._committed: NDArray[np.int64] = np.zeros((1, 1, 1), dtype=np.int64)

    def start(self, pattern: ChunkPattern, line: int) -> None:
        """A product begins: its operands in shared memory must stay as they are."""
        self._copies.races.record(Access.MULTIPLIED, pattern, line)
        lanes = np.broadcast_to(pattern.mask.lanes, self._shape)
        self._flying.append(_Product(pattern, line, self._committed, lanes))

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        self._committed = self._committed + mask.lanes.astype(np.int64)

    def wait(self, mask: Mask, newest: int) -> None:
        """Finish all but the `newest` closed groups of the lanes in `mask`."""
        still: list[_Product] = []
        for product in self._flying:
            due = product.reading & mask.lanes & (product.group < self._committed - newest)
            if not due.any():
                still.append(product)
                continue
            whole = np.array_equal(due, np.broadcast_to(product.pattern.mask.lanes, self._shape))
            pattern = product.pattern if whole else self._copies.part(product.pattern, due)
            self._copies.races.record(Access.PRODUCT, pattern, product.line)
            left = product.reading & ~due
            if left.any():
                still.append(replace(product, reading=left))
        self._flying = still

    @property
    def unfinished(self) -> tuple[int, Bools] | None:
        """The line and the lanes of a product that nobody waited for, if there is one."""
        return (self._flying[0].line, self._flying[0].reading) if self._flying else None
