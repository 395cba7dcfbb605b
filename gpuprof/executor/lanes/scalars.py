# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX scalar types and the NumPy types that hold them."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A value of a register for a whole batch: shape (blocks, warps, 32), any axis 1 where the value is uniform.
Lanes = NDArray[Any]

#: The type in which an instruction computes: `.uNN` and `.bNN` are unsigned, `.sNN` signed.
ARITHMETIC: dict[str, np.dtype[Any]] = {
    "pred": np.dtype(np.bool_),
    **{f"{kind}{bits}": np.dtype(f"uint{bits}") for kind in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    # What is packed, and bfloat16, travel as raw bits; their instructions unpack them.
    "f32x2": np.dtype(np.uint64),
    "f16x2": np.dtype(np.uint32),
    "bf16": np.dtype(np.uint16),
    "bf16x2": np.dtype(np.uint32),
    # Only moved and compared, bit by bit; NumPy has no other type of sixteen bytes that it moves fast.
    "b128": np.dtype(np.complex128),
}


@cache
def register_dtype(ptx_type: str) -> np.dtype[Any]:
    """Return the type in which a register declared as `ptx_type` is kept between instructions.

    Integers are kept signed whatever their declaration, so that most reads need no reinterpretation.
    """
    dtype = ARITHMETIC[ptx_type]
    return np.dtype(f"int{8 * dtype.itemsize}") if dtype.kind == "u" else dtype


def uniform(value: Any, dtype: np.dtype[Any]) -> Lanes:
    """Return `value` as a batch value that is the same in every lane: shape (1, 1, 1)."""
    return np.array(value, dtype=dtype).reshape(1, 1, 1)


def uniform_blocks(value: Lanes) -> Lanes:
    """Return `value` with one block if all blocks have the same."""
    return value if len(value) == 1 or np.count_nonzero(value != value[:1]) else value[:1]


def reinterpret(value: Lanes, dtype: np.dtype[Any]) -> Lanes:
    """Return `value` read as `dtype`: its bits where the sizes agree, truncated or extended where not."""
    if value.dtype == dtype:
        return value
    if value.dtype.itemsize == dtype.itemsize:
        return value.view(dtype)
    if value.dtype.kind == "f":
        value = value.view(f"u{value.dtype.itemsize}")
    if dtype.kind == "f":
        return value.astype(f"u{dtype.itemsize}").view(dtype)
    return value.astype(dtype)


def differ(a: Lanes, b: Lanes) -> NDArray[np.bool_]:
    """Compare elements bit by bit: shape as they broadcast."""
    if a.dtype.kind == "f":
        a, b = (each.view(f"u{each.itemsize}") for each in (a, b))
    if a.dtype.itemsize < 16:
        return np.asarray(a != b)
    a, b = (np.ascontiguousarray(x)[..., None].view(np.uint64) for x in (a, b))
    return np.asarray((a != b).any(axis=-1))
