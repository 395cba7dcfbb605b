# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Element types: one table of their names, sizes, C types and roundoffs. No NumPy is needed to read it."""

import math
from typing import Any

from msgspec import Struct

from gpuprof.problems.numpy_later import np

#: In declarations, the type of the run: what `--dtype` says.
REAL = "real"
#: And the types that go with it: of what is computed, and of its sums and scalars.
RESULT, SUM = "result", "sum"
#: Words that stand for another type in each run.
OF_RUN = (REAL, RESULT, SUM)


class ElementType(Struct, frozen=True):
    """One element type: integers, or floating-point numbers of a sign, an exponent and a fraction.

    Args:
        numpy: NumPy's name of it, or that of `ml_dtypes`, which adds to NumPy what machine learning brought.
        mapped: The PTX type that tensor maps have for it; of narrow integers none tells the sign.
    """

    name: str
    nbytes: int
    c_type: str
    numpy: str
    mapped: str
    exponent_bits: int = 0
    fraction_bits: int = 0
    header: str = ""

    @property
    def roundoff(self) -> float:
        """Unit roundoff; 0 for integers."""
        return math.ldexp(0.5, -self.fraction_bits) if self.fraction_bits else 0.0

    @property
    def spare_bits(self) -> int:
        """Last bits of its fraction that are 0, of a type that lies in a wider one."""
        return 8 * self.nbytes - 1 - self.exponent_bits - self.fraction_bits if self.fraction_bits else 0

    @property
    def of_ml_dtypes(self) -> bool:
        """Whether NumPy lacks it."""
        return bool(self.fraction_bits) and self.numpy != f"float{8 * self.nbytes}"

    @property
    def is_finite(self) -> bool:
        """Whether it has no infinities, and one NaN of each sign."""
        return self.numpy.endswith("fn")


#: By the names that headers, operations and results use.
ELEMENT_TYPES: dict[str, ElementType] = {
    "f32": ElementType("float32", 4, "float", "float32", "f32", 8, 23),
    "f64": ElementType("float64", 8, "double", "float64", "f64", 11, 52),
    "f16": ElementType("float16", 2, "__half", "float16", "f16", 5, 10, "cuda_fp16.h"),
    "bf16": ElementType("bfloat16", 2, "__nv_bfloat16", "bfloat16", "bf16", 8, 7, "cuda_bf16.h"),
    "tf32": ElementType("tensorfloat32", 4, "float", "float32", "f32", 8, 10),
    "e4m3": ElementType("float8_e4m3", 1, "__nv_fp8_e4m3", "float8_e4m3fn", "u8", 4, 3, "cuda_fp8.h"),
    "e5m2": ElementType("float8_e5m2", 1, "__nv_fp8_e5m2", "float8_e5m2", "u8", 5, 2, "cuda_fp8.h"),
    "i8": ElementType("int8", 1, "signed char", "int8", "u8"),
    "u8": ElementType("uint8", 1, "unsigned char", "uint8", "u8"),
    "i16": ElementType("int16", 2, "short", "int16", "u16"),
    "u16": ElementType("uint16", 2, "unsigned short", "uint16", "u16"),
    "i32": ElementType("int32", 4, "int", "int32", "s32"),
    "u32": ElementType("uint32", 4, "unsigned", "uint32", "u32"),
    "i64": ElementType("int64", 8, "long long", "int64", "s64"),
    "u64": ElementType("uint64", 8, "unsigned long long", "uint64", "u64"),
}


class RunType(Struct, frozen=True):
    """What goes with the type of a run, as the vendor's library has it.

    Args:
        result: Type of what is computed, where an operation says `result`.
        sums: Type of sums and scalars.
        truncation: What tensor cores drop of each term of a sum, relative to the largest one, by truncating
            it; 0 where sums are rounded.
    """

    result: str
    sums: str
    truncation: float = 0.0


