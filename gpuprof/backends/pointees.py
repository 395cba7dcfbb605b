# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a C++ type is a pointer to a certain element type, as far as its words tell."""

import re

from gpuprof.problems.dtypes import ElementType

_FLOATS = {"float": 4, "double": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2}
_SIZED = re.compile(r"(?:std::|cuda::std::)?(?P<sign>u?)int(?P<bits>8|16|32|64)_t\Z")
_INTEGER_WORDS = {"signed", "unsigned", "char", "short", "int", "long", "size_t", "bool", "uint"}
#: Integers that name what has no address, with the tables of a header that describe it.
HANDLES = {"cudaTextureObject_t": "textures", "cudaSurfaceObject_t": "surfaces"}
#: Bytes without a meaning of their own: any array may be read through them.
_BYTES = {"void", "char", "unsigned char", "signed char", "uint8_t", "int8_t"}


def points_to(written: str, element: ElementType) -> bool | None:
    """Whether a type is a pointer to an element type.

    Reading floating-point numbers as integers of their size, or any elements as bytes, unsigned integers or
    vectors, is the kernel's affair.

    Args:
        written: The type without qualifiers: `float *`; empty for one that is not understood.
        element: The element type.

    Returns:
        None where it cannot be told.
    """
    if not written:
        return None
    if written in HANDLES:
        return False
    if not written.endswith("*"):
        return False if _integer_bytes(written) or written in _FLOATS else None
    pointee = written.removesuffix("*").strip()
    if pointee in _BYTES:
        return None
    if pointee in _FLOATS:
        same = {name for name, nbytes in _FLOATS.items() if nbytes == _FLOATS[pointee]}
        return bool(element.roundoff) and (element.c_type == pointee or _is_same_half(pointee, element, same))
    nbytes = _integer_bytes(pointee)
    if nbytes is None:
        return None
    if element.roundoff and (pointee.startswith(("unsigned", "uint")) or nbytes == element.nbytes):
        return None
    return nbytes == element.nbytes


def _is_same_half(pointee: str, element: ElementType, same: set[str]) -> bool:
    """Both spellings of a half are one type, and so are those of a bfloat16."""
    return element.c_type in same and ("bfloat" in pointee) == ("bfloat" in element.c_type)


def _integer_bytes(written: str) -> int | None:
    """Bytes of a plain integer type; None for any other."""
    if match := _SIZED.match(written):
        return int(match["bits"]) // 8
    words = written.split()
    if not words or not set(words) <= _INTEGER_WORDS:
        return None
    if "char" in words or "bool" in words:
        return 1
    if "short" in words:
        return 2
    return 8 if "long" in words or "size_t" in words else 4
