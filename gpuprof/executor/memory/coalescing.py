# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the lanes of each warp fall into 32-byte sectors: what one global memory instruction costs.

Most warps of a batch touch the same pattern of addresses, shifted. Recognising that takes two passes
over the addresses; then one warp is examined for each distinct alignment instead of all of them. Where not
all lanes are active, warps with the same active lanes are looked at together, and only at those lanes.

From one pass of a loop to the next, all addresses of an instruction mostly move by the same distance. What it
costs then follows from where that puts them in their sectors, and is examined once for each such place.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Counts, Mask

SECTOR_BYTES = 32

#: (pattern of the lanes' distances in bytes, offset of the first lane in its sector) -> (sectors, addresses)
PatternMemo = dict[tuple[bytes, int], tuple[int, int]]


class Footprint(NamedTuple):
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
        rows = _Rows.of(address.reshape(-1, WARP), offset, size, memo)
        shape = (*address.shape[:2], 1)
        sectors, distinct = (mask.per_block(count.reshape(shape)) for count in (rows.sectors, rows.distinct))
        return Footprint(sectors, distinct * size, rows.low, rows.high, rows.aligned)
    parts = [_part(address, offset, mask, size, memo, *lane_set) for lane_set in mask.lane_sets]
    return Footprint(
        np.sum([part.sectors for part in parts], axis=0),
        np.sum([part.useful_bytes for part in parts], axis=0),
        min(part.low for part in parts),
        max(part.high for part in parts),
        all(part.aligned for part in parts),
    )


class MovingFootprint:
    """The footprints of one instruction in one batch, each found from one that was examined before."""

    def __init__(self) -> None:
        self._first: NDArray[np.int64] | None = None
        self._mask: Mask
        #: Footprints of the first addresses moved by so many bytes, by the remainder of these in a sector.
        self._known: dict[int, tuple[int, Footprint]] = {}

    def at(
        self, address: NDArray[np.int64], offset: int, mask: Mask, size: int, memo: PatternMemo
    ) -> Footprint:
        """Return what `footprint` does; offset and size must always be the same."""
        moved = self._distance(address, mask)
        if moved is None:
            self._first, self._mask, self._known, moved = address, mask, {}, 0
        known = self._known.get(moved % SECTOR_BYTES)
        if known is None:
            found = footprint(address, offset, mask, size, memo)
            self._known[moved % SECTOR_BYTES] = moved, found
            return found
        before, found = known
        sectors, useful_bytes, low, high, aligned = found
        return Footprint(sectors, useful_bytes, low + moved - before, high + moved - before, aligned)

    def _distance(self, address: NDArray[np.int64], mask: Mask) -> int | None:
        """Return by how much all addresses moved from the first ones; None where they did not all alike."""
        if self._first is None or not mask.equals(self._mask):
            return None
        return moved_by(address, self._first)


def moved_by(address: NDArray[np.int64], before: NDArray[np.int64]) -> int | None:
    """Return by how much all addresses of a batch moved; None where they did not all alike."""
    if address.shape != before.shape:
        return None
    moved = address[:1, :1, :1] - before[:1, :1, :1]
    return int(moved[0, 0, 0]) if (before + moved == address).all() else None