#: Those that a whole run can be in. Hopper's tensor cores keep two bits below the last one of an f32 and
#: truncate what they return; of 8-bit floats they keep 13 bits of fraction.
RUN_TYPES: dict[str, RunType] = {
    "f32": RunType("f32", "f32"),
    "f64": RunType("f64", "f64"),
    "f16": RunType("f16", "f32", 2.0**-23),
    "bf16": RunType("bf16", "f32", 2.0**-23),
    "tf32": RunType("f32", "f32", 2.0**-23),
    "e4m3": RunType("bf16", "f32", 2.0**-13),
}


def run_type(name: str) -> str | None:
    """The type of a run that a name stands for, its own or the one that reports print; None for no such."""
    return next((kind for kind in RUN_TYPES if name in (kind, ELEMENT_TYPES[kind].name)), None)


def of_run(declared: str, dtype: str) -> str:
    """The element type that a declaration means in a run of a type."""
    if declared not in OF_RUN:
        return declared
    return {REAL: dtype, RESULT: RUN_TYPES[dtype].result, SUM: RUN_TYPES[dtype].sums}[declared]


def integer_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of a type of integers."""
    bits = 8 * ELEMENT_TYPES[dtype].nbytes
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def is_float(dtype: str) -> bool:
    """Whether a type holds fractions."""
    return bool(ELEMENT_TYPES[dtype].roundoff)


def unwritten_byte(dtype: str) -> int:
    """What fills a kernel's own memory before it: NaNs, or integers that no kernel marks free places with."""
    return 0xFF if is_float(dtype) else 0xB5


def wider(one: str, other: str) -> str:
    """Of two floating-point types the one that rounds less; the first where they are alike."""
    return one if ELEMENT_TYPES[one].roundoff <= ELEMENT_TYPES[other].roundoff else other


def numpy_dtype(dtype: str) -> Any:
    """The NumPy type of an element type."""
    element = ELEMENT_TYPES[dtype]
    if element.of_ml_dtypes:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, element.numpy))
    return np.dtype(element.numpy)


def rounded(values: Any, dtype: str) -> Any:
    """Floating-point numbers rounded to an element type, to nearest even.

    Beyond its range they are infinite, or NaN in a type without infinities.

    Returns:
        An array of that type.
    """
    values, element = np.asarray(values), ELEMENT_TYPES[dtype]
    spare = element.spare_bits
    with np.errstate(over="ignore", invalid="ignore"):
        if (element.of_ml_dtypes or spare) and values.dtype == np.float64:
            # Its conversion goes through float32. Rounded to odd there, a number that was not exact keeps
            # that in its last bit, which the second rounding sees.
            near = values.astype(np.float32)
            inexact = (values != near) & np.isfinite(near) & (near.view(np.uint32) & 1 == 0)
            beyond = np.nextafter(near, np.where(values > near, np.inf, -np.inf).astype(np.float32))
            values = np.where(inexact, beyond, near)
        values = values.astype(numpy_dtype(dtype), copy=False)
    if not spare:
        return values
    bits = values.view(np.uint32)
    half, kept = (1 << spare - 1) - 1 + (bits >> spare & 1), np.uint32(2**32 - 2**spare)
    return np.where(np.isfinite(values), (bits + half & kept).view(values.dtype), values)


def largest(dtype: str) -> float:
    """The largest finite value of an element type."""
    element = ELEMENT_TYPES[dtype]
    if not element.roundoff:
        return float(integer_range(dtype)[1])
    # In a finite type only all ones are no number; otherwise all with the largest exponent.
    exponent = 2 ** (element.exponent_bits - 1) - (not element.is_finite)
    return math.ldexp(2 - element.roundoff * (4 if element.is_finite else 2), exponent)


def smallest(dtype: str) -> float:
    """The smallest positive value of an element type, subnormal ones included."""
    element = ELEMENT_TYPES[dtype]
    exponent = 2 - 2 ** (element.exponent_bits - 1) - element.fraction_bits
    return math.ldexp(1, exponent) if element.roundoff else 1.0
