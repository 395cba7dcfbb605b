# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What `cp.async` of 16 bytes costs: sectors and wavefronts follow from where each piece comes from and goes.

The data of a sector is passed on to shared memory as a sector, its halves in order or exchanged. A sector of
global memory is therefore counted once for each sector of shared memory that it goes to, and again where its
halves go there both ways. A wavefront fills parts of one line of shared memory from one line of global memory
and takes each sector of that once. Lanes whose source size is 0 read nothing; the zeros that they write take
a wavefront for each line. An H200 counted exactly so for tiles that are copied in rows, padded rows, and with
many lanes at one source; where sectors are passed on more than once, up to 0.3 % fewer in long runs.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Counts, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.coalescing import SECTOR_BYTES

#: The only size that the rule is known for.
COPY_BYTES = 16
_LINE_BYTES = 128
#: Odd numbers without a pattern; sums are taken modulo 2^64.
_WEIGHTS = np.random.default_rng(0).integers(-(2**62), 2**62, 3 * WARP) * 2 + 1

#: (sectors, wavefronts) of the lanes of a warp, by their addresses within lines and what they do.
LandingMemo = dict[bytes, tuple[int, int]]


def landing_cost(
    source: Lanes, target: Lanes, mask: Mask, reading: Bools, memo: LandingMemo
) -> tuple[Counts, Counts]:
    """Count the sectors and the wavefronts of one copy of 16 bytes a lane, in each block.

    Args:
        source: Addresses in global memory, shape (blocks or 1, warps or 1, 32 or 1).
        target: Addresses in shared memory, likewise.
        mask: The lanes that take part.
        reading: Which of them read, rather than write zeros; broadcasts to the batch's shape.
        memo: Patterns seen before by this instruction; added to.

    Returns:
        Two arrays of shape (blocks or 1,).
    """
    parts = (source, target, mask.lanes, reading)
    shape = (*np.broadcast_shapes(*(part.shape[:2] for part in parts)), WARP)
    origin, place, taking, existing = (np.broadcast_to(part, shape).reshape(-1, WARP) for part in parts)
    existing = existing & taking
    rows = np.concatenate(
        [_within_lines(origin, existing), _within_lines(place, taking), taking + 2 * existing], axis=1
    )
    which, distinct = _grouped(rows)
    costs = np.array([_remembered(row, memo) for row in rows[distinct]])[which]
    sectors, wavefronts = (mask.per_block(costs[:, i].reshape(*shape[:2], 1)) for i in (0, 1))
    return sectors, wavefronts


def _within_lines(address: NDArray[np.int64], used: Bools) -> NDArray[np.int64]:
    """Count addresses from the line of each warp's first one; unused ones are all alike."""
    first = np.take_along_axis(address, used.argmax(axis=1)[:, None], axis=1)
    return np.where(used, address - first // _LINE_BYTES * _LINE_BYTES, -1).astype(np.int64)


def _grouped(rows: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of each row's group of equal rows, and a row of each group."""
    if (rows == rows[0]).all():
        return np.zeros(len(rows), dtype=np.intp), np.zeros(1, dtype=np.intp)
    # Equal rows have equal sums; should unequal ones too, which is yet to be seen, the rows are sorted.
    _, distinct, which = np.unique(rows @ _WEIGHTS, return_index=True, return_inverse=True)
    if not np.array_equal(rows, rows[distinct[which]]):
        _, distinct, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return which.reshape(-1), distinct


def _remembered(row: NDArray[np.int64], memo: LandingMemo) -> tuple[int, int]:
    key = row.tobytes()
    if key not in memo:
        memo[key] = _cost(*row.reshape(3, WARP).tolist())
    return memo[key]


def _cost(source: list[int], target: list[int], what: list[int]) -> tuple[int, int]:
    passed: set[tuple[int, int, bool]] = set()
    zeroed: set[int] = set()
    for origin, place, role in zip(source, target, what, strict=True):
        if role == 3:
            exchanged = (origin - place) // COPY_BYTES % 2 == 1
            passed.add((origin // SECTOR_BYTES, place // SECTOR_BYTES, exchanged))
        elif role == 1:
            zeroed.add(place // _LINE_BYTES)
    # How often each sector goes to each line; the one that goes most often says how many wavefronts it takes.
    sectors_of_line = _LINE_BYTES // SECTOR_BYTES
    times = Counter((origin, place // sectors_of_line) for origin, place, _ in passed)
    most: dict[tuple[int, int], int] = {}
    for (origin, line), count in times.items():
        lines = (origin // sectors_of_line, line)
        most[lines] = max(most.get(lines, 0), count)
    return len(passed), sum(most.values()) + len(zeroed)
