# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Correctly rounded floating-point arithmetic, as the hardware does it, on NumPy arrays.

NumPy rounds `+ - * / sqrt` correctly in float32 and float64. What it lacks is here: fused multiply-add,
directed rounding, and flushing of subnormals. The tool is *rounding to odd*: a float64 whose last bit
records that something was cut off can be rounded once more, to a narrower type and in any direction,
as if from the exact value (float64 has more than twice the bits of float32 plus two).
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from gpuprof.executor.lanes.scalars import Lanes

_F32_TINY = np.float32(2.0**-126)  # smallest normal float32


def flush(value: Lanes) -> Lanes:
    """Return float32 `value` with subnormals replaced by zeros of their sign (`.ftz`)."""
    return np.where(np.abs(value) < _F32_TINY, np.copysign(np.float32(0), value), value)


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return (s, e) with s = round(a + b) and s + e = a + b exactly, barring overflow."""
    s = a + b
    shadow = s - a
    return s, (a - (s - shadow)) + (b - shadow)


def to_odd(value: Lanes, error: Lanes) -> Lanes:
    """Return float64 `value + error` rounded to odd, given that `value` is that sum rounded to nearest."""
    bits = value.view(np.int64)
    nudge = (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    away = (error > 0) == (value > 0)  # a larger magnitude is the next larger bit pattern
    return np.where(nudge, bits + np.where(away, 1, -1), bits).view(np.float64)


def narrow(value: Lanes, dtype: np.dtype[np.floating], mode: str) -> Lanes:
    """Round float64 `value` once, to `dtype`, in the PTX rounding `mode` ("rn", "rz", "rm" or "rp")."""
    return directed(rounded := value.astype(dtype), value - rounded.astype(np.float64), mode)


def directed(rounded: Lanes, error: Lanes, mode: str) -> Lanes:
    """Turn a result rounded to nearest into one rounded in the direction of `mode`.

    `error` is anything with the sign of (exact result - rounded); zero or NaN where that is exact.
    """
    if mode == "rn":
        return rounded
    down, up = error < 0, error > 0
    if mode == "rm":
        up = np.zeros_like(up)
    elif mode == "rp":
        down = np.zeros_like(down)
    else:
        down, up = down & (rounded > 0), up & (rounded < 0)
    infinity = rounded.dtype.type(np.inf)
    rounded = np.where(down, np.nextafter(rounded, -infinity), rounded)
    return np.where(up, np.nextafter(rounded, infinity), rounded)


def fma(a: Lanes, b: Lanes, c: Lanes, mode: str = "rn") -> Lanes:
    """Return a * b + c of float32 or float64 rounded once; to nearest `native` does it much faster."""
    if a.dtype == np.float32:
        product, addend = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)  # exact in float64
        result = narrow(_sum_to_odd(product, addend), np.dtype(np.float32), mode)
        return _sign_of_nothing(result, product + addend == 0, product, addend, mode)
    a, b, c = np.broadcast_arrays(a, b, c)
    # The product of finite factors is finite, even where float64 cannot hold it: an infinite addend decides.
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    result = _sign_of_nothing(plain, plain == 0, a * b, c, mode)
    for where in zip(*np.nonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)), strict=True):
        exact = Fraction(float(a[where])) * Fraction(float(b[where])) + Fraction(float(c[where]))
        if exact:
            result[where] = from_fraction(exact, mode)
    return result


def _sign_of_nothing(result: Lanes, nothing: Lanes, a: Lanes, b: Lanes, mode: str) -> Lanes:
    """Give results that are exactly a + b = 0 of opposite signs the sign that `mode` says: - only by "rm"."""
    if mode != "rm" or not nothing.any():
        return result
    return np.where(nothing & (np.signbit(a) != np.signbit(b)), -np.abs(result), result)


def fma16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return float16 a * b + c rounded once: the product is exact in float64 and the sum goes by odd."""
    wide = [x.astype(np.float64) for x in (a, b, c)]
    return _sum_to_odd(wide[0] * wide[1], wide[2]).astype(np.float16)


def _sum_to_odd(a: Lanes, b: Lanes) -> Lanes:
    return to_odd(*two_sum(a, b))


def from_fraction(exact: Fraction, mode: str = "rn") -> float:
    """Round an exact rational to float64 in the given PTX rounding mode."""
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
        largest = math.nextafter(nearest, 0.0)
        inward = mode == "rz" or (mode == "rm" and exact > 0) or (mode == "rp" and exact < 0)
        return largest if inward else nearest
    if mode == "rn" or Fraction(nearest) == exact:
        return nearest
    below = nearest if Fraction(nearest) < exact else math.nextafter(nearest, -math.inf)
    above = nearest if Fraction(nearest) > exact else math.nextafter(nearest, math.inf)
    if mode == "rz":
        return min(below, above, key=abs)
    return below if mode == "rm" else above


def add(a: Lanes, b: Lanes, mode: str) -> Lanes:
    """Return a + b in the type of its operands, rounded in the direction of `mode`."""
    total, error = two_sum(a, b)
    overflowed = np.isinf(total) & np.isfinite(a) & np.isfinite(b)
    error = np.where(overflowed, -total, np.where(np.isfinite(total), error, 0))
    return _sign_of_nothing(directed(total, error, mode), total == 0, a, b, mode)


def multiply(a: Lanes, b: Lanes, mode: str) -> Lanes:
    """Return a * b, float32 or float64, rounded in the direction of `mode`."""
    if a.dtype == np.float32:
        return narrow(np.multiply(a, b, dtype=np.float64), np.dtype(np.float32), mode)
    zero = np.copysign(0.0, a * b)  # of the product's sign, which an exact zero keeps
    return fma(a, b, zero, mode)


def divide(a: Lanes, b: Lanes, mode: str) -> Lanes:
    """Return a / b, float32 or float64, rounded in the direction of `mode`."""
    quotient = a / b
    return directed(quotient, _residual(a, quotient, b) * np.sign(b), mode)


def square_root(a: Lanes, mode: str) -> Lanes:
    """Return the square root, float32 or float64, rounded in the direction of `mode`."""
    root = np.sqrt(a)
    return directed(root, _residual(a, root, root), mode)


def _residual(value: Lanes, x: Lanes, y: Lanes) -> Lanes:
    """Return something with the sign of value - x * y: exact, however small."""
    if value.dtype == np.float32:
        return value.astype(np.float64) - np.multiply(x, y, dtype=np.float64)
    value, x, y = np.broadcast_arrays(value, x, y)
    sign = np.zeros(value.shape)
    for where in zip(*np.nonzero(np.isfinite(value) & np.isfinite(x) & np.isfinite(y)), strict=True):
        exact = Fraction(float(value[where])) - Fraction(float(x[where])) * Fraction(float(y[where]))
        sign[where] = (exact > 0) - (exact < 0)
    overflowed = np.isinf(x) & np.isfinite(value) & np.isfinite(y) & (y != 0)
    return np.where(overflowed, -np.sign(x) * np.sign(y), sign)


def with_flush(compute: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """Return `compute` with subnormal operands and results flushed to zero (`.ftz`)."""

    def flushed(*operands: Lanes) -> Lanes:
        return flush(compute(*(flush(operand) for operand in operands)))

    return flushed
