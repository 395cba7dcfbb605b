# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the lanes of each warp fall into 32-byte sectors: what one global memory instruction costs.

Where not all lanes are active, warps with the same active lanes are looked at together, and only at those
lanes.

From one iteration of a loop to the next, all addresses of an instruction mostly move by the same distance.
What it costs then follows from where that puts them in their sectors, and is examined once for each place.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Counts, Mask, narrowed
from gpuprof.executor.memory.warp_rows import grouped

SECTOR_BYTES = 32


class Footprint(NamedTuple):
    """The memory that one warp-level instruction touches, in a whole batch.

    Distinct 32-byte `sectors` and distinct bytes are summed over the warps of each block: shape (blocks or
    1,). `high` is the first byte after all; `aligned` whether each address is a multiple of the access size.
    """

    sectors: Counts
    useful_bytes: Counts
    low: int
    high: int
    aligned: bool


class Footprints:
    """What one instruction's accesses in one batch cost, by how far they moved from the first ones."""

    def __init__(self) -> None:
        self._first: tuple[NDArray[np.int64], Mask] | None = None
        self._known: dict[int, tuple[int, Footprint]] = {}

    def of(self, address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
        """Return what `footprint` does; offset and size must always be the same."""
        moved = self._distance(address, mask)
        if moved is None:
            self._first, self._known, moved = (address, mask), {}, 0
        place = moved % SECTOR_BYTES
        if place not in self._known:
            self._known[place] = moved, footprint(address, offset, mask, size)
        before, found = self._known[place]
        by = moved - before
        return found._replace(low=found.low + by, high=found.high + by) if by else found

    def _distance(self, address: NDArray[np.int64], mask: Mask) -> int | None:
        """Return by how far addresses have moved; None where they did not all alike."""
        if self._first is None or not mask.equals(self._first[1]) or address.shape != self._first[0].shape:
            return None
        first = self._first[0]
        by = address[:1, :1, :1] - first[:1, :1, :1]
        return int(by[0, 0, 0]) if (first + by == address).all() else None


def footprint(address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
    """Examine one access of `size` bytes per lane at `address + offset`, by at least one lane.

    Addresses have shape (blocks or 1, warps or 1, 32 or 1).
    """
    if address.shape[2] == 1:
        return _uniform(address, offset, mask, size)
    if mask.whole:
        rows = _Rows.of(address.reshape(-1, WARP), offset, size)
        shape = (*address.shape[:2], 1)
        sectors, distinct = (mask.per_block(count.reshape(shape)) for count in (rows.sectors, rows.distinct))
        return Footprint(sectors, distinct * size, rows.low, rows.high, rows.aligned)
    parts = [_part(address, offset, mask, size, *lane_set) for lane_set in mask.lane_sets]
    return Footprint(
        np.sum([part.sectors for part in parts], axis=0),
        np.sum([part.useful_bytes for part in parts], axis=0),
        min(part.low for part in parts),
        max(part.high for part in parts),
        all(part.aligned for part in parts),
    )


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
    lanes: NDArray[np.intp],
    warps: Bools,
) -> Footprint:
    """Examine the warps that are true in `warps`, in all of which the same `lanes` are active."""
    used = np.broadcast_to(narrowed(warps, address.shape), (*address.shape[:2], 1))[..., 0]
    rows = _Rows.of(address[used][:, lanes], offset, size)
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
    def of(cls, address: NDArray[np.int64], offset: int, size: int) -> "_Rows":
        """Examine rows of shape (warps, active lanes)."""
        first = address[:, :1] + offset
        rows = address + offset - first // SECTOR_BYTES * SECTOR_BYTES
        which, distinct = grouped(rows)
        ordered = np.sort(rows[distinct], axis=1)
        aligned = not (ordered & (size - 1)).any()
        low, high = int(address.min()) + offset, int(address.max()) + offset + size
        return cls(_steps(ordered // SECTOR_BYTES)[which], _steps(ordered)[which], low, high, aligned)


def _steps(ordered: NDArray[np.int64]) -> Counts:
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) + 1, dtype=np.int64)
