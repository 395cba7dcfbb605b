# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Floating-point formats that NumPy has no type for, and those whose elements tensor cores multiply.

A tensor core aligns products by the sum of their factors' exponents. A subnormal factor counts with the
exponent of its type's smallest normal number: it is not normalised first.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.nans import canonical
from gpuprof.executor.lanes.scalars import Lanes

#: The bits of an f32 that a tf32 has not, at which no tensor core looks, and what its own are of its NaN and
#: of infinity.
_TF32_CUT = np.uint32(0x1FFF)
_TF32_NAN = np.uint32(0x7FFFE000)
_INFINITY = np.uint32(0x7F800000)


#: The formats of 16 bits, in which NumPy and `ml_dtypes` compute.
HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def to_tf32(value: Lanes, mode: str, *, finite: bool) -> Lanes:
    """Return float32 rounded to the bits of a tf32, in a word.

    The mode is "rn", "rz", or "rna": ties away from zero. If `finite`, what is too large becomes the largest
    number.
    """
    bits = value.view(np.uint32)
    if mode == "rn":
        added = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    elif mode == "rna":
        added = bits + np.uint32(0x1000)
    else:
        added = bits
    is_number = (bits & _INFINITY) != _INFINITY
    rounded = np.where(is_number, added, bits) & ~_TF32_CUT
    if mode != "rna":  # which knows no NaN: it cuts one off like a number
        rounded = np.where(np.isnan(value), _TF32_NAN, rounded)
    if finite:  # the largest number is one step below infinity, and "rna" takes that step from NaNs too
        too_large = ((rounded & _INFINITY) == _INFINITY) & ((mode == "rna") | ~np.isnan(value))
        rounded = np.where(too_large, rounded - (_TF32_CUT + np.uint32(1)), rounded)
    return rounded


#: The formats of 8 bits or less, two of which travel together: in bytes, those of 4 bits in one byte. Only
#: the first two have a NaN.
SMALL = {
    "e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2x2": np.dtype(ml_dtypes.float8_e5m2),
    "e2m3x2": np.dtype(ml_dtypes.float6_e2m3fn),
    "e3m2x2": np.dtype(ml_dtypes.float6_e3m2fn),
    "e2m1x2": np.dtype(ml_dtypes.float4_e2m1fn),
}
#: A power of two, by which Blackwell's tensor cores scale blocks of small floats.
SCALE = "ue8m0x2"


def to_small(value: Lanes, kind: str) -> Lanes:
    """Return float32 as bits of a small float: rounded to nearest, ties to even, and clamped."""
    dtype = SMALL[kind]
    largest = np.float32(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    made = np.clip(value, -largest, largest).astype(dtype).view(np.uint8)
    of_nan = np.uint8(127) if kind in ("e4m3x2", "e5m2x2") else largest.astype(dtype).view(np.uint8)
    return np.where(np.isnan(value), of_nan, made)


def to_scale(value: Lanes, mode: str, *, finite: bool) -> Lanes:
    """Return the exponents of float32, whatever their signs, rounded "rz" or "rp"; 255 of what has none.

    Nothing is less than 2^-127. If `finite`, infinity becomes 254, the largest.
    """
    size = value.view(np.uint32) & np.uint32(0x7FFFFFFF)
    exponent = size >> np.uint32(_F32_FRACTION_BITS)
    if mode == "rp":
        exponent += (size & np.uint32(0x7FFFFF) != 0) & (size > np.uint32(0x400000)) & (size < _INFINITY)
    if finite:
        exponent = np.where(size <= _INFINITY, np.minimum(exponent, 254), exponent)
    return exponent.astype(np.uint8)


@functools.cache
def small_as(kind: str, half: str) -> Lanes:
    """Return the bits of the f16 or bf16 that each small float or scale is, by its bits."""
    dtype = np.dtype(ml_dtypes.float8_e8m0fnu) if kind == SCALE else SMALL[kind]
    bits = np.arange(16 if kind == "e2m1x2" else 64 if kind in ("e2m3x2", "e3m2x2") else 256, dtype=np.uint8)
    return canonical(bits.view(dtype).astype(HALVES[half])).view(np.uint16)


def to_float64(value: Lanes) -> Lanes:
    """Return f16 as float64, a NaN's payload with it, quiet."""
    wide = value.astype(np.float64)
    nan = np.isnan(wide)
    if not nan.any():
        return wide
    word = value.view(np.uint16).astype(np.uint64)
    bits = (word & np.uint64(0x8000)) << np.uint64(48) | (word & np.uint64(0x3FF)) << np.uint64(42)
    return np.where(nan, (bits | np.uint64(0x7FF8_0000_0000_0000)).view(np.float64), wide)


def to_half(value: Lanes, kind: str, mode: str) -> Lanes:
    """Return float64 rounded once to f16 or bf16, the upper bits of a NaN's payload with it, quiet."""
    half = exact.narrow(value, HALVES[kind], mode)
    nan = np.isnan(half)
    if not nan.any():
        return half
    kept = ml_dtypes.finfo(half.dtype).nmant  # type: ignore[no-untyped-call]
    bits = value.view(np.uint64)
    word = bits >> np.uint64(48) & np.uint64(0x8000) | bits >> np.uint64(52 - kept) & np.uint64(2**kept - 1)
    quiet = np.uint64(0x8000 - 2 ** (kept - 1))
    return np.where(nan, (word | quiet).astype(np.uint16).view(half.dtype), half)


#: Of the smallest normal float32.
LOWEST_EXPONENT = -126
#: Exponent of zero: no sum takes it for the largest.
OF_ZERO = -4096
#: Exponent of an infinity or NaN.
NOT_FINITE = 128
_F32_BIAS = 127
_F32_FRACTION_BITS = 23
_F32_EXPONENT = 0xFF


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point element type.

    Its lowest exponent is that of its smallest normal number as the tensor core holds it.
    """

    decode: Callable[[Lanes], Lanes]
    item_bytes: int
    lowest_exponent: int

    def values(self, bits: Lanes) -> NDArray[np.float32]:
        """Return the numbers that unsigned elements of `item_bytes` stand for; float32 holds each exactly."""
        return np.asarray(self.decode(bits), dtype=np.float32)


def exponents(values: NDArray[np.float32], lowest: int) -> NDArray[np.int16]:
    """Return the exponent of each number, at least `lowest`; of zeros `OF_ZERO`."""
    biased = values.view(np.uint32) >> np.uint32(_F32_FRACTION_BITS) & np.uint32(_F32_EXPONENT)
    found = np.maximum(biased.astype(np.int16) - np.int16(_F32_BIAS), np.int16(lowest))
    return np.where(values == 0, np.int16(OF_ZERO), found)


#: By name. Eight-bit floats are unpacked to f16 before they are multiplied, whose range theirs lies in.
FORMATS = {
    "f16": FloatFormat(lambda bits: bits.view(HALVES["f16"]), 2, -14),
    "bf16": FloatFormat(lambda bits: bits.view(HALVES["bf16"]), 2, -126),
    "tf32": FloatFormat(lambda bits: (bits & ~_TF32_CUT).view(np.float32), 4, -126),
    "e4m3": FloatFormat(lambda bits: small_as("e4m3x2", "f16")[bits].view(np.float16), 1, -14),
    "e5m2": FloatFormat(lambda bits: small_as("e5m2x2", "f16")[bits].view(np.float16), 1, -14),
}
#: The same as `wgmma` multiplies them, which does not unpack them.
AS_THEY_ARE = {**FORMATS, "e4m3": replace(FORMATS["e4m3"], lowest_exponent=-6)}
