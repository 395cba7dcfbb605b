# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on half-precision values: f16, bf16, and two of either packed in a word."""

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.floats import extreme, of_sizes
from gpuprof.executor.arithmetic.formats import HALVES
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable, of_one_type
from gpuprof.executor.arithmetic.nans import canonical
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

TYPES = ("f16", "bf16", "f16x2", "bf16x2")
_WORD = np.dtype(np.uint16)
#: The NaN that a tensor copy fills in for elements outside the array, which `.oob` takes for a zero.
_OUTSIDE = np.uint16(0x7FF7)

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
    # The hardware's tables come within an ulp or so of these.
    "ex2": np.exp2,
    "tanh": np.tanh,
}
_OF_NAN: dict[str, Compute] = {"min": extreme(np.minimum), "max": extreme(np.maximum)}
#: Modifiers beside `.ftz`.
_MODIFIERS = {
    **dict.fromkeys(("add", "sub", "mul"), frozenset({"rn", "sat"})),
    "fma": frozenset({"rn", "sat", "relu", "oob"}),
    **dict.fromkeys(("min", "max"), frozenset({"NaN", "xorsign", "abs"})),
    **dict.fromkeys(("ex2", "tanh"), frozenset({"approx"})),
}


def lower(op: Mnemonic, count: int) -> Lowered:
    """Lower one arithmetic instruction of a half type with `count` operands."""
    known = _MODIFIERS.get(op.base, frozenset())
    # Of bf16 only `ex2` is flushed, of f16 all but the approximations.
    flushes = op.base == "ex2" if op.type.startswith("bf16") else op.base not in ("ex2", "tanh")
    if set(op.flags) - known - ({"ftz"} if flushes else set()) or op.has("xorsign") != op.has("abs"):
        raise NotInTable
    scalar = _computation(op)
    if op.type.endswith("x2"):
        return of_one_type(op, packed(scalar), count)
    return Lowered(scalar, (_WORD,) * count)


def minus(kind: str) -> Compute:
    """Return what changes the sign of values of a half type, as bits."""
    sign = np.uint32(0x8000_8000) if kind.endswith("x2") else _WORD.type(0x8000)
    return lambda bits: bits ^ sign


def _computation(op: Mnemonic) -> Compute:
    """What an instruction computes on bits of single halves."""
    kind = op.type.removesuffix("x2")
    if op.base == "fma":
        compute: Compute = exact.fused
    else:
        compute = (_OF_NAN if op.has("NaN") else _COMPUTE)[op.base]
    if op.has("xorsign"):
        compute = of_sizes(compute)
    flushed: Compute = exact.flush if op.has("ftz") else lambda values: values
    # A NaN becomes 0 with `.sat` and stays with `.relu`.
    clamped: Compute = exact.clamp if op.has("sat") else lambda values: values
    if op.has("relu"):
        clamped = lambda values: np.where(values <= 0, values.dtype.type(0), values)  # noqa: E731
    wide = kind == "bf16" or op.has("ftz") or op.base in ("ex2", "tanh", "fma")

    def of_bits(*bits: Lanes) -> Lanes:
        values = [flushed(b.view(HALVES[kind])) for b in bits]
        if wide:
            value = compute(*(each.astype(np.float64) for each in values))
            result = exact.narrow(value, HALVES[kind], "rn")
            if op.has("ftz"):
                zero = np.copysign(result.dtype.type(0), result)
                result = np.where(exact.is_tiny(value, result.dtype, "rn"), zero, result)
        else:
            result = compute(*values)
        made = canonical(clamped(flushed(result))).view(_WORD)
        if op.has("oob"):
            outside = [(factor & np.uint16(0x7FFF)) == _OUTSIDE for factor in bits[:2]]
            return np.where(outside[0] | outside[1], _WORD.type(0), made)
        return made

    return of_bits


def words_of(words: Lanes) -> tuple[Lanes, Lanes]:
    """The lower and the upper half of packed words."""
    word = words.view(ARITHMETIC["u32"])
    return word.astype(np.uint16), (word >> np.uint32(16)).astype(np.uint16)


def joined(low: Lanes, high: Lanes) -> Lanes:
    """Words of a lower and an upper half."""
    return np.asarray((high.astype(np.uint32) << np.uint32(16)) | low)


def packed(scalar: Compute) -> Compute:
    """A computation on bits of single halves, made one on words of two."""

    def compute(*words: Lanes) -> Lanes:
        return joined(*(scalar(*bits) for bits in zip(*map(words_of, words), strict=True)))

    return compute
