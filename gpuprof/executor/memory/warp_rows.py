# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rows of what the lanes of many warps do: most warps of a batch do the same, somewhere else.

What an access costs a warp follows from how its lanes' addresses lie to each other, and in a sector or in the
banks. So rows are counted from where that begins, and each different one is examined once.
"""

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools

#: Odd numbers without a pattern, as many as a row may have columns; sums are taken modulo 2^64.
_WEIGHTS = np.random.default_rng(0).integers(-(2**62), 2**62, 16 * WARP) * 2 + 1
#: Stands for a lane that takes no part.
NOBODY = -1


def grouped(rows: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of each row's group of equal rows, and a row of each group."""
    if not np.count_nonzero(rows != rows[:1]):
        return np.zeros(len(rows), dtype=np.intp), np.zeros(min(1, len(rows)), dtype=np.intp)
    # Equal rows have equal sums; should unequal ones too, which is yet to be seen, the rows are sorted.
    sums = rows @ _WEIGHTS[: rows.shape[1]]
    order = sums.argsort(kind="stable")
    begins = changes(sums[order])
    distinct, which = order[begins], np.empty(len(rows), dtype=np.intp)
    which[order] = begins.cumsum() - 1
    if np.count_nonzero(rows != rows[distinct[which]]):
        _, distinct, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return which.reshape(-1), distinct


def changes(ordered: NDArray[np.int64]) -> Bools:
    """Tell of each number whether it is another than the one before it."""
    found = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=found[1:])
    return found


def from_multiple(address: NDArray[np.int64], active: Bools, unit: int) -> NDArray[np.int64]:
    """Count addresses from a multiple of `unit` before each warp's lowest: shape (warps, lanes)."""
    lowest = address.min(axis=1, keepdims=True, where=active, initial=np.iinfo(address.dtype).max)
    return np.where(active, address - lowest // unit * unit, NOBODY)
