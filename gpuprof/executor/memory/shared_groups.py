# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a group of accesses to shared memory around one address costs, examined once and counted often.

A loop reads shared memory around an address that it moves on. What a warp's access costs depends on its
lanes' distances from each other and on where they lie in the 128 bytes of all banks: so it is remembered by
these, and in the next turn, the next stage and the next block it is the same again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
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
        #: How often each block's warps used each pattern, by its bytes and shape: shape (blocks, warps).
        self._runs: dict[tuple[bytes, tuple[int, ...]], NDArray[np.int64]] = {}
        #: The pattern that was used last, and the accesses that were last of all.
        self._pattern: NDArray[np.int64] | None = None
        self._last: tuple[Lanes, Mask] | None = None

    def count(self, address: Lanes, mask: Mask) -> bool:
        """Count an access of all members; False if this one is to be examined lane by lane."""
        if self._last is None or self._last[0] is not address or self._last[1] is not mask:
            pattern = self._examined(address, mask)
            if pattern is None:
                return False
            self._pattern, self._last = pattern, (address, mask)
        assert self._pattern is not None
        runs = self._runs[self._pattern.tobytes(), self._pattern.shape]
        runs += mask.active_warps[..., 0]
        return True

    def _examined(self, address: Lanes, mask: Mask) -> NDArray[np.int64] | None:
        """Return the lanes' distances from a multiple of 128 bytes below each warp's first lane.

        Returns:
            Shape (warps or 1, 32 or 1). None if blocks differ in them, warps are not whole, or an address is
            not one that every member of the group may have.
        """
        whole = mask.whole_warps
        if whole is None:
            return None
        active = _narrowed(whole, address.shape)
        start = address[..., :1] & -_PERIOD
        distances = address - start
        pattern = self._pattern
        if pattern is None or not _are(distances, pattern, active):
            first, warps = active.argmax(axis=0)[:, 0], np.arange(distances.shape[1])
            pattern = np.where(active.any(axis=0), distances[first, warps], 0)
            if not _are(distances, pattern, active):
                return None
        begins = start if active.all() else start[np.broadcast_to(active, start.shape)]
        if begins.min() + pattern.min() < self._low or begins.max() + pattern.max() > self._high:
            return None
        pattern = pattern.astype(np.int64)
        if (pattern.tobytes(), pattern.shape) not in self._runs:
            if any(((pattern + access.offset) & (access.size - 1)).any() for access in self._accesses):
                return None
            self._runs[pattern.tobytes(), pattern.shape] = np.zeros((mask.blocks, mask.warps), dtype=np.int64)
        return pattern

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
        self._pattern = self._last = None


def _narrowed(warps: Bools, shape: tuple[int, ...]) -> Bools:
    """Return for each warp of an operand of `shape` whether any that uses it is true in `warps`."""
    for axis in (0, 1):
        if shape[axis] == 1 and warps.shape[axis] > 1:
            warps = np.asarray(warps.any(axis=axis, keepdims=True))
    return np.broadcast_to(warps, (*shape[:2], 1))


def _are(distances: Lanes, pattern: Lanes, active: Bools) -> bool:
    """Tell whether all blocks have one pattern, in the warps that are true in `active`."""
    if distances.shape[1:] != pattern.shape:
        return False
    same = distances == pattern
    return bool(same.all() or (same | ~active).all())
