# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Correctly rounded floating-point arithmetic, as the hardware does it, on NumPy arrays.

NumPy rounds `+ - * / sqrt` correctly in float32 and float64, in the direction in which the CPU is told to.
What it lacks is here: flushing of subnormals, and results of half precision. The tool is *rounding to odd*: a
float64 whose last bit records that something was cut off can be rounded once more, to a narrower type and in
any direction, as if from the exact value (float64 has more than twice the bits of float32 plus two).
"""

import ctypes
import platform
from collections.abc import Callable

import ml_dtypes
import numpy as np

from gpuprof.executor.lanes.scalars import Lanes

#: The smallest normal number of each type.
_TINY = {np.dtype(np.float16): 2.0**-14, np.dtype(np.float32): 2.0**-126, np.dtype(np.float64): 2.0**-1022}
_TINY[np.dtype(ml_dtypes.bfloat16)] = 2.0**-126
#: What the C library calls the rounding modes of this CPU.
_CPU_MODES = (
    {"rn": 0, "rp": 0x40_0000, "rm": 0x80_0000, "rz": 0xC0_0000}
    if platform.machine() == "aarch64"
    else {"rn": 0, "rm": 0x400, "rp": 0x800, "rz": 0xC00}
)
_set_mode = ctypes.CDLL("libm.so.6").fesetround


def in_mode(compute: Callable[..., Lanes], mode: str) -> Callable[..., Lanes]:
    """Return a computation, of NumPy or of `native`, that rounds in a PTX mode ("rn", "rz", "rm" or "rp")."""
    if mode == "rn":
        return compute

    def rounded(*operands: Lanes) -> Lanes:
        _set_mode(_CPU_MODES[mode])
        try:
            return compute(*operands)
        finally:
            _set_mode(_CPU_MODES["rn"])

    return rounded


def flush(value: Lanes) -> Lanes:
    """Return floats with subnormals replaced by zeros of their sign (`.ftz`)."""
    return np.where(np.abs(value) < _TINY[value.dtype], np.copysign(value.dtype.type(0), value), value)


def clamp(value: Lanes) -> Lanes:
    """Return floats within [0, 1]; a NaN becomes 0 (`.sat`)."""
    return np.asarray(np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0)))


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return (s, e) with s = round(a + b) and s + e = a + b exactly, barring overflow."""
    s = a + b
    shadow = s - a
    return s, (a - (s - shadow)) + (b - shadow)


def to_odd(value: Lanes, error: Lanes) -> Lanes:
    """Return float64 `value + error` rounded to odd, given that `value` is that sum rounded to nearest."""
    bits = value.view(np.int64)
    nudge = (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    away = (error > 0) == (value > 0)  # a larger magnitude is the next larger bit pattern
    return np.where(nudge, bits + np.where(away, 1, -1), bits).view(np.float64)


def narrow(value: Lanes, dtype: np.dtype[np.floating], mode: str) -> Lanes:
    """Round float64 `value` once, to `dtype`, in a PTX rounding mode."""
    if dtype.itemsize > 2:  # halves are not rounded by the CPU
        return in_mode(lambda wide: wide.astype(dtype), mode)(value)
    near = value.astype(dtype) if dtype == np.float16 else _odd_float32(value).astype(dtype)
    if mode == "rn":
        return near
    error = value - near
    down = (error < 0) & ((mode == "rm") | (mode == "rz") & (near > 0))
    up = (error > 0) & ((mode == "rp") | (mode == "rz") & (near < 0))
    step = np.where(down, -dtype.type(np.inf), dtype.type(np.inf))
    return np.where(down | up, np.nextafter(near, step), near)


def _odd_float32(value: Lanes) -> Lanes:
    """Return float64 values rounded to odd, to float32: from there bfloat16 is rounded."""
    cut = narrow(value, np.dtype(np.float32), "rz")
    return np.asarray(cut.view(np.uint32) | (cut != value)).view(np.float32)


def with_flush(
    compute: Callable[..., Lanes], mode: str = "rn", exactly: Callable[..., Lanes] | None = None
) -> Callable[..., Lanes]:
    """Return `compute` in a rounding mode, with subnormal operands and results flushed to zero (`.ftz`).

    Whether a result is subnormal is told as if exponents had no end: `exactly` computes it in float64 where
    its rounding may tell.
    """
    rounded = in_mode(compute, mode)

    def flushed(*operands: Lanes) -> Lanes:
        given = [flush(operand) for operand in operands]
        result = flush(rounded(*given))
        if exactly is not None and (edge := np.abs(result) == _TINY[result.dtype]).any():
            with np.errstate(all="ignore"):
                value = exactly(*(operand.astype(np.float64) for operand in given))
            tiny = is_tiny(value, result.dtype, mode)
            result = np.where(edge & tiny, np.copysign(result.dtype.type(0), result), result)
        return result

    return flushed


def is_tiny(value: Lanes, dtype: np.dtype[np.floating], mode: str) -> Lanes:
    """Tell which float64 values are below all normal numbers when rounded to the bits of `dtype` alone."""
    scale = 2.0 ** (8 if dtype.itemsize == 2 else 64)
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(narrow(value * scale, dtype, mode)) < _TINY[dtype] * scale)


def fused(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return float64 a * b + c of numbers of few bits: the product is exact, and the sum rounded to odd."""
    return to_odd(*two_sum(a * b, c))
