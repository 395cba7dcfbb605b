# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What `cp.async` costs: sectors and wavefronts follow from where each piece comes from and goes.

Copies through the L1 cache, of 4, 8 or 16 bytes, are served in groups of as many lanes as fill a line of 128
bytes. They are read in turns: in each the lowest lanes left that come from different places in a line,
whatever line that is. What a turn has read is written at once, but for lanes that go to a place that a lower
lane of the turn goes to; these are left over, need not be read again, and are written in the end, as many at
once as go to different places. Every turn of reading takes a wavefront, and so does every turn of writing in
the end. Zeros need no place to come from.

Copies of 16 bytes past the L1 cache land otherwise. The data of a sector is passed on to shared memory as a
sector, its halves in order or exchanged. A sector of global memory is therefore counted once for each sector
of shared memory that it goes to, and again where its halves go there both ways. A wavefront fills parts of
one line of shared memory from one line of global memory: with whole sectors, or lower halves, or upper ones,
all in order or all exchanged; it takes each sector once, and turns the places of all in the line by the same
number, or mirrors them.

Where some lane reads less than its 16 bytes, the zeros take wavefronts of their own: as many as the same copy
through the L1 cache would take. An H200 counted exactly so for kernels of one copy, and for tiles that are
copied in rows, padded rows, and with many lanes at one source; from scattered sources up to 0.5 % otherwise.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from msgspec import Struct

from gpuprof.executor.lanes.masks import WARP, Bools, Counts, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.coalescing import SECTOR_BYTES
from gpuprof.executor.memory.warp_rows import from_multiple, grouped

#: The only size that goes past the L1 cache.
COPY_BYTES = 16
LINE_BYTES = 128
_SECTORS_OF_LINE = LINE_BYTES // SECTOR_BYTES
#: What a lane does: takes part, reads, and reads all that it writes.
_TAKES, _READS, _WHOLE = 1, 2, 4

#: Warps of which it is remembered what they cost.
_REMEMBERED_WARPS = 1 << 14
#: From the size of a piece, and source, target and what each lane does, to two costs.
_Cost = Callable[[int, list[int], list[int], list[int]], tuple[int, int]]


class Pieces(Struct, frozen=True):
    """What the lanes of a batch copy, from and to addresses of shape (blocks or 1, warps or 1, 32 or 1).

    Those that take part read, or write zeros; some read the `whole` of what they write.
    """

    source: Lanes
    target: Lanes
    mask: Mask
    reading: Bools
    whole: Bools

    def costs(self, cost: _Cost, size: int = COPY_BYTES) -> tuple[Counts, Counts]:
        """Sum two costs of each warp over the warps of each block: shape (blocks or 1,)."""
        parts = (self.source, self.target, self.mask.lanes, self.reading, self.whole)
        shape = (*np.broadcast_shapes(*(part.shape[:2] for part in parts)), WARP)
        origin, place, taking, existing, whole = (
            np.broadcast_to(part, shape).reshape(-1, WARP) for part in parts
        )
        existing = existing & taking
        what = _TAKES * taking + _READS * existing + _WHOLE * (whole & existing)
        origin, place = from_multiple(origin, existing, LINE_BYTES), from_multiple(place, taking, LINE_BYTES)
        rows = np.concatenate([origin, place, what], axis=1)
        which, distinct = grouped(rows)
        costs = np.array([_remembered(cost, size, row.tobytes()) for row in rows[distinct]])[which]
        first, second = (self.mask.per_block(costs[:, i].reshape(*shape[:2], 1)) for i in (0, 1))
        return first, second


def from_line(address: Lanes) -> Lanes:
    """Count addresses from the line of the first: copies moved by whole lines cost the same."""
    return np.asarray(address - (address.flat[0] & -LINE_BYTES))


def landing_cost(pieces: Pieces) -> tuple[Counts, Counts]:
    """Count the sectors and the wavefronts of a copy of 16 bytes past the L1 cache, in each block."""
    return pieces.costs(_landing)


def cached_copy_cost(pieces: Pieces, size: int) -> tuple[Counts, Counts]:
    """Count the wavefronts of a copy through the L1 cache, and those that conflicts cost, in each block."""
    return pieces.costs(_served, size)


def zeros_conflicts(pieces: Pieces) -> Counts:
    """Count the wavefronts that conflicts cost a copy of 16 bytes past the L1 cache, in each block.

    Only zeros have any: data lands as it comes.
    """
    return pieces.costs(_served_zeros)[1]


