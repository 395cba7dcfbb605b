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
        name: For a reader: `float32`.
        nbytes: Size of an element.
        c_type: What kernels call it.
        roundoff: Unit roundoff; 0 for integers.
        numpy: NumPy's name of it.
    """

    name: str
    nbytes: int
    c_type: str
    roundoff: float
    numpy: str


#: By the names that headers, operations and results use.
ELEMENT_TYPES: dict[str, ElementType] = {
    "f32": ElementType("float32", 4, "float", 2.0**-24, "float32"),
    "f64": ElementType("float64", 8, "double", 2.0**-53, "float64"),
    "f16": ElementType("float16", 2, "__half", 2.0**-11, "float16"),
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
RUN_TYPES = ("f32", "f64", "f16")


def integer_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of a type of integers."""
    bits = 8 * ELEMENT_TYPES[dtype].nbytes
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def numpy_dtype(dtype: str) -> Any:
    """The NumPy type of an element type."""
    import numpy as np

    return np.dtype(ELEMENT_TYPES[dtype].numpy)


def largest(dtype: str) -> float:
    """The largest finite value of an element type."""
    import numpy as np

    kind = numpy_dtype(dtype)
    return float(np.finfo(kind).max if kind.kind == "f" else np.iinfo(kind).max)


def smallest(dtype: str) -> float:
    """The smallest positive value of an element type, subnormal ones included."""
    import numpy as np

    kind = numpy_dtype(dtype)
    return float(np.finfo(kind).smallest_subnormal) if kind.kind == "f" else 1.0
