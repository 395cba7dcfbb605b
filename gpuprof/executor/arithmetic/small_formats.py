# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Floating-point formats that NumPy has no type for: bfloat16, tf32, and the 8-bit e4m3 and e5m2."""

import functools
from dataclasses import dataclass

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.nans import CANONICAL_HALF
from gpuprof.executor.lanes.scalars import Lanes

#: The bits of an f32 that a tf32 has not, and what those that it has are of its NaN and of infinity.
_TF32_CUT = np.uint32(0x1FFF)
_TF32_NAN = np.uint32(0x7FFFE000)
_INFINITY = np.uint32(0x7F800000)


def from_bf16(bits: Lanes) -> Lanes:
    """Return bfloat16 bits as float32: its upper half."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(value: Lanes, mode: str = "rn") -> Lanes:
    """Return float32 or float64 rounded once, in a PTX rounding mode, to bfloat16 bits."""
    wide = value.astype(np.float64)
    # Rounding to odd first lets the second rounding, here on the bit pattern, see what was cut off.
    near = wide.astype(np.float32)
    error = wide - near
    bits = near.view(np.uint32)
    nudge = (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    grow = (error > 0) == (wide > 0)
    bits = np.where(nudge, np.where(grow, bits + np.uint32(1), bits - np.uint32(1)), bits)
    carry = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + carry) >> np.uint32(16)).astype(np.uint16)
    if mode != "rn":
        rounded = _directed_bf16(rounded, wide, mode)
    return np.where(np.isnan(wide), CANONICAL_HALF, rounded)


def to_bf16_payload(nan: Lanes) -> Lanes:
    """Return float64 NaNs as bfloat16 bits: sign and upper bits of the payload, quiet."""
    bits = nan.view(np.uint64)
    word = (bits >> np.uint64(48) & np.uint64(0x8000)) | (bits >> np.uint64(45) & np.uint64(0x7F))
    return (word | np.uint64(0x7FC0)).astype(np.uint16)


def _directed_bf16(rounded: Lanes, wide: Lanes, mode: str) -> Lanes:
    """Turn bits rounded to nearest into those rounded in the direction of `mode`."""
    with np.errstate(invalid="ignore"):  # of infinities, which are exact
        error = wide - from_bf16(rounded)
    negative = np.signbit(wide)
    inward, outward = np.where(negative, error > 0, error < 0), np.where(negative, error < 0, error > 0)
    # The next larger magnitude is the next larger bit pattern.
    shrinks = inward & {"rz": True, "rm": ~negative, "rp": negative}[mode]
    grows = outward & {"rz": False, "rm": negative, "rp": ~negative}[mode]
    return np.asarray(rounded + grows - shrinks, dtype=np.uint16)


def to_tf32(value: Lanes, mode: str, *, finite: bool) -> Lanes:
    """Return float32 rounded to the bits of a tf32, in a word.

    Args:
        value: The numbers.
        mode: "rn", "rz", or "rna": ties away from zero.
        finite: Whether what is too large becomes the largest number (`.satfinite`).
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


@dataclass(frozen=True)
class Byte:
    """An 8-bit floating-point format: sign, exponent, fraction.

    Attributes:
        fraction_bits: Bits of the fraction.
        largest: Its largest number; what is larger is infinite, where there are infinities, or NaN.
        has_infinity: Whether there are infinities.
    """

    fraction_bits: int
    largest: float
    has_infinity: bool

    @property
    def least_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 2 - (1 << 6 - self.fraction_bits)

    def encode(self, value: Lanes) -> Lanes:
        """Return float64 numbers as bytes: rounded to nearest, ties to even, and clamped."""
        with np.errstate(invalid="ignore"):  # of NaN, which is set apart below
            size = np.minimum(np.abs(value), self.largest)
            _, exponent = np.frexp(size)  # of a size from a half to one
            exponent = np.maximum(np.where(size > 0, exponent - 1, -1024), self.least_exponent)
            # A number that rounds up to the next power of two carries into the exponent.
            steps = np.rint(np.ldexp(size, self.fraction_bits - exponent))
            code = (exponent - self.least_exponent) * (1 << self.fraction_bits) + steps
            signed = np.where(np.signbit(value), code + 128, code)
        return np.where(np.isnan(value), 127, signed).astype(np.uint8)

    @functools.cached_property
    def as_f16(self) -> Lanes:
        """The f16 that each byte is, by the byte: shape (256,)."""
        codes = np.arange(256)
        exponent, fraction = codes % 128 >> self.fraction_bits, codes & (1 << self.fraction_bits) - 1
        whole = fraction + (1 << self.fraction_bits) * (exponent > 0)
        size = np.ldexp(
            whole.astype(np.float64), np.maximum(exponent, 1) - 1 + self.least_exponent - self.fraction_bits
        )
        beyond = np.where((fraction == 0) & self.has_infinity, np.inf, np.nan)
        size = np.where(size > self.largest, beyond, size)
        half = np.where(codes < 128, size, -size).astype(np.float16)
        return np.where(np.isnan(size), CANONICAL_HALF, half.view(np.uint16))


#: The formats that travel as two in 16 bits.
BYTES = {"e4m3x2": Byte(3, 448.0, has_infinity=False), "e5m2x2": Byte(2, 57344.0, has_infinity=True)}


def to_float64(value: Lanes) -> Lanes:
    """Return f16 as float64, a NaN's payload with it, quiet."""
    wide = value.astype(np.float64)
    nan = np.isnan(wide)
    if not nan.any():
        return wide
    word = value.view(np.uint16).astype(np.uint64)
    bits = (word & np.uint64(0x8000)) << np.uint64(48) | (word & np.uint64(0x3FF)) << np.uint64(42)
    return np.where(nan, (bits | np.uint64(0x7FF8_0000_0000_0000)).view(np.float64), wide)


def to_float16(value: Lanes, mode: str) -> Lanes:
    """Return float64 rounded once to f16, the upper bits of a NaN's payload with it, quiet."""
    half = exact.narrow(value, np.dtype(np.float16), mode)
    nan = np.isnan(half)
    if not nan.any():
        return half
    bits = value.view(np.uint64)
    word = (bits >> np.uint64(48) & np.uint64(0x8000)) | (bits >> np.uint64(42) & np.uint64(0x3FF))
    return np.where(nan, (word | np.uint64(0x7E00)).astype(np.uint16).view(np.float16), half)
