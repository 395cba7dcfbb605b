# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a group of accesses to shared memory around one address costs, examined once and counted often.

A loop reads shared memory around an address that it moves on. What a warp's access costs depends on its
lanes' distances from each other and on where they lie in the 128 bytes of all banks: so it is remembered by
these, and in the next turn, the next stage and the next block it is the same again.
"""

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.banks import PERIOD, wavefronts
from gpuprof.executor.memory.global_accesses import MemoryRequest


class SharedGroup:
    """The patterns of a group in one batch, and how often each was used: at offsets from a common address."""

    def __init__(self, accesses: list[MemoryRequest], size: int) -> None:
        self._accesses = accesses
        self._low = -min(access.offset for access in accesses)
        self._high = size - max(access.offset + access.size for access in accesses)
        #: How often each block's warps used each pattern, by its bytes and shape: shape (blocks, warps).
        self._runs: dict[tuple[bytes, tuple[int, ...]], NDArray[np.int64]] = {}
        #: The pattern that was used last, its least and its largest distance, and how often that was.
        self._pattern: Lanes | None = None
        self._span = 0, 0
        self._used: NDArray[np.int64] | None = None

    def count(self, address: Lanes, mask: Mask) -> bool:
        """Count an access of all members by its pattern; False if it is to be examined lane by lane.

        A pattern are the lanes' distances from a multiple of 128 bytes below each warp's first lane. There is
        none if blocks differ, warps are not whole, or a member of the group may not have an address.
        """
        whole = mask.whole_warps
        if whole is None:
            return False
        start = address[..., :1] & -PERIOD
        distances = address - start
        pattern = self._pattern
        active = mask.narrowed_to((*address.shape[:2], 1))
        if pattern is None or not _are(distances, pattern, active):
            spread = np.broadcast_to(active, (*distances.shape[:2], 1))
            first, warps = spread.argmax(axis=0)[:, 0], np.arange(distances.shape[1])
            pattern = np.where(spread.any(axis=0), distances[first, warps], 0)
            if not _are(distances, pattern, active):
                return False
        known = pattern is self._pattern
        low, high = self._span if known else (int(pattern.min()), int(pattern.max()))
        begins = start
        if begins.min() + low < self._low or begins.max() + high > self._high:
            # Those of the warps that run it.
            begins = start[np.broadcast_to(active, start.shape)]
            if begins.min() + low < self._low or begins.max() + high > self._high:
                return False
        if not known:
            distances = pattern.astype(np.int64)
            key = distances.tobytes(), distances.shape
            if key not in self._runs:
                if any(((distances + access.offset) & (access.size - 1)).any() for access in self._accesses):
                    return False
                self._runs[key] = np.zeros((mask.blocks, mask.warps), dtype=np.int64)
            self._pattern, self._span, self._used = pattern, (low, high), self._runs[key]
        assert self._used is not None
        self._used += mask.active_warps[..., 0]
        return True

    def settle(self, tally: Tally) -> None:
        """Add to a tally what was counted."""
        for (content, shape), runs in self._runs.items():
            distances = np.frombuffer(content, dtype=np.int64).reshape(shape)
            address = np.broadcast_to(distances, (shape[0], WARP))
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
        self._runs.clear()
        self._pattern = self._used = None


def _are(distances: Lanes, pattern: Lanes, active: Bools) -> bool:
    """Tell whether all blocks have one pattern, in the warps that are true in `active`."""
    if distances.shape[1:] != pattern.shape:
        return False
    same = distances == pattern
    return bool(same.all() or (same | ~active).all())
