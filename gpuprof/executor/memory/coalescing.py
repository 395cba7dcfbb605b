# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the lanes of each warp fall into 32-byte sectors: what one global memory instruction costs.

From one turn of a loop to the next, and from one instruction to its neighbour, all addresses mostly move by
the same distance. What that costs follows from where it puts them in their sectors, and is examined once for
each place.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Counts, Mask
from gpuprof.executor.lanes.tally import Costs
from gpuprof.executor.memory.warp_rows import from_multiple, grouped

SECTOR_BYTES = 32
#: Accesses that others are held against: a guess, on which times alone depend.
_MOST_EXAMINED = 16


class Footprint(NamedTuple):
    """The memory that one warp-level instruction touches, in a whole batch.

    Its `costs` are requests, distinct 32-byte sectors and distinct bytes, summed over each block.
    `high` is the first byte after all; `aligned` whether each address is a multiple of the access size.
    """

    costs: Costs
    low: int
    high: int
    aligned: bool


class _Examined(NamedTuple):
    """An access that was examined, and by how far others moved from it what they cost."""

    address: NDArray[np.int64]
    offset: int
    mask: Mask
    known: dict[int, tuple[int, Footprint]]

    def distance(self, address: NDArray[np.int64], mask: Mask) -> int | None:
        """Return by how far the addresses that are used have moved; None where they did not all alike."""
        first = self.address
        if mask is not self.mask or address.shape != first.shape:
            return None
        used = None if mask.whole else mask.narrowed_to(first.shape)
        some = 0 if used is None else int(used.argmax())
        by = int(address.item(some)) - int(first.item(some))
        apart = address - by != first
        return None if np.count_nonzero(apart if used is None else apart & used) else by


class Footprints:
    """What accesses of one size cost in one batch, by how far they moved from the last that were examined."""

    def __init__(self) -> None:
        self._examined: deque[_Examined] = deque(maxlen=_MOST_EXAMINED)

    def of(self, address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
        """Return what `footprint` does; the size must always be the same."""
        for one in self._examined:
            if (by := one.distance(address, mask)) is not None:
                moved = by + offset - one.offset
                break
        else:
            one, moved = _Examined(address, offset, mask, {}), 0
            self._examined.appendleft(one)
        place = moved % SECTOR_BYTES
        if place not in one.known:
            one.known[place] = moved, footprint(address, offset, mask, size)
        before, found = one.known[place]
        by = moved - before
        costs, low, high, aligned = found
        return Footprint(costs, low + by, high + by, aligned) if by else found


def footprint(address: NDArray[np.int64], offset: int, mask: Mask, size: int) -> Footprint:
    """Examine one access of `size` bytes per lane at `address + offset`, by at least one lane.

    Addresses have shape (blocks or 1, warps or 1, 32 or 1).
    """
    used, active = address, mask.active_warps
    if not mask.whole:
        # Idle lanes do as the first active one of their warp, which adds nothing; idle warps as any other.
        lanes, used = np.broadcast_arrays(active if address.shape[2] == 1 else mask.lanes, address)
        first = np.take_along_axis(used, lanes.argmax(axis=2, keepdims=True), axis=2)
        used = np.where(lanes, used, np.where(active, first, used.flat[lanes.argmax()]))
    rows = used.reshape(-1, used.shape[2]) + offset
    low, high = int(rows.min()), int(rows.max()) + size
    rows = rows - rows[:, :1] // SECTOR_BYTES * SECTOR_BYTES
    which, distinct = grouped(rows)
    ordered = np.sort(rows[distinct], axis=1)
    sectors, places = (
        mask.per_block(_steps(each)[which].reshape(*used.shape[:2], 1) * active)
        for each in (ordered // SECTOR_BYTES, ordered)
    )
    costs = {"requests": mask.warp_count, "sectors": sectors, "useful_bytes": places * size}
    return Footprint(costs, low, high, not (ordered & (size - 1)).any())


def _steps(ordered: NDArray[np.int64]) -> Counts:
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) + 1, dtype=np.int64)


def atomic_sectors(address: NDArray[np.int64], offset: int, mask: Mask) -> Counts:
    """Count the sectors that atomics pass to the L2 cache, summed over each block.

    Lanes of a warp that change one address do so in turn; each turn passes a sector once, whatever lanes of
    other addresses it holds. A sector therefore counts as often as its busiest address has lanes.
    """
    shape = np.broadcast_shapes(address.shape, mask.lanes.shape, (1, 1, WARP))
    active = np.broadcast_to(mask.lanes, shape).reshape(-1, WARP)
    each = np.broadcast_to(address + offset, shape).reshape(-1, WARP)
    which, distinct = grouped(from_multiple(each, active, SECTOR_BYTES))
    each, active = each[distinct], active[distinct]
    row, lane = np.nonzero(active)
    place = each[row, lane]
    order = np.lexsort((place, row))
    row, place = row[order], place[order]
    first = _changes(row, place)
    row, place, lanes = row[first], place[first], np.diff(first, append=len(place))
    first = _changes(row, place // SECTOR_BYTES)
    turns = np.zeros(len(active), dtype=np.int64)
    np.add.at(turns, row[first], np.maximum.reduceat(lanes, first))
    return mask.per_block(turns[which].reshape(*shape[:2], 1))


def _changes(row: NDArray[np.intp], value: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return where a new row or value begins, of pairs in order."""
    new = np.ones(len(row), dtype=np.bool_)
    new[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    return np.flatnonzero(new)
