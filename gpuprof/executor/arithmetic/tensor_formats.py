# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The element types that tensor cores multiply: the number that each pattern of bits is, and its exponent.

A tensor core aligns products by the sum of their factors' exponents. A subnormal factor counts with the
exponent of its type's smallest normal number: it is not normalised first.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.small_formats import BYTES, from_bf16
from gpuprof.executor.lanes.scalars import Lanes

#: Exponent of zero: no sum takes it for the largest.
OF_ZERO = -4096
#: Exponent of an infinity or NaN.
NOT_FINITE = 128
_F32_BIAS = 127
_F32_FRACTION_BITS = 23
_F32_EXPONENT = 0xFF
#: Bits of a tf32 operand that no tensor core looks at.
_IGNORED_BY_TF32 = np.uint32(0x1FFF)


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point element type.

    Attributes:
        name: As PTX writes it.
        item_bytes: Bytes of an element in a register.
        lowest_exponent: Exponent of its smallest normal number as the tensor core holds it.
    """

    name: str
    item_bytes: int
    lowest_exponent: int

    def values(self, bits: Lanes) -> NDArray[np.float32]:
        """Return the numbers that unsigned elements of `item_bytes` stand for; float32 holds each exactly."""
        return np.asarray(_DECODERS[self.name](bits), dtype=np.float32)

    def exponents(self, values: NDArray[np.float32]) -> NDArray[np.int16]:
        """Return the exponents by which products are aligned."""
        return exponents(values, self.lowest_exponent)


def exponents(values: NDArray[np.float32], lowest: int) -> NDArray[np.int16]:
    """Return the exponent of each number, at least `lowest`; of zeros `OF_ZERO`."""
    biased = values.view(np.uint32) >> np.uint32(_F32_FRACTION_BITS) & np.uint32(_F32_EXPONENT)
    found = np.maximum(biased.astype(np.int16) - np.int16(_F32_BIAS), np.int16(lowest))
    return np.where(values == 0, np.int16(OF_ZERO), found)


def _tf32(bits: Lanes) -> NDArray[np.float32]:
    return (bits & ~_IGNORED_BY_TF32).view(np.float32)


_DECODERS: dict[str, Callable[[Lanes], Lanes]] = {
    "f16": lambda bits: bits.view(np.float16),
    "bf16": from_bf16,
    "tf32": _tf32,
    "e4m3": lambda bits: BYTES["e4m3x2"].as_f16[bits].view(np.float16),
    "e5m2": lambda bits: BYTES["e5m2x2"].as_f16[bits].view(np.float16),
}
#: By name. Eight-bit floats are unpacked to f16 before they are multiplied, whose range theirs lies in.
FORMATS = {
    "f16": FloatFormat("f16", 2, -14),
    "bf16": FloatFormat("bf16", 2, -126),
    "tf32": FloatFormat("tf32", 4, -126),
    "e4m3": FloatFormat("e4m3", 1, -14),
    "e5m2": FloatFormat("e5m2", 1, -14),
}
