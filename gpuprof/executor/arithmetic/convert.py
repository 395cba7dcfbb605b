# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `cvt` instruction: between integers, floats and halves, with every rounding mode and saturation."""

from typing import Any

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.integers import saturated
from gpuprof.executor.arithmetic.mnemonic import Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_TO_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FLOATS = ("f16", "f32", "f64", "bf16")


def lower_cvt(op: Mnemonic) -> Lowered:
    """Lower `cvt.MODIFIERS.TO.FROM`."""
    if len(op.types) != 2 or not {*op.types} <= {*ARITHMETIC, "f16x2", "bf16x2"}:
        raise NotInTable
    to, source = op.types
    if op.has("relu") or op.has("satfinite"):
        raise NotInTable
    if to in ("f16x2", "bf16x2"):
        return _pack_halves(op)
    read, write = ARITHMETIC[source], ARITHMETIC[to]
    if to in _FLOATS and source in _FLOATS:
        return Lowered(lambda a: _float_to_float(a, op, source, to), (read,), write)
    if to in _FLOATS:
        return Lowered(lambda a: _integer_to_float(a, op, to), (read,), write)
    if source in _FLOATS:
        return Lowered(lambda a: _float_to_integer(_decoded(a, source), op, write), (read,), write)
    if op.has("sat"):
        return Lowered(lambda a: _clamped(a, write), (read,), write)
    return Lowered(lambda a: a.astype(write), (read,), write)


def _pack_halves(op: Mnemonic) -> Lowered:
    to = op.types[0].removesuffix("x2")
    if op.types[1] != "f32" or op.rounding not in ("rn", "rz"):
        raise NotInTable

    def pack(upper: Lanes, lower: Lanes) -> Lanes:
        words = [_rounded(x.astype(np.float64), to, op.rounding).view(np.uint16) for x in (upper, lower)]
        return (words[0].astype(np.uint32) << np.uint32(16)) | words[1]

    return Lowered(pack, (ARITHMETIC["f32"],) * 2, ARITHMETIC["b32"])


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
    return np.where(np.isnan(wide), np.uint16(0x7FFF), rounded)


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


def _decoded(value: Lanes, kind: str) -> Lanes:
    return from_bf16(value) if kind == "bf16" else value


def _rounded(value: Lanes, kind: str, mode: str) -> Lanes:
    if kind == "bf16":
        return to_bf16(value, mode)
    return exact.narrow(value, ARITHMETIC[kind], mode)


def _float_to_float(value: Lanes, op: Mnemonic, source: str, to: str) -> Lanes:
    value = _decoded(value, source)
    if op.has("ftz") and value.dtype == np.float32:
        value = exact.flush(value)
    for flag, integral in _TO_INTEGRAL.items():
        if op.has(flag):
            value = integral(value)
    if op.has("sat"):  # NaN becomes zero
        value = np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))
    if source == to:
        return value if source != "bf16" else to_bf16(value)
    if to == "bf16":
        return to_bf16(value, op.rounding)
    narrower = ARITHMETIC[to].itemsize < value.dtype.itemsize
    result = (
        exact.narrow(value.astype(np.float64), ARITHMETIC[to], op.rounding)
        if narrower
        else value.astype(ARITHMETIC[to])
    )
    return exact.flush(result) if op.has("ftz") and to == "f32" else result


def _integer_to_float(value: Lanes, op: Mnemonic, to: str) -> Lanes:
    if op.rounding == "rn" and to != "bf16":
        return value.astype(ARITHMETIC[to])
    if value.dtype.itemsize <= 4:  # exact in float64
        return _rounded(value.astype(np.float64), to, op.rounding)
    half = value.dtype.type(32)
    high, low = value >> half, value & value.dtype.type(0xFFFFFFFF)
    near, error = exact.two_sum(high.astype(np.float64) * 2.0**32, low.astype(np.float64))
    if to == "f64":
        return exact.directed(near, error, op.rounding)
    return _rounded(exact.to_odd(near, error), to, op.rounding)


def _float_to_integer(value: Lanes, op: Mnemonic, dtype: np.dtype[Any]) -> Lanes:
    """Round to integral and clamp to the target's range, as the hardware does; NaN has its own rule."""
    if op.has("ftz") and value.dtype == np.float32:
        value = exact.flush(value)
    integral = next((f for flag, f in _TO_INTEGRAL.items() if op.has(flag)), np.trunc)(value)
    limits = np.iinfo(dtype)
    low, above = float(limits.min), 2.0 ** int(limits.max).bit_length()
    inside = (integral >= low) & (integral < above)
    result = np.where(inside, integral, 0).astype(dtype)
    result = np.where(integral >= above, dtype.type(limits.max), result)
    result = np.where(integral < low, dtype.type(limits.min), result)
    is_wide = value.dtype == np.float64 or dtype.itemsize == 8
    not_a_number = dtype.type(limits.min if dtype.kind == "i" else 1 << (8 * dtype.itemsize - 1))
    return np.where(np.isnan(value), not_a_number if is_wide else dtype.type(0), result).astype(dtype)


def _clamped(value: Lanes, dtype: np.dtype[Any]) -> Lanes:
    if value.dtype == np.uint64:
        return np.minimum(value, np.uint64(np.iinfo(dtype).max)).astype(dtype)
    if dtype == np.uint64:
        return np.maximum(value, 0).astype(dtype)
    return saturated(value.astype(np.int64), dtype)
