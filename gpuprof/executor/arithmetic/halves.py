# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on half-precision values: f16, bf16, and two of either packed in a word."""

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.convert import from_bf16, to_bf16
from gpuprof.executor.arithmetic.extremes import extreme
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

TYPES = ("f16", "bf16", "f16x2", "bf16x2")
_WORD = np.dtype(np.uint16)
_BF16_TINY = 2.0**-126  # smallest normal bfloat16

# float32 holds the sum or product of two halves to more than twice their bits plus two, so that rounding
# once more, to half, is as good as rounding once; float64 does the same for bfloat16.
_COMPUTE: dict[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": extreme(np.fmin),
    "max": extreme(np.fmax),
    "neg": np.negative,
    "abs": np.abs,
}
_OF_NAN: dict[str, Compute] = {"min": extreme(np.minimum), "max": extreme(np.maximum)}
# The hardware's tables come within an ulp or so of these.
_APPROXIMATE: dict[str, Compute] = {"ex2": np.exp2, "tanh": np.tanh}
#: What changes a result: clamped to [0, 1], or negative ones to 0.
_CLAMPS = ("sat", "relu")


def lower(op: Mnemonic, count: int) -> Lowered:
    """Lower one arithmetic instruction of a half type with `count` operands."""
    known = {"rn", *_CLAMPS}
    if op.base in _OF_NAN:
        known.add("NaN")
    if op.base in _APPROXIMATE:
        known |= {"approx", "ftz"} if op.type.startswith("bf16") else {"approx"}
    if set(op.flags) - known:
        raise NotInTable
    compute = _computation(op)
    kind = op.type.removesuffix("x2")
    scalar = _clamped(compute, kind, op) if op.flags_any(*_CLAMPS) else compute
    if op.type.endswith("x2"):
        return Lowered(packed(scalar), (op.dtype,) * count, op.dtype)
    return Lowered(scalar, (_WORD,) * count, _WORD)


def _computation(op: Mnemonic) -> Compute:
    """What an instruction computes on bits of single halves."""
    if op.base in _APPROXIMATE:
        function = _APPROXIMATE[op.base]
        if op.type.startswith("bf16"):
            return lambda bits: to_bf16(_flushed(function(from_bf16(bits).astype(np.float64))))
        return lambda bits: _f16_bits(function(bits.view(np.float16).astype(np.float64)))
    table = _OF_NAN if op.has("NaN") else _COMPUTE
    return _bf16(op.base, table) if op.type.startswith("bf16") else _f16(op.base, table)


def _f16(name: str, table: dict[str, Compute]) -> Compute:
    compute = exact.fma16 if name == "fma" else table[name]
    return lambda *bits: compute(*(b.view(np.float16) for b in bits)).view(np.uint16)


def _f16_bits(values: Lanes) -> Lanes:
    return values.astype(np.float16).view(np.uint16)


def _bf16(name: str, table: dict[str, Compute]) -> Compute:
    def compute(*bits: Lanes) -> Lanes:
        values = [from_bf16(b).astype(np.float64) for b in bits]
        if name == "fma":
            return to_bf16(exact.to_odd(*exact.two_sum(values[0] * values[1], values[2])))
        return to_bf16(table[name](*values))

    return compute


def _flushed(values: Lanes) -> Lanes:
    return np.where(np.abs(values) < _BF16_TINY, np.copysign(0.0, values), values)


def _clamped(compute: Compute, kind: str, op: Mnemonic) -> Compute:
    """A computation whose result is clamped; NaN becomes 0 with `.sat` and stays with `.relu`."""
    one = np.uint16(0x3F80 if kind == "bf16" else 0x3C00)

    def clamped(*bits: Lanes) -> Lanes:
        result = compute(*bits)
        value = values_of(result, kind)
        if op.has("sat"):
            return np.where(value > 0, np.where(value < 1, result, one), np.uint16(0))
        return np.where(value < 0, np.uint16(0), result)

    return clamped


def values_of(bits: Lanes, kind: str) -> Lanes:
    """The numbers that bits of single halves are, in a type that NumPy compares."""
    return from_bf16(bits) if kind == "bf16" else bits.view(np.float16)


def words_of(words: Lanes) -> tuple[Lanes, Lanes]:
    """The lower and the upper half of packed words."""
    word = words.view(ARITHMETIC["u32"])
    return word.astype(np.uint16), (word >> np.uint32(16)).astype(np.uint16)


def packed(scalar: Compute) -> Compute:
    """A computation on bits of single halves, made one on words of two."""

    def compute(*words: Lanes) -> Lanes:
        halves = [words_of(word) for word in words]
        low, high = (scalar(*bits) for bits in zip(*halves, strict=True))
        both: Lanes = (high.astype(np.uint32) << np.uint32(16)) | low
        return both

    return compute
