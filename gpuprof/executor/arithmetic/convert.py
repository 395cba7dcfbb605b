# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `cvt` instruction: between integers, floats and halves, with every rounding mode and saturation."""

from typing import Any

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.formats import (
    HALVES,
    SCALE,
    SMALL,
    small_as,
    to_float64,
    to_half,
    to_scale,
    to_small,
    to_tf32,
)
from gpuprof.executor.arithmetic.halves import joined, words_of
from gpuprof.executor.arithmetic.integers import saturated
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.arithmetic.nans import canonical
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_TO_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FLOATS = ("f16", "f32", "f64", "bf16")
_MODIFIERS = {"rn", "rz", "rm", "rp", "rna", *_TO_INTEGRAL, "ftz", "sat", "relu", "satfinite"}
_PAIRS = ("f16x2", "bf16x2", *SMALL, SCALE)
_PACKED_PARTS = ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")


def lower_cvt(op: Mnemonic) -> Lowered:
    """Lower `cvt.MODIFIERS.TO.FROM`."""
    if op.has("pack"):
        return _packed_integers(op)
    if len(op.types) != 2 or {*op.flags} - _MODIFIERS:
        raise NotInTable
    to, source = op.types
    if to in _PAIRS or source in _PAIRS:
        return _pair(op, to, source)
    if to == "tf32":
        return _tf32(op, source)
    read, write = ARITHMETIC[source], ARITHMETIC[to]
    if op.flags_any("relu", "satfinite"):
        if to not in ("f16", "bf16") or source != "f32":
            raise NotInTable
        return Lowered(_to_half(op, to), (read,))
    if to in _FLOATS and source in _FLOATS:
        return Lowered(lambda a: _float_to_float(a, op, source, to), (read,))
    if to in _FLOATS:
        return Lowered(lambda a: _integer_to_float(a, op, to), (read,))
    if source in _FLOATS:
        return Lowered(lambda a: _float_to_integer(_decoded(a, source), op, write), (read,))
    if op.has("sat"):
        return Lowered(lambda a: _clamped(a, write), (read,))
    return Lowered(lambda a: a.astype(write), (read,))


def _to_half(op: Mnemonic, kind: str) -> Compute:
    """Return what makes the bits of an f16 or bf16 of f32: rounded, and clamped as the modifiers say."""
    largest = np.uint16(0x7BFF if kind == "f16" else 0x7F7F)

    def convert(value: Lanes) -> Lanes:
        bits = _float_to_float(value, op, "f32", kind).view(np.uint16)
        size = bits & np.uint16(0x7FFF)
        if op.has("satfinite"):
            bits = np.where((size > largest) & ~np.isnan(value), bits - size + largest, bits)
        if op.has("relu"):
            bits = np.where(bits > np.uint16(0x7FFF), np.uint16(0), bits)
        return bits

    return convert


def _pair(op: Mnemonic, to: str, source: str) -> Lowered:
    """Lower conversions to two values in one register, and from two small floats or to them."""
    if to in ("f16x2", "bf16x2"):
        if source in (*SMALL, SCALE) and not op.has("satfinite") and op.rounding == "rn":
            return _of_small(op, source, to.removesuffix("x2"))
        if source == "f32" and op.rounding in ("rn", "rz"):
            return _packing(_to_half(op, to.removesuffix("x2")), 16, np.dtype(np.uint32))
    elif source in ("f32", "f16x2", "bf16x2"):
        bits = 4 if to == "e2m1x2" else 8
        whole = np.dtype(np.uint8 if bits == 4 else np.uint16)
        if source == "f32":
            return _packing(_to_small(op, to), bits, whole)
        return _narrowing(_to_small(op, to), source, bits, whole)
    raise NotInTable


def _narrowing(each: Compute, source: str, bits: int, whole: np.dtype[Any]) -> Lowered:
    """Convert two halves in a word, each as a float32."""
    half = HALVES[source.removesuffix("x2")]

    def narrow(words: Lanes) -> Lanes:
        lower, upper = (each(part.view(half).astype(np.float32)) for part in words_of(words))
        pair: Lanes = upper.astype(whole) << whole.type(bits) | lower
        return pair

    return Lowered(narrow, (ARITHMETIC[source],))


