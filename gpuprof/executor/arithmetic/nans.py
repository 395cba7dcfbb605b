# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bits of NaNs that come out of arithmetic.

Half and single precision know one NaN only, whatever went in. Double precision hands an operand's NaN on,
with its sign and made quiet, and has a NaN of its own for what has no value. Moving a value, loading, storing
and selecting it, keeps the bits.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gpuprof.executor.lanes.scalars import Lanes

#: The NaN of single precision, and that of f16 and bf16, which are packed as words.
CANONICAL = np.uint32(0x7FFFFFFF).view(np.float32)
CANONICAL_HALF = np.uint16(0x7FFF)
#: What double precision gives where no operand is a NaN: infinity minus infinity, the root of -1.
GENERATED = np.uint64(0xFFF8_0000_0000_0000).view(np.float64)
_QUIET = np.uint64(0x0008_0000_0000_0000)

#: Of which operand f64 instructions hand the NaN on: the first of these that is one.
PRIORITY = {
    **dict.fromkeys(("add", "sub", "mul", "min", "max"), (1, 0)),
    "fma": (1, 2, 0),
    "div": (0, 1),
    **dict.fromkeys(("sqrt", "rcp", "neg", "abs"), (0,)),
}


def canonical(value: Lanes) -> Lanes:
    """Return halves or float32 values whose NaNs all have the bits that the GPU gives them."""
    nan = np.isnan(value)
    if not nan.any():
        return value
    one = CANONICAL if value.dtype == np.float32 else CANONICAL_HALF.view(value.dtype)
    return np.where(nan, one, value)


def with_canonical(compute: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """Return a computation on float16 or float32 whose NaNs are canonical."""
    return lambda *operands: canonical(compute(*operands))


def quiet(value: Lanes) -> Lanes:
    """Return float64 values with the bit set that makes a NaN quiet; only of NaNs is this one."""
    return (value.view(np.uint64) | _QUIET).view(np.float64)


def handed_on(value: Lanes, operands: Sequence[Lanes], order: Sequence[int]) -> Lanes:
    """Return float64 results whose NaNs are those of operands.

    `order` has the places of operands, the one whose NaN wins first.
    """
    nan = np.isnan(value)
    if not nan.any():
        return value
    chosen: Lanes = np.where(nan, GENERATED, value)
    for place in reversed(order):
        operand = operands[place]
        chosen = np.where(nan & np.isnan(operand), quiet(operand), chosen)
    return chosen


def with_nans(compute: Callable[..., Lanes], name: str, kind: str) -> Callable[..., Lanes]:
    """Return a computation that gives the NaNs of the instruction `name` on f32 or f64."""
    if kind == "f32":
        return with_canonical(compute)
    order = PRIORITY.get(name, (0,))
    return lambda *operands: handed_on(compute(*operands), operands, order)
