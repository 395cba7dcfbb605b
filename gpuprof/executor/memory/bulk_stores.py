# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What reads shared memory while the threads go on, in groups that they close and wait for.

That are products of matrices (`wgmma`), and the copy engine's copies to global memory. Such a copy has read
its source when its group is waited for with `.read`, and has written its target when it is waited for
without, or when its block ends. Neither happens before: so a wait that is missing shows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.bulk_copies import BulkCopies
from gpuprof.executor.memory.global_accesses import Manner
from gpuprof.executor.memory.global_flights import BulkPlaces, CopyGroups, Flight
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.shared_memory import ChunkPattern

#: Where the pieces of a store go: each buffer with the pieces that it gets, and their places in it.
Targets = list[tuple[Buffer, NDArray[np.intp], NDArray[np.intp]]]


class SourceReads(CopyGroups):
    """The reads in flight of one batch: what is read must stay as it is from what `begins` to what `ends`."""

    def __init__(self, copies: BulkCopies, warps: int, begins: Access, ends: Access) -> None:
        super().__init__()
        self._copies = copies
        self._shape = (copies.barriers.blocks, warps, WARP)
        self._begins, self._ends = begins, ends

    def read(self, pattern: ChunkPattern, line: int) -> Bools:
        """A read begins; return its lanes."""
        lanes = np.broadcast_to(pattern.mask.lanes, self._shape)

        def land(due: Bools) -> None:
            part = pattern if np.array_equal(due, lanes) else self._copies.part(pattern, due)
            self._copies.events.touch(self._ends, part, line)

        self._copies.events.touch(self._begins, pattern, line)
        self.start(Flight(line, lanes, land=land))
        return lanes


class Combination(Struct, frozen=True, eq=False):
    """How a copy changes what is there.

    `apply` changes elements of content, at places, by given ones, one after the other.
    """

    dtype: np.dtype[Any]
    apply: Callable[[Lanes, NDArray[np.intp], Lanes], None]


class BulkStores:
    """The copies from shared memory in flight of one batch."""

    def __init__(self, copies: BulkCopies, warps: int) -> None:
        self._copies = copies
        self._shape = (copies.barriers.blocks, warps, WARP)
        self.reads = SourceReads(copies, warps, Access.SOURCE, Access.SOURCED)
        self._writes = CopyGroups(copies.flights.settle)
        #: Before their block ends, all that has been read is written.
        self.end = self._writes.finish

    def start(
        self,
        pattern: ChunkPattern,
        targets: Targets,
        places: BulkPlaces,
        line: int,
        combine: Combination | None = None,
        *,
        address_only: bool = False,
    ) -> None:
        """Put a copy from shared memory to `places`, which the targets hold, in flight.

        The values are those that are there now; no values move if it is `address_only`. By default they
        replace what is in the targets.
        """
        lanes = self.reads.read(pattern, line)
        values = self._copies.shared.load_chunks(pattern)

        def land(due: Bools) -> None:
            self._write(pattern, targets, values, line, combine, due, address_only=address_only)

        flight = Flight(line, lanes, places, land, writes=True)
        self._writes.start(flight if combine else self._copies.flights.add(flight))

    def commit(self, mask: Mask) -> None:
        """Close the open group of the lanes in `mask`."""
        self.reads.commit(mask)
        self._writes.commit(mask)

    def wait(self, mask: Mask, newest: int, *, reads_only: bool = False) -> None:
        """Finish all but the `newest` closed groups of the lanes in `mask`, or only their reads."""
        self.reads.wait(mask, newest)
        if not reads_only:
            self._writes.wait(mask, newest)

    def _write(
        self,
        pattern: ChunkPattern,
        targets: Targets,
        values: Lanes,
        line: int,
        combine: Combination | None,
        due: Bools,
        *,
        address_only: bool,
    ) -> None:
        rows = self._shape[0] if pattern.leading == 1 else 1
        values = np.broadcast_to(values, (rows, len(pattern.start))).reshape(-1)
        blocks = slice(None) if pattern.leading == 1 else pattern.block
        pieces = due[blocks, pattern.warp, pattern.lane].reshape(-1)
        order, tell = self._copies.events.order, self._copies.events.tell
        threads = self._copies.threads(pattern).reshape(-1) + order.first * order.block_threads
        told: dict[str, Any] = {"line": line, "address_only": address_only, "mask": None}
        for buffer, which, places in targets:
            chosen = pieces[which]
            piece, place = which[chosen], places[chosen]
            given, who, size = values[piece], threads[piece], pattern.size
            if combine is None:
                told |= {"index": place, "by": who, "size": size, "manner": Manner.WRITE}
                tell("write", buffer, given, **told)
                if address_only:
                    buffer.mark(place, size)
                else:
                    buffer.store(place, given, size)
                continue
            each = size // combine.dtype.itemsize
            place = (place[:, None] * each + np.arange(each)).reshape(-1)
            given = np.ascontiguousarray(given)[:, None].view(combine.dtype).reshape(-1)
            told |= {"index": place, "by": np.repeat(who, each), "size": combine.dtype.itemsize}
            tell("update", buffer, **told, manner=Manner.STRONG_WRITE)
            buffer.combined = True
            if address_only:
                buffer.mark(place, combine.dtype.itemsize)
            else:
                content = buffer.view(combine.dtype.itemsize)
                combine.apply(content.view(combine.dtype), place, given)
                buffer.store(place, content[place], combine.dtype.itemsize)
