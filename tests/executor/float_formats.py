# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Binary floating-point formats by their definition: what a bit pattern is worth, and rounding to one."""

import math
import struct
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: its bits, those of its fraction, and the type of its register."""

    bits: int
    fraction_bits: int
    register: str

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.fraction_bits - 2)) - 1

    def decode(self, word: int) -> float:
        """The value of a bit pattern, as a float, which holds those of all formats."""
        if self.bits == 64:
            return struct.unpack("<d", struct.pack("<Q", word))[0]
        sign = -1.0 if word >> (self.bits - 1) else 1.0
        exponent = word >> self.fraction_bits & (2 * self.bias + 1)
        fraction = word & ((1 << self.fraction_bits) - 1)
        if exponent == 2 * self.bias + 1:
            return math.nan if fraction else sign * math.inf
        if exponent:
            fraction |= 1 << self.fraction_bits
        return sign * math.ldexp(fraction, max(exponent, 1) - self.bias - self.fraction_bits)

    def rounded(self, value: Fraction, mode: str) -> float:
        """A value rounded once: to nearest, ties to even, or in a direction."""
        size = abs(value)
        exponent = max(floor_log2(size), 1 - self.bias) if size else 0
        step = Fraction(2) ** (exponent - self.fraction_bits)
        below = size // step
        rest = size / step - below
        outward = {"rz": False, "rm": value < 0, "rp": value > 0}.get(mode)
        if outward is None:
            outward = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
        size = (below + (1 if rest and outward else 0)) * step
        largest = Fraction(2) ** self.bias * (2 - Fraction(1, 1 << self.fraction_bits))
        if size > largest:
            return math.copysign(math.inf if mode == "rn" or outward else float(largest), value)
        return math.copysign(float(size), value)


def floor_log2(value: Fraction) -> int:
    """The exponent of the largest power of two that a positive value reaches."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= Fraction(2) ** guess else guess - 1


FLOATS = {
    "f16": Format(16, 10, "b16"),
    "bf16": Format(16, 7, "b16"),
    "f32": Format(32, 23, "u32"),
    "f64": Format(64, 52, "u64"),
}


def same(form: Format, word: int, expected: float) -> bool:
    """Whether a bit pattern is a value, with its sign; any NaN will do."""
    got = form.decode(word)
    if math.isnan(got) or math.isnan(expected):
        return math.isnan(got) and math.isnan(expected)
    return got == expected and math.copysign(1, got) == math.copysign(1, expected)
