# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who watches a case that is counted, beside what the executor counts itself.

What follows L1 tells what the first block of each batch finds there: a cache that drops the least recently
used sector.
"""

import math
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np

from gpuprof.backends.base import Functions
from gpuprof.devices.device import Device
from gpuprof.devices.occupancy import theoretical_occupancy
from gpuprof.executor import Buffer, MemoryOperation, Observer
from gpuprof.kernels.shape import LaunchShape, OneLaunch

_L1_BYTES, _SECTOR_BYTES = 256 << 10, 32
_SECTOR, _LINE_SECTORS = 5, 2
#: Sectors that are looked at, of a whole launch.
_WATCHED = 400_000
#: Accesses of a line that are looked at, each of which costs some forty microseconds.
_MOST_LOOKS = 1500


class CacheWatch(Observer):
    """Watches loads and stores of global memory.

    Attributes:
        seen: By source line and family of accesses: sectors, lines, and sectors that L1 held; of bulk copies,
            how many there were, and their sectors.
    """

    def __init__(self, sectors: int) -> None:
        self._room, self._left = sectors, _WATCHED
        self._held: OrderedDict[int, None] = OrderedDict()
        self.seen: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        """As an observer: only a load that is not strong may find its data in L1."""
        for sector in self._look(buffer, one, "global_load"):
            if not one.strong:
                self.seen[one.line, "global_load"]["hits"] += sector in self._held
                self._held[sector] = None
                self._held.move_to_end(sector)
        while len(self._held) > self._room:
            self._held.popitem(last=False)

    def write(self, buffer: Buffer, one: MemoryOperation, values: Any) -> None:
        """As an observer."""
        self._look(buffer, one, "global_store")

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Any = None) -> None:
        """As an observer."""
        self._look(buffer, one, "global_store")

    def _look(self, buffer: Buffer, one: MemoryOperation, family: str) -> list[int]:
        """Note an access of the first block; return its sectors, once for each warp."""
        if one.mask is None and one.by is not None:  # the copy engine passes L1 by
            seen = self.seen[one.line, "bulk_load" if family == "global_load" else "bulk_store"]
            seen["copies"] += len(np.unique(one.by))
            seen["sectors"] += len(one.by) * one.size >> _SECTOR
            return []
        if one.mask is None or one.site is None or self._left <= 0:
            return []
        seen, shape = self.seen[one.line, family], (one.mask.warps, 32)
        lanes = np.broadcast_to(one.mask.lanes[0], shape)
        if seen["looks"] >= _MOST_LOOKS or not lanes.any():
            return []
        seen["looks"] += 1
        start = buffer.address + np.broadcast_to(one.index[0], shape)[lanes].astype(np.int64) * one.size
        found = np.unique(np.nonzero(lanes)[0].astype(np.int64) << 42 | start >> _SECTOR)
        seen["sectors"] += len(found)
        seen["lines"] += len(np.unique(found >> _LINE_SECTORS))
        self._left -= len(found)
        sectors: list[int] = (found & ((1 << 42) - 1)).tolist()
        return sectors


def watching(device: Device, shape: LaunchShape, compiled: Functions) -> tuple[CacheWatch, list[Observer]]:
    """Return what watches the part of L1 that one block has beside its shared memory, and all that watch."""
    one = shape.largest
    resident = min(resident_blocks(device, one, compiled), math.ceil(math.prod(one.grid) / device.sm_count))
    shared = compiled[one.entry].static_shared_bytes + one.dynamic_shared_bytes
    watch = CacheWatch((_L1_BYTES // max(1, resident) - shared) // _SECTOR_BYTES)
    return watch, [watch]


def resident_blocks(device: Device, one: OneLaunch, compiled: Functions) -> int:
    """How many blocks of a launch a multiprocessor holds."""
    function = compiled[one.entry]
    return theoretical_occupancy(
        device,
        threads_per_block=math.prod(one.block),
        registers_per_thread=function.registers_per_thread,
        shared_bytes_per_block=function.static_shared_bytes + one.dynamic_shared_bytes,
    ).blocks_per_sm