def _packed_integers(op: Mnemonic) -> Lowered:
    """Lower `cvt.pack`: two s32, clamped, as the lowest parts of a word; above them a third operand."""
    kinds = [word for word in (*op.types, *op.flags) if word in _PACKED_PARTS]
    source, *rest = [kind for kind in op.types if kind not in kinds]
    if len(kinds) != 1 or source != "s32" or {*op.flags} - {*kinds} != {"pack", "sat"}:
        raise NotInTable
    (kind,) = kinds
    bits = int(kind[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)

    def pack(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        upper, lower = (np.clip(x, low, high).view(np.uint32) & np.uint32((1 << bits) - 1) for x in (a, b))
        packed: Lanes = upper << np.uint32(bits) | lower
        return packed | c[0] << np.uint32(2 * bits) if c else packed

    return Lowered(pack, (np.dtype(np.int32),) * 2 + (ARITHMETIC["b32"],) * len(rest))


def _packing(each: Compute, bits: int, whole: np.dtype[Any]) -> Lowered:
    """Convert two f32, of which the first becomes the upper part, to so many bits each."""

    def pack(upper: Lanes, lower: Lanes) -> Lanes:
        packed: Lanes = each(upper).astype(whole) << whole.type(bits) | each(lower)
        return packed

    return Lowered(pack, (ARITHMETIC["f32"],) * 2)


def _to_small(op: Mnemonic, kind: str) -> Compute:
    finite, relu = op.has("satfinite"), op.has("relu")
    if kind == SCALE:
        if op.rounding not in ("rz", "rp") or relu:
            raise NotInTable
        return lambda value: to_scale(value, op.rounding, finite=finite)
    if op.rounding != "rn" or not finite:
        raise NotInTable
    return lambda value: to_small(np.where(value <= 0, np.float32(0), value) if relu else value, kind)


def _of_small(op: Mnemonic, source: str, half: str) -> Lowered:
    table = small_as(source, half)
    if op.has("relu"):
        table = np.where(table > np.uint16(0x7FFF), np.uint16(0), table)
    bits, mask = (4, 15) if source == "e2m1x2" else (8, len(table) - 1)

    def widen(pairs: Lanes) -> Lanes:
        return joined(
            *(table[pairs >> pairs.dtype.type(bits * i) & pairs.dtype.type(mask)] for i in range(2))
        )

    return Lowered(widen, (np.dtype(np.uint8 if bits == 4 else np.uint16),))


def _tf32(op: Mnemonic, source: str) -> Lowered:
    mode = next((flag for flag in op.flags if flag in ("rn", "rz", "rna")), "")
    if source != "f32" or not mode or (mode == "rna" and op.has("relu")):
        raise NotInTable

    def convert(value: Lanes) -> Lanes:
        bits = to_tf32(value, mode, finite=op.has("satfinite"))
        return np.where(bits > np.uint32(0x7FFFFFFF), np.uint32(0), bits) if op.has("relu") else bits

    return Lowered(convert, (ARITHMETIC["f32"],))


def _decoded(value: Lanes, kind: str) -> Lanes:
    return value.view(HALVES[kind]).astype(np.float32) if kind == "bf16" else value


def _rounded(value: Lanes, kind: str, mode: str) -> Lanes:
    return exact.narrow(value, HALVES.get(kind, ARITHMETIC[kind]), mode).view(ARITHMETIC[kind])


def _float_to_float(value: Lanes, op: Mnemonic, source: str, to: str) -> Lanes:
    value = _decoded(value, source)
    if op.has("ftz") and value.dtype == np.float32 and to != "f16":
        value = canonical(exact.flush(value))
    for flag, integral in _TO_INTEGRAL.items():
        if op.has(flag):
            value = integral(value)
    if op.has("sat"):
        value = exact.clamp(value)
    if source == "f64" and to in HALVES:
        return to_half(value, to, op.rounding).view(ARITHMETIC[to])
    if to == "bf16":
        return canonical(exact.narrow(value.astype(np.float64), HALVES[to], op.rounding)).view(ARITHMETIC[to])
    if source == to:
        return canonical(value) if source == "f16" or (source != "f64" and op.flags) else value
    if source == "f16" and to == "f64":
        return to_float64(value)
    if ARITHMETIC[to].itemsize < value.dtype.itemsize:
        result = exact.narrow(value.astype(np.float64), ARITHMETIC[to], op.rounding)
    else:
        result = value.astype(ARITHMETIC[to])
    if op.has("ftz") and to == "f32":
        result = exact.flush(result)
    return canonical(result) if "f16" in (source, to) else result


def _integer_to_float(value: Lanes, op: Mnemonic, to: str) -> Lanes:
    if op.has("sat"):
        value = np.clip(value, 0, 1)
    if op.rounding == "rn" and to != "bf16":
        return value.astype(ARITHMETIC[to])
    if value.dtype.itemsize <= 4:  # exact in float64
        return _rounded(value.astype(np.float64), to, op.rounding)
    half = value.dtype.type(32)
    high, low = value >> half, value & value.dtype.type(0xFFFFFFFF)
    parts = high.astype(np.float64) * 2.0**32, low.astype(np.float64)
    if to == "f64":
        return exact.in_mode(np.add, op.rounding)(*parts)
    return _rounded(exact.to_odd(*exact.two_sum(*parts)), to, op.rounding)


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
