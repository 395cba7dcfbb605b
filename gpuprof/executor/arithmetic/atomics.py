# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Atomic operations: what each combines, and how lanes that share an address take turns."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.mnemonic import Compute
from gpuprof.executor.lanes.scalars import Lanes

#: Operation to the function from (old value, operands …) to the new value.
ATOMICS: dict[str, Compute] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1).astype(old.dtype),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype),
}


def apply_in_turn(
    content: Lanes, index: NDArray[np.intp], combine: Compute, operands: list[NDArray[Any]]
) -> NDArray[Any]:
    """Apply an atomic operation of many lanes to `content`, in place; lanes of one address go in lane order.

    Args:
        content: One-dimensional memory, in the operation's dtype.
        index: The element that each lane updates, shape (lanes,).
        combine: The operation.
        operands: Its operands beside the old value, each of shape (lanes,).

    Returns:
        What each lane found, shape (lanes,).
    """
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    start = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    turn = np.empty(len(ordered), dtype=np.intp)
    turn[order] = np.arange(len(ordered)) - start
    found = np.empty(len(index), dtype=content.dtype)
    by_turn = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn, minlength=1))
    begin = 0
    for end in ends:
        lanes = by_turn[begin:end]  # at most one lane of each address
        old = content[index[lanes]]
        content[index[lanes]] = combine(old, *(operand[lanes] for operand in operands))
        found[lanes] = old
        begin = int(end)
    return found
