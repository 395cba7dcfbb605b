# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Atomic operations: what each combines, and how lanes that share an address take turns."""

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.arithmetic import halves
from gpuprof.executor.arithmetic.exact import with_flush
from gpuprof.executor.arithmetic.mnemonic import Compute, Mnemonic
from gpuprof.executor.arithmetic.nans import GENERATED, with_canonical, with_nans
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes, differ

#: Operation to the function from (old value, operands …) to the new value.
ATOMICS: dict[str, Compute] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.where(differ(old, expected), old, new),
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1).astype(old.dtype),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype),
}

#: Of many lanes that share an address, few change what stands there.
_SELDOM = {"and", "or", "min", "max", "cas"}

_SIZES_OF_INTEGERS = frozenset({"b16", "b32", "b64", "b128", "u32", "u64", "s32", "s64"})


class AtomicOperation(Struct, frozen=True):
    """What an atomic instruction combines, element by element.

    `in_global` goes from (old value, operands …) to the new value as the units of global memory compute it;
    `elsewhere` as a thread does for shared and local memory. `seldom` is true of those that mostly leave the
    old value: `change_in_turn` applies them.
    """

    dtype: np.dtype[Any]
    in_global: Compute
    elsewhere: Compute
    seldom: bool = False


def atomic_operation(name: str, kind: str) -> AtomicOperation | None:
    """Return an operation on a PTX type, or None where the ISA has no such one."""
    if kind in halves.TYPES:
        if name not in ("add", "min", "max"):
            return None
        compute = halves.lower(Mnemonic(name, (), (kind,)), 2).compute
        return AtomicOperation(np.dtype(f"u{ARITHMETIC[kind].itemsize}"), compute, compute)
    if name not in ATOMICS:
        return None
    dtype = ARITHMETIC[kind]
    if (kind, name) == ("f32", "add"):
        # The units of global memory know no subnormals; those of shared memory do.
        return AtomicOperation(dtype, with_canonical(with_flush(np.add)), with_canonical(np.add))
    if (kind, name) == ("f64", "add"):
        # To shared memory a thread adds with the old value as the second operand, whose NaN wins.
        swapped = with_nans(np.add, "add", kind)
        return AtomicOperation(dtype, _add_in_global, lambda old, value: swapped(value, old))
    if kind not in _SIZES_OF_INTEGERS:
        return None
    return AtomicOperation(dtype, ATOMICS[name], ATOMICS[name], name in _SELDOM)


def _add_in_global(old: Lanes, value: Lanes) -> Lanes:
    """Return float64 sums; a NaN is handed on as it is, the operand's before the old one."""
    total = old + value
    chosen = np.where(np.isnan(total), GENERATED, total)
    return np.where(np.isnan(value), value, np.where(np.isnan(old), old, chosen))


def apply_in_turn(
    content: Lanes, index: NDArray[np.intp], combine: Compute, operands: list[NDArray[Any]]
) -> NDArray[Any]:
    """Apply an atomic operation of many lanes to `content`, in place; lanes of one address go in lane order.

    `index` is the element of one-dimensional `content` that each lane updates; returned is what each lane
    found.
    """
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    if first.all():
        found = content[index]
        content[index] = combine(found, *operands)
        return found
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


def change_in_turn(
    content: Lanes, index: NDArray[np.intp], combine: Compute, operands: list[NDArray[Any]]
) -> NDArray[Any]:
    """Do as `apply_in_turn`, in one step for all lanes of an address up to the next that changes it."""
    order = np.argsort(index, kind="stable")
    place, given = index[order], [operand[order] for operand in operands]
    found = content[place]
    left = np.arange(len(place))
    while left.size:
        here = content[place[left]]
        found[left] = here
        made = combine(here, *(operand[left] for operand in given))
        changing = np.flatnonzero(differ(here, made))
        places, first = np.unique(place[left[changing]], return_index=True)
        changing = changing[first]  # the first of each address
        content[places] = made[changing]
        if not places.size:
            break
        at = np.minimum(np.searchsorted(places, place[left]), places.size - 1)
        left = left[(places[at] == place[left]) & (left > left[changing][at])]
    back = np.empty_like(found)
    back[order] = found
    return back
