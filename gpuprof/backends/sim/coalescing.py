# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the lanes of each warp fall into 32-byte sectors: what one global memory instruction costs.

Most warps of a batch touch the same pattern of addresses, shifted. Recognising that takes two passes
over the addresses; then one warp is examined for each distinct alignment instead of all of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.sim.lanes import Counts, Mask

SECTOR_BYTES = 32

#: (pattern of the lanes' distances in bytes, offset of the first lane in its sector) -> (sectors, addresses)
PatternMemo = dict[tuple[bytes, int], tuple[int, int]]


@dataclass(frozen=True)
class Footprint:
    """The memory that one warp-level instruction touches, in a whole batch.

    Attributes:
        sectors: Distinct 32-byte sectors, summed over the warps of each block: shape (blocks or 1,).
        useful_bytes: Distinct bytes, summed likewise.
        low: Lowest address of an active lane.
        high: Highest address of an active lane, plus the access size.
        aligned: Whether every active lane's address is a multiple of the access size.
    """

    sectors: Counts
    useful_bytes: Counts
    low: int
    high: int
    aligned: bool


def footprint(address: NDArray[np.int64], offset: int, mask: Mask, size: int, memo: PatternMemo) -> Footprint:
    """Examine one access of `size` bytes per lane at `address + offset`.

    Args:
        address: Byte addresses of shape (blocks or 1, warps or 1, 32 or 1), without the offset.
        offset: Bytes to add to every address.
        mask: The lanes that take part; at least one.
        size: Bytes per lane: 1, 2, 4, 8 or 16.
        memo: Patterns seen before by this instruction; added to.
    """
    if address.shape[2] == 1:
        return _uniform(address, offset, mask, size)
    if mask.whole:
        base = address[..., :1]
        distance = address - base
        pattern = distance[0, 0]
        if distance.size == 32 or (distance == pattern).all():
            return _shifted(base + offset, pattern, mask, size, memo)
    return _any_pattern(address, offset, mask, size)


def _uniform(address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
    """All lanes of a warp share one address: one sector and `size` bytes for each active warp."""
    used = address if mask.whole else address[mask.narrowed_to(address.shape)]
    count = mask.warp_count
    aligned = not ((used + offset) & (size - 1)).any()
    return Footprint(count, count * size, int(used.min()) + offset, int(used.max()) + offset + size, aligned)


def _shifted(
    base: NDArray[np.int64], pattern: NDArray[np.int64], mask: Mask, size: int, memo: PatternMemo
) -> Footprint:
    """Every warp has the same pattern of distances from its first lane."""
    in_sector = base & (SECTOR_BYTES - 1)
    first = int(in_sector.flat[0])
    if (in_sector == first).all():
        sectors, distinct = _examined(pattern, first, memo)
        total_sectors = mask.warp_count * sectors
    else:
        alignments, which = np.unique(in_sector, return_inverse=True)
        each = [_examined(pattern, int(alignment), memo) for alignment in alignments]
        distinct = each[0][1]
        total_sectors = mask.per_block(np.array([s for s, _ in each])[which].reshape(base.shape))
    aligned = not ((base | pattern) & (size - 1)).any()
    low, high = int(base.min()) + int(pattern.min()), int(base.max()) + int(pattern.max()) + size
    return Footprint(total_sectors, mask.warp_count * distinct * size, low, high, aligned)


def _examined(pattern: NDArray[np.int64], alignment: int, memo: PatternMemo) -> tuple[int, int]:
    key = (pattern.tobytes(), alignment)
    if key not in memo:
        memo[key] = (np.unique((pattern + alignment) // SECTOR_BYTES).size, np.unique(pattern).size)
    return memo[key]


def _any_pattern(address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
    """Sort each warp's addresses and count the steps. An idle lane stands where an active one is."""
    active = mask.lanes
    shape = np.broadcast_shapes(address.shape, active.shape)
    address, active = np.broadcast_to(address, shape), np.broadcast_to(active, shape)
    if not mask.whole:
        leader = np.take_along_axis(address, active.argmax(axis=2)[..., None], axis=2)
        address = np.where(active, address, leader)
    ordered = np.sort(address + offset, axis=2)
    working = mask.active_warps
    sectors = _steps(ordered // SECTOR_BYTES) * working
    useful = _steps(ordered) * working * size
    used = ordered[np.broadcast_to(working, shape)]
    return Footprint(
        mask.per_block(sectors),
        mask.per_block(useful),
        int(used.min()),
        int(used.max()) + size,
        not (used & (size - 1)).any(),
    )


def _steps(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(axis=2, keepdims=True)
    return np.asarray(changes + 1, dtype=np.int64)
