# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a group of accesses to shared memory around one address costs, examined once and counted often.

A loop reads shared memory around an address that it moves on. What a warp's access costs depends on its
lanes' distances from each other and on where they lie in the 128 bytes of all banks: so it is remembered by
these, and in the next turn, the next stage and the next block it is the same again.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.banks import PERIOD, wavefronts
from gpuprof.executor.memory.global_accesses import MemoryRequest


class _Pattern(Struct, eq=False):
    """What each lane of a warp is away from a multiple of 128 bytes: shape (warps, 32 or 1).

    `low` is the least distance and `high` the largest, and `used` how often warps of blocks used it: shape
    (blocks, warps).
    """

    distances: Lanes
    low: int
    high: int
    used: NDArray[np.int64]


class SharedGroup:
    """The patterns of a group in one batch, and how often each was used: at offsets from a common address."""

    def __init__(self, accesses: list[MemoryRequest], size: int) -> None:
        self._accesses = accesses
        self._low = -min(access.offset for access in accesses)
        self._high = size - max(access.offset + access.size for access in accesses)
        #: By their bytes and shape.
        self._known: dict[tuple[bytes, tuple[int, ...]], _Pattern] = {}
        self._last: _Pattern | None = None

    def count(self, address: Lanes, mask: Mask) -> bool:
        """Count an access of all members by its pattern; False if it is to be examined lane by lane.

        There is none if blocks differ, warps are not whole, or a member of the group may not have an address.
        """
        if mask.whole_warps is None:
            return False
        start = address[..., :1] & -PERIOD
        found = self._pattern(address - start, mask)
        if found is None:
            return False
        least, most = self._low - found.low, self._high - found.high
        if start.min() < least or start.max() > most:
            begins = start[mask.narrowed_to(start.shape)]  # of the warps that run it
            if begins.min() < least or begins.max() > most:
                return False
        found.used += mask.active_warps[..., 0]
        return True

    def _pattern(self, distances: Lanes, mask: Mask) -> _Pattern | None:
        """Return the pattern of warps by how far lanes are from a multiple of 128 bytes, if they have one."""
        active = mask.narrowed_to((*distances.shape[:2], 1))
        if self._last is not None and _are(distances, self._last.distances, active):
            return self._last
        first, warps = active.argmax(axis=0)[:, 0], np.arange(distances.shape[1])
        # Of the addresses' type: to compare integers of two types takes several times as long.
        pattern = np.where(active.any(axis=0), distances[first, warps], distances.dtype.type(0))
        if not _are(distances, pattern, active):
            return None
        key = pattern.tobytes(), pattern.shape
        if key not in self._known:
            if any(((pattern + access.offset) & (access.size - 1)).any() for access in self._accesses):
                return None
            used = np.zeros((mask.blocks, mask.warps), dtype=np.int64)
            self._known[key] = _Pattern(pattern, int(pattern.min()), int(pattern.max()), used)
        self._last = self._known[key]
        return self._last

    def settle(self, tally: Tally) -> None:
        for pattern in self._known.values():
            distances, runs = pattern.distances.astype(np.int64), pattern.used
            address = np.broadcast_to(distances, (len(distances), WARP))
            everybody = np.ones(address.shape, dtype=np.bool_)
            for access in self._accesses:
                place = address + access.offset
                place = place - (int(place.min()) & -PERIOD)
                loads = not access.manner.writes
                total, ideal = wavefronts(place, everybody, access.size, load=loads)
                assert access.site is not None
                tally.add(access.site, "requests", runs.sum(axis=1))
                tally.add(access.site, "wavefronts", (runs * total).sum(axis=1))
                tally.add(access.site, "bank_conflicts", (runs * (total - ideal)).sum(axis=1))
            runs.fill(0)


def _are(distances: Lanes, pattern: Lanes, active: Bools) -> bool:
    """Tell whether all blocks have one pattern, in the warps that are true in `active`."""
    if distances.shape[1:] != pattern.shape:
        return False
    same = distances == pattern
    return bool(same.all() or (same | ~active).all())
