# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the copy engine can do with elements that are there already: `cp.reduce.async.bulk`."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import apply_in_turn, atomic_operation
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.bulk_stores import Combination

_HALVES = ("f16", "bf16")
_INTEGERS = ("u32", "s32", "u64", "s64")
_BITS = ("b32", "b64", *_INTEGERS)
#: The types of elements that each operation takes. Those of tensor maps have signs where bits need none.
_TYPES: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f64", *_HALVES),
    "min": (*_INTEGERS, *_HALVES),
    "max": (*_INTEGERS, *_HALVES),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
}


@cache
def combination(name: str, kind: str) -> Combination | None:
    """Return an operation on elements of a PTX type, or None where the copy engine has no such one."""
    operation = atomic_operation(name, kind) if kind in _TYPES.get(name, ()) else None
    if operation is None:
        return None
    # Unlike an atomic instruction, the engine adds float32 numbers that are subnormal.
    compute = operation.elsewhere if (name, kind) == ("add", "f32") else operation.in_global

    def apply(content: Lanes, place: NDArray[np.intp], given: Lanes) -> None:
        apply_in_turn(content, place, compute, [given])

    return Combination(operation.dtype, apply)