@lru_cache(maxsize=_REMEMBERED_WARPS)
def _remembered(cost: _Cost, size: int, lanes: bytes) -> tuple[int, int]:
    source, target, what = np.frombuffer(lanes, dtype=np.int64).reshape(3, WARP).tolist()
    return cost(size, source, target, what)


def _landing(size: int, source: list[int], target: list[int], what: list[int]) -> tuple[int, int]:
    """Return the sectors and wavefronts of a copy past the L1 cache."""
    halves: dict[tuple[int, int, bool], set[int]] = {}
    for origin, place, does in zip(source, target, what, strict=True):
        if does & _READS:
            exchanged = (origin - place) // COPY_BYTES % 2 == 1
            passed = (origin // SECTOR_BYTES, place // SECTOR_BYTES, exchanged)
            halves.setdefault(passed, set()).add(origin // COPY_BYTES % 2)
    # Sectors that could share a wavefront, as places in the lines that they come from and go to: one that
    # goes to several places is passed on with others that come so often.
    together: dict[tuple[object, ...], set[tuple[int, int]]] = {}
    times: Counter[tuple[object, ...]] = Counter()
    for (origin, place, exchanged), parts in halves.items():
        way = (origin // _SECTORS_OF_LINE, place // _SECTORS_OF_LINE, exchanged, *sorted(parts))
        sector = origin % _SECTORS_OF_LINE
        times[sector, *way] += 1
        together.setdefault((times[sector, *way], *way), set()).add((sector, place % _SECTORS_OF_LINE))
    wavefronts = sum(map(_passes, together.values()))
    zeros = any(does and not does & _WHOLE for does in what)
    return len(halves), wavefronts + (_served(size, source, target, what)[0] if zeros else 0)


def _passes(sectors: set[tuple[int, int]]) -> int:
    """Return how often a line is passed on, from places of sectors in it to places: turned, or mirrored."""
    passes = 0
    while sectors:
        ways: dict[tuple[bool, int], set[tuple[int, int]]] = {}
        for origin, place in sectors:
            ways.setdefault((False, (place - origin) % _SECTORS_OF_LINE), set()).add((origin, place))
            ways.setdefault((True, place + origin), set()).add((origin, place))
        sectors = sectors - max(ways.values(), key=len)
        passes += 1
    return passes


def _served_zeros(size: int, source: list[int], target: list[int], what: list[int]) -> tuple[int, int]:
    return _served(size, source, target, [_TAKES if does and not does & _WHOLE else 0 for does in what])


def _served(size: int, source: list[int], target: list[int], what: list[int]) -> tuple[int, int]:
    """Return wavefronts, and those beyond the least that data, and zeros, would take."""
    wavefronts = conflicts = 0
    lanes_of_line = LINE_BYTES // size
    for start in range(0, WARP, lanes_of_line):
        lanes = [i for i in range(start, start + lanes_of_line) if what[i]]
        data = [i for i in lanes if what[i] & _READS]
        zeros = [i for i in lanes if not what[i] & _READS]
        from_one = _most(source[i] for i in data)
        wavefronts += _turns([(source[i] if what[i] & _READS else None, target[i]) for i in lanes])
        conflicts += max(from_one, _most(target[i] for i in data), 1) - 1
        conflicts += max(_most(target[i] for i in zeros), 1) - 1
    return wavefronts, conflicts


def _turns(pieces: list[tuple[int | None, int]]) -> int:
    """Return how many wavefronts a group's pieces take, from their source, if any, and target."""
    reading: Counter[int] = Counter()
    taken: set[tuple[int, int]] = set()
    left: Counter[int] = Counter()
    for source, target in pieces:
        place, turn = target % LINE_BYTES, 0
        if source is not None:
            turn = reading[source % LINE_BYTES]
            reading[source % LINE_BYTES] += 1
        if (turn, place) in taken:
            left[place] += 1
        taken.add((turn, place))
    turns = max(reading.values(), default=min(1, len(pieces)))
    return turns + max(left.values(), default=0)


def _most(addresses: Iterable[int]) -> int:
    """Return how many of the addresses lie at one place of a line, at most; 0 of none."""
    return max(Counter(address % LINE_BYTES for address in addresses).values(), default=0)
