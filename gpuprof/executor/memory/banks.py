# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many wavefronts a warp's shared-memory access takes: the whole bank-conflict rule.

Shared memory has 32 banks of 4 bytes; in one wavefront each bank serves one word, to any number of lanes.
A warp is served in groups of lanes: all 32 at once for up to 4 bytes per lane, half-warps for 8 bytes,
quarter-warps for 16 bytes. For a load, two neighbouring groups (the halves for 8 bytes, two quarters of the
same half for 16) are served as one when the whole warp pairs up on addresses: lane i with lane i xor 1 for
every lane, or lane i with lane i xor 2 for every lane, where an inactive lane pairs with any. Stores never
merge groups. An H200 counted exactly so for 700 patterns of addresses and active lanes.

Unrolled code, and other warps, access the same pattern again and again, some multiple of 128 bytes further
on: what a pattern costs is remembered.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Counts
from gpuprof.executor.memory.warp_rows import NOBODY, from_multiple, grouped

BANKS = 32
WORD_BYTES = 4
#: Addresses so far apart lie in the same bank.
PERIOD = BANKS * WORD_BYTES
#: Sets of patterns that are remembered.
_REMEMBERED_PATTERNS = 512


def wavefronts(address: NDArray[np.int64], active: Bools, size: int, *, load: bool) -> tuple[Counts, Counts]:
    """Count the wavefronts of each warp, and those that it would take without conflicts: shapes (warps,).

    Addresses are byte offsets, of `size` bytes per lane, and like active lanes of shape (warps, 32). Groups
    of lanes merge for loads only.
    """
    rows = from_multiple(address, active, PERIOD)
    which, distinct = grouped(rows)
    total, ideal = _remembered(rows[distinct].tobytes(), size, load)
    return total[which], ideal[which]


@lru_cache(maxsize=_REMEMBERED_PATTERNS)
def _remembered(content: bytes, size: int, load: bool) -> tuple[Counts, Counts]:
    rows = np.frombuffer(content, dtype=np.int64).reshape(-1, WARP)
    return _examined(rows, rows != NOBODY, size, load=load)


def _examined(address: NDArray[np.int64], active: Bools, size: int, *, load: bool) -> tuple[Counts, Counts]:
    if size <= WORD_BYTES:
        return _served([(address, active)], size)
    group = 32 * WORD_BYTES // size
    apart = _served(_split(address, active, group), size)
    if not load:
        return apart
    together = _served(_split(address, active, 2 * group), size)
    merge = _paired(address, active, 1) | _paired(address, active, 2)
    return np.where(merge, together[0], apart[0]), np.where(merge, together[1], apart[1])


def _split(address: NDArray[np.int64], active: Bools, lanes: int) -> list[tuple[NDArray[np.int64], Bools]]:
    """Cut a warp into groups of that many lanes."""
    starts = range(0, address.shape[1], lanes)
    return [(address[:, i : i + lanes], active[:, i : i + lanes]) for i in starts]


def _paired(address: NDArray[np.int64], active: Bools, distance: int) -> Bools:
    partner = np.arange(address.shape[1]) ^ distance
    same = (address == address[:, partner]) | ~active | ~active[:, partner]
    return np.asarray(same.all(axis=1))


def _served(groups: list[tuple[NDArray[np.int64], Bools]], size: int) -> tuple[Counts, Counts]:
    total = np.zeros(len(groups[0][0]), dtype=np.int64)
    ideal = np.zeros_like(total)
    for address, active in groups:
        total += _busiest_bank(address, active, size)
        ideal += active.any(axis=1)
    return total, ideal


def _busiest_bank(address: NDArray[np.int64], active: Bools, size: int) -> Counts:
    """Return the largest number of distinct words that fall into one bank, for each warp."""
    warps = len(address)
    words = address // WORD_BYTES
    parts = [words + i for i in range(max(1, size // WORD_BYTES))]
    words = np.concatenate(parts, axis=1)
    active = np.concatenate([active] * len(parts), axis=1)
    words = np.sort(np.where(active, words, -1), axis=1)
    distinct = words >= 0
    distinct[:, 1:] &= words[:, 1:] != words[:, :-1]
    slot = np.arange(warps)[:, None] * BANKS + words % BANKS
    counts = np.bincount(slot[distinct], minlength=warps * BANKS)
    return np.asarray(counts.reshape(warps, BANKS).max(axis=1), dtype=np.int64)