def atomic_sectors(address: NDArray[np.int64], offset: int, mask: Mask) -> Counts:
    """Count the sectors that atomics pass to the L2 cache, summed over the warps of each block.

    Lanes of a warp that change one address do so in turn; each turn passes a sector once, whatever lanes of
    other addresses it holds. A sector therefore counts as often as its busiest address has lanes.
    """
    shape = np.broadcast_shapes(address.shape, mask.lanes.shape, (1, 1, WARP))
    active = np.broadcast_to(mask.lanes, shape).reshape(-1, WARP)
    row, lane = np.nonzero(active)
    place = (np.broadcast_to(address, shape).reshape(-1, WARP) + offset)[row, lane]
    order = np.lexsort((place, row))
    row, place = row[order], place[order]
    first = _changes(row, place)
    row, place, lanes = row[first], place[first], np.diff(first, append=len(place))
    first = _changes(row, place // SECTOR_BYTES)
    turns = np.zeros(len(active), dtype=np.int64)
    np.add.at(turns, row[first], np.maximum.reduceat(lanes, first))
    return mask.per_block(turns.reshape(*shape[:2], 1))


def _changes(row: NDArray[np.intp], value: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return where a new row or value begins, of pairs in order."""
    new = np.ones(len(row), dtype=np.bool_)
    new[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    return np.flatnonzero(new)


def _uniform(address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
    """All lanes of a warp share one address: one sector and `size` bytes for each active warp."""
    used = address if mask.whole else address[mask.narrowed_to(address.shape)]
    count = mask.warp_count
    aligned = not ((used + offset) & (size - 1)).any()
    return Footprint(count, count * size, int(used.min()) + offset, int(used.max()) + offset + size, aligned)


def _part(
    address: NDArray[np.int64],
    offset: int,
    mask: Mask,
    size: int,
    memo: PatternMemo,
    lanes: NDArray[np.intp],
    warps: Bools,
) -> Footprint:
    """Examine the warps that are true in `warps`, in all of which the same `lanes` are active."""
    used = warps
    for axis in (0, 1):
        if address.shape[axis] == 1 and used.shape[axis] > 1:
            used = np.asarray(used.any(axis=axis, keepdims=True))
    used = np.broadcast_to(used, (*address.shape[:2], 1))[..., 0]
    rows = _Rows.of(address[used][:, lanes], offset, size, memo)
    totals = []
    for count in (rows.sectors, rows.distinct):
        table = np.zeros((*address.shape[:2], 1), dtype=np.int64)
        table[used, 0] = count
        totals.append(mask.per_block(table * warps))
    return Footprint(totals[0], totals[1] * size, rows.low, rows.high, rows.aligned)


@dataclass(frozen=True)
class _Rows:
    """What each of many warps touches with the same active lanes: one row of addresses for each warp."""

    sectors: Counts
    distinct: Counts
    low: int
    high: int
    aligned: bool

    @classmethod
    def of(cls, address: NDArray[np.int64], offset: int, size: int, memo: PatternMemo) -> "_Rows":
        """Examine rows of shape (warps, active lanes)."""
        first = address[:, :1]
        distance = address - first
        base, pattern = first[:, 0] + offset, distance[0]
        if not (distance == pattern).all():
            return cls._of_different_patterns(address + offset, size)
        alignments, which = np.unique(base % SECTOR_BYTES, return_inverse=True)
        each = np.array([_examined(pattern, int(alignment), memo) for alignment in alignments])
        low, high = int(base.min()) + int(pattern.min()), int(base.max()) + int(pattern.max()) + size
        aligned = not (((alignments | pattern[:, None]) & (size - 1)).any())
        return cls(each[which, 0], each[which, 1], low, high, aligned)

    @classmethod
    def _of_different_patterns(cls, address: NDArray[np.int64], size: int) -> "_Rows":
        ordered = np.sort(address, axis=1)
        low, high = int(ordered[:, 0].min()), int(ordered[:, -1].max()) + size
        aligned = not (ordered & (size - 1)).any()
        return cls(_steps(ordered // SECTOR_BYTES), _steps(ordered), low, high, aligned)


def _examined(pattern: NDArray[np.int64], alignment: int, memo: PatternMemo) -> tuple[int, int]:
    key = (pattern.tobytes(), alignment)
    if key not in memo:
        memo[key] = (np.unique((pattern + alignment) // SECTOR_BYTES).size, np.unique(pattern).size)
    return memo[key]


def _steps(ordered: NDArray[np.int64]) -> Counts:
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) + 1, dtype=np.int64)
