# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a group of accesses to shared memory around one address costs, examined once and counted often.

A loop reads shared memory around an address that it moves on. What a warp's access costs depends on its
lanes' distances from each other and on where they lie in the 128 bytes of all banks: so it is remembered by these,
and in the next turn, the next stage and the next block it is the same again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.tally import Event, Tally
from gpuprof.executor.memory.banks import BANKS, WORD_BYTES, wavefronts

#: Addresses so far apart lie in the same bank.
_PERIOD = BANKS * WORD_BYTES


@dataclass(frozen=True)
class SharedAccess:
    """One access of the group.

    Attributes:
        site: Its number in the tally.
        offset: Its distance from the common address, in bytes.
        size: Bytes per lane.
        load: Whether it is a load.
    """

    site: int
    offset: int
    size: int
    load: bool


@dataclass(frozen=True)
class _Rows:
    """Addresses of whole warps, less what changes no bank.

    Attributes:
        distances: From a multiple of 128 bytes below each warp's first lane: shape (warps or 1, 32 or 1), the
            same in every block.
        low: A lower bound of all addresses.
        high: An upper bound.
    """

    distances: NDArray[np.int64]
    low: int
    high: int

    @classmethod
    def of(cls, address: Lanes, mask: Mask) -> "_Rows | None":
        """Examine the lanes in `mask`; None if they are no whole warps, or blocks do not do the same."""
        if mask.lanes.shape[2] > 1 and not (mask.lanes == mask.lanes[..., :1]).all():
            return None
        active = mask.lanes[..., :1]
        for axis in (0, 1):
            if address.shape[axis] == 1 and active.shape[axis] > 1:
                active = np.asarray(active.any(axis=axis, keepdims=True))
        active = np.broadcast_to(active, (*address.shape[:2], 1))
        start = address[..., :1] & -_PERIOD
        distances = address - start
        first = distances[0]
        if len(distances) > 1:
            first = np.take_along_axis(distances, active.argmax(axis=0)[None], axis=0)[0]
            first = np.where(active.any(axis=0), first, 0)
            if not ((distances == first) | ~active).all():
                return None
        begins = start[active]
        low, high = int(begins.min()) + int(first.min()), int(begins.max()) + int(first.max())
        return cls(first.astype(np.int64), low, high)


class SharedGroup:
    """The patterns of a group in one batch, and how often each was used.

    Args:
        accesses: The group.
        size: Bytes of a block's shared memory.
    """

    def __init__(self, accesses: list[SharedAccess], size: int) -> None:
        self._accesses = accesses
        self._low = -min(access.offset for access in accesses)
        self._high = size - max(access.offset + access.size for access in accesses)
        #: How often each block's warps used each pattern, by its bytes: shape (blocks, warps).
        self._runs: dict[tuple[bytes, tuple[int, ...]], NDArray[np.int64]] = {}
        self._last: tuple[Lanes, Mask, NDArray[np.int64]] | None = None

    def count(self, address: Lanes, mask: Mask) -> bool:
        """Count an access of all members; False if this one is to be examined lane by lane."""
        if self._last is None or self._last[0] is not address or self._last[1] is not mask:
            rows = _Rows.of(address, mask)
            if rows is None or rows.low < self._low or rows.high > self._high:
                return False
            key = rows.distances.tobytes(), rows.distances.shape
            if key not in self._runs:
                if any(((rows.distances + a.offset) & (a.size - 1)).any() for a in self._accesses):
                    return False
                self._runs[key] = np.zeros((mask.blocks, mask.warps), dtype=np.int64)
            self._last = address, mask, self._runs[key]
        self._last[2].__iadd__(mask.active_warps[..., 0])
        return True

    def settle(self, tally: Tally) -> None:
        """Add to a tally what was counted."""
        for (content, shape), runs in self._runs.items():
            distances = np.frombuffer(content, dtype=np.int64).reshape(shape)
            address = np.broadcast_to(distances, (shape[0], WARP))
            everybody = np.ones(address.shape, dtype=np.bool_)
            for access in self._accesses:
                place = address + access.offset
                place = place - (int(place.min()) & -_PERIOD)
                total, ideal = wavefronts(place, everybody, access.size, load=access.load)
                tally.add(access.site, Event.REQUESTS, runs.sum(axis=1))
                tally.add(access.site, Event.WAVEFRONTS, (runs * total).sum(axis=1))
                tally.add(access.site, Event.CONFLICTS, (runs * (total - ideal)).sum(axis=1))
        self._runs.clear()
        self._last = None
