# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Element types: one table of their names, sizes, C types and roundoffs. No NumPy is needed to read it."""

from dataclasses import dataclass
from typing import Any

#: In declarations, the type of the run: what `--dtype` says.
REAL = "real"


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type.

    Args:
        roundoff: Unit roundoff; 0 for integers.
        numpy: NumPy's name of it, or that of `ml_dtypes`, which adds to NumPy what machine learning brought.
    """

    name: str
    nbytes: int
    c_type: str
    roundoff: float
    numpy: str
    header: str = ""


#: By the names that headers, operations and results use.
ELEMENT_TYPES: dict[str, ElementType] = {
    "f32": ElementType("float32", 4, "float", 2.0**-24, "float32"),
    "f64": ElementType("float64", 8, "double", 2.0**-53, "float64"),
    "f16": ElementType("float16", 2, "__half", 2.0**-11, "float16", "cuda_fp16.h"),
    "bf16": ElementType("bfloat16", 2, "__nv_bfloat16", 2.0**-8, "bfloat16", "cuda_bf16.h"),
    "i8": ElementType("int8", 1, "signed char", 0.0, "int8"),
    "u8": ElementType("uint8", 1, "unsigned char", 0.0, "uint8"),
    "i16": ElementType("int16", 2, "short", 0.0, "int16"),
    "u16": ElementType("uint16", 2, "unsigned short", 0.0, "uint16"),
    "i32": ElementType("int32", 4, "int", 0.0, "int32"),
    "u32": ElementType("uint32", 4, "unsigned", 0.0, "uint32"),
    "i64": ElementType("int64", 8, "long long", 0.0, "int64"),
    "u64": ElementType("uint64", 8, "unsigned long long", 0.0, "uint64"),
}
#: Those that a whole run can be in.
RUN_TYPES = ("f32", "f64", "f16", "bf16")
#: Those that NumPy lacks.
_OF_ML_DTYPES = ("bf16",)


def run_type(name: str) -> str | None:
    """The type of a run that a name stands for, its own or the one that reports print; None for no such."""
    return next((kind for kind in RUN_TYPES if name in (kind, ELEMENT_TYPES[kind].name)), None)


def integer_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of a type of integers."""
    bits = 8 * ELEMENT_TYPES[dtype].nbytes
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def is_float(dtype: str) -> bool:
    """Whether a type holds fractions."""
    return bool(ELEMENT_TYPES[dtype].roundoff)


def wider(one: str, other: str) -> str:
    """Of two floating-point types the one that rounds less; the first where they are alike."""
    return one if ELEMENT_TYPES[one].roundoff <= ELEMENT_TYPES[other].roundoff else other


def numpy_dtype(dtype: str) -> Any:
    """The NumPy type of an element type."""
    import numpy as np

    name = ELEMENT_TYPES[dtype].numpy
    if dtype in _OF_ML_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def rounded(values: Any, dtype: str) -> Any:
    """Floating-point numbers rounded to an element type, to nearest even; beyond its range they are infinite.

    Returns:
        An array of that type.
    """
    import numpy as np

    values = np.asarray(values)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype in _OF_ML_DTYPES and values.dtype == np.float64:
            # Its conversion goes through float32. Rounded to odd there, a number that was not exact keeps
            # that in its last bit, which the second rounding sees.
            near = values.astype(np.float32)
            inexact = (values != near) & np.isfinite(near) & (near.view(np.uint32) & 1 == 0)
            beyond = np.nextafter(near, np.where(values > near, np.inf, -np.inf).astype(np.float32))
            values = np.where(inexact, beyond, near)
        return values.astype(numpy_dtype(dtype), copy=False)


def largest(dtype: str) -> float:
    """The largest finite value of an element type."""
    return float(_float_info(dtype).max if is_float(dtype) else integer_range(dtype)[1])


def smallest(dtype: str) -> float:
    """The smallest positive value of an element type, subnormal ones included."""
    return float(_float_info(dtype).smallest_subnormal) if is_float(dtype) else 1.0


def _float_info(dtype: str) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(numpy_dtype(dtype))  # type: ignore[no-untyped-call]
