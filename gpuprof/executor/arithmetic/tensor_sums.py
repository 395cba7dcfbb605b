# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sums of products as the tensor cores of an H200 make them, bit for bit.

Matrices are arrays with the warps last, so that NumPy's inner loops are long: A is (k, m, warps), B
(k, n, warps), and C and D are (m, n, warps).

Floating point, but for f64: all products of one instruction and the addend make *one* sum. Products are exact
and not normalised; every term is cut off, towards zero, two bits below the last fraction bit of a float32
that has the largest exponent among them. What remains is added exactly and rounded once, towards zero to f32
and to nearest to f16. A zero has no sign. This was fitted to 24,576 products of random matrices of each type
and held against the card's answers, which tests/executor/hardware has.

f64 is a chain of fused multiply-adds in the order of k. Integers are exact and wrap, or saturate.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.exact import in_mode
from gpuprof.executor.arithmetic.floats import multiply_add
from gpuprof.executor.arithmetic.formats import LOWEST_EXPONENT, NOT_FINITE, FloatFormat, exponents
from gpuprof.executor.arithmetic.nans import canonical, with_nans
from gpuprof.executor.lanes.scalars import Lanes

#: Fraction bits that a term keeps, counted from the largest exponent, and those of a sum.
_KEPT_BITS, _F32_BITS = 25, 23
#: Both, of 8-bit floats that are not unpacked.
_EIGHT_BIT_FRACTION = 13
_F16_LOWEST = -14


def float_sum(
    a: Lanes,
    b: Lanes,
    c: Lanes,
    a_format: FloatFormat,
    b_format: FloatFormat,
    kept_bits: int = _KEPT_BITS,
    fraction_bits: int = _F32_BITS,
) -> Lanes:
    """Return A B + C of one tensor-core instruction.

    A, (k, m, warps), and B, (k, n, warps), are unsigned bits; C and D are float32 or float16.
    """
    with np.errstate(all="ignore"):
        x, y, addend = a_format.values(a), b_format.values(b), c.astype(np.float32)
        lowest = _F16_LOWEST if c.dtype == np.float16 else LOWEST_EXPONENT
        limits = a_format.lowest_exponent, b_format.lowest_exponent, lowest
        of_terms = [exponents(*one) for one in zip((x, y, addend), limits, strict=True)]
        total = _aligned_sum((x, y, addend), of_terms, kept_bits)
        result = _rounded(total, c.dtype, fraction_bits)
        if any((exponent == NOT_FINITE).any() for exponent in of_terms):
            _replace_not_finite(result, x, y, addend)
    return result


def _aligned_sum(
    operands: Sequence[Lanes], exponents_of: Sequence[Lanes], kept_bits: int
) -> NDArray[np.float64]:
    """Return the exact sum of all terms, each cut off so many bits below the largest exponent.

    16 products below 4 x 2^25, or 32 below 4 x 2^13: less than 2^31, as no significand is as large as 2.
    """
    from gpuprof.executor.arithmetic import native  # LLVM is loaded when a kernel computes

    assert all(each.shape[2] == operands[2].shape[2] for each in operands)
    taken = [np.ascontiguousarray(each) for pair in zip(operands, exponents_of, strict=True) for each in pair]
    total = np.empty(operands[2].shape)
    depth = len(operands[0])
    native.aligned_sum(depth)(*(each.ctypes.data for each in (*taken, total)), *total.shape, kept_bits)
    return total


def _rounded(value: Lanes, dtype: np.dtype[np.floating], fraction_bits: int) -> Lanes:
    """Round float64 to f32 towards zero, overflow to infinity included, or to f16 to nearest."""
    if dtype == np.float16:
        return np.asarray(value.astype(np.float16) + np.float16(0))  # + 0: a zero is positive
    cut = (value.view(np.int64) & ~np.int64((1 << 52 - fraction_bits) - 1)).view(np.float64)
    small = np.abs(value) < 2.0**LOWEST_EXPONENT
    if small.any():
        cut[small] = np.trunc(value[small] * 2.0**149) * 2.0**-149
    return np.asarray(cut.astype(np.float32) + np.float32(0))


def _replace_not_finite(result: Lanes, x: Lanes, y: Lanes, addend: Lanes) -> None:
    """Put infinities and NaN where IEEE arithmetic gives them; float64 overflows for no finite operands."""
    warps = ~(np.isfinite(x).all((0, 1)) & np.isfinite(y).all((0, 1)) & np.isfinite(addend).all((0, 1)))
    x, y = x[..., warps].astype(np.float64), y[..., warps].astype(np.float64)
    total = addend[..., warps].astype(np.float64)
    for i in range(len(x)):
        total = total + x[i, :, None] * y[i, None]
    result[..., warps] = np.where(
        np.isfinite(total), result[..., warps], canonical(total.astype(result.dtype))
    )


#: A B + C of 8-bit floats by `wgmma`: terms and the sum keep 13 bits of fraction.
warpgroup_eight_bit_sum = partial(float_sum, kept_bits=_EIGHT_BIT_FRACTION, fraction_bits=_EIGHT_BIT_FRACTION)


def eight_bit_sum(a: Lanes, b: Lanes, c: Lanes, a_format: FloatFormat, b_format: FloatFormat) -> Lanes:
    """Return A B + C of 8-bit floats as sm_90 computes `mma.sync` of them: unpacked to f16, in two steps.

    The first multiplies the lower two of each four elements in a row, the second adds the others to that. C
    is added at the end, by an ordinary addition.
    """
    place = np.arange(len(a)) % 4
    total = np.zeros_like(c)
    for step in (place < 2, place >= 2):
        total = float_sum(a[step], b[step], total, a_format, b_format)
    with np.errstate(all="ignore"):
        return canonical(np.asarray(total + c))


def double_sum(a: Lanes, b: Lanes, c: Lanes, *, rounding: str) -> Lanes:
    """Return A B + C of float64: one fused multiply-add after the other; a NaN is that of B, C or A."""
    total, fused = c, with_nans(in_mode(multiply_add("f64"), rounding), "fma", "f64")
    with np.errstate(all="ignore"):
        for i in range(len(a)):
            total = np.asarray(fused(a[i, :, None], b[i, None], total))
    return total


def bit_sum(a: Lanes, b: Lanes, c: Lanes, *, exclusive: bool) -> Lanes:
    """Return C plus how often bits of A and B are both one or, with `exclusive`, one of them: in int32."""
    both = integer_sum(a, b, np.zeros_like(c), saturates=False)
    if exclusive:
        ones = [x.sum(axis=0, dtype=np.int32) for x in (a, b)]
        both = ones[0][:, None] + ones[1][None] - 2 * both
    return np.asarray(both + c)


def integer_sum(a: Lanes, b: Lanes, c: Lanes, *, saturates: bool) -> Lanes:
    """Return A B + C of 8-bit integers, signed or not as their dtype is, in int32."""
    a, b = a.astype(np.int32), b.astype(np.int32)
    products = np.zeros(c.shape, dtype=np.int32)
    for i in range(len(a)):
        products += a[i, :, None] * b[i, None]
    if not saturates:
        return np.asarray(products + c)
    limits = np.iinfo(np.int32)
    return np.clip(products.astype(np.int64) + c, limits.min, limits.max).astype(np.int32)
