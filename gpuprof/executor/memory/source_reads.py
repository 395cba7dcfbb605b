# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What reads shared memory while the threads go on, in groups that they close and wait for.

That are products of matrices (`wgmma`), and the copy engine's copies to global memory.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.bulk_copies import BulkCopies
from gpuprof.executor.memory.shared_memory import ChunkPattern


@dataclass(eq=False)
class SourceRead:
    """What one instruction reads; `group` is the number of the group it belongs to, in each lane."""

    pattern: ChunkPattern
    line: int
    group: NDArray[np.int64]
    reading: Bools


class SourceReads:
    """The reads in flight of one batch: what is read must stay as it is from what `begins` to what `ends`."""

    def __init__(self, copies: BulkCopies, warps: int, begins: Access, ends: Access) -> None:
        self._copies = copies
        self._shape = (copies.barriers.blocks, warps, WARP)
        self._begins, self._ends = begins, ends
        self._flying: list[SourceRead] = []
        self._committed: NDArray[np.int64] = np.zeros((1, 1, 1), dtype=np.int64)

    def start(self, pattern: ChunkPattern, line: int) -> SourceRead:
        """A read begins."""
        self._copies.races.record(self._begins, pattern, line)
        lanes = np.broadcast_to(pattern.mask.lanes, self._shape)
        read = SourceRead(pattern, line, self._committed, lanes)
        self._flying.append(read)
        return read

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        self._committed = self._committed + mask.lanes.astype(np.int64)

    def due(self, read: SourceRead, mask: Mask, newest: int) -> Bools:
        """Return for which of the lanes in `mask` it belongs to a closed group, but for the `newest` ones."""
        return np.asarray(mask.lanes & (read.group < self._committed - newest))

    def wait(self, mask: Mask, newest: int) -> None:
        """Finish all but the `newest` closed groups of the lanes in `mask`."""
        for read in self._flying:
            due = read.reading & self.due(read, mask, newest)
            if due.any():
                whole = np.array_equal(due, np.broadcast_to(read.pattern.mask.lanes, self._shape))
                pattern = read.pattern if whole else self._copies.part(read.pattern, due)
                self._copies.races.record(self._ends, pattern, read.line)
                read.reading = read.reading & ~due
        self._flying = [read for read in self._flying if read.reading.any()]

    @property
    def unread(self) -> tuple[int, Bools] | None:
        """The line and the lanes of a read that nobody waited for, if there is one."""
        return (self._flying[0].line, self._flying[0].reading) if self._flying else None
