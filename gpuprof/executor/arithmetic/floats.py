# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions on f32 and f64 that are rounded correctly: sums to roots, signs, and extremes."""

from collections.abc import Callable

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.formats import HALVES
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable, of_one_type
from gpuprof.executor.arithmetic.nans import with_nans
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes


def extreme(choose: Compute) -> Compute:
    """Return min or max by NumPy's function, but with -0 less than +0."""
    picks_larger = choose in (np.fmax, np.maximum)

    def pair(a: Lanes, b: Lanes) -> Lanes:
        picked: Lanes = choose(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            negative = np.signbit(a) & np.signbit(b) if picks_larger else np.signbit(a) | np.signbit(b)
            sign = np.where(negative, -1, 1).astype(picked.dtype)
            picked = np.where(zeros, np.copysign(picked, sign), picked)
        return picked

    return pair


def of_sizes(compute: Compute) -> Compute:
    """Return min or max with `.xorsign.abs`: of the sizes, with the product of the signs."""

    def signed(a: Lanes, b: Lanes) -> Lanes:
        size: Lanes = compute(np.abs(a), np.abs(b))
        signed_size: Lanes = np.where(np.signbit(a) != np.signbit(b), -size, size)
        return signed_size

    return signed


_ROUNDED: dict[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda a: a.dtype.type(1) / a,
}
_MODIFIERS = {"rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "NaN", "xorsign", "abs"}


def modified(op: Mnemonic, compute: Compute, count: int, exactly: Compute | None = None) -> Lowered:
    """Lower to a function of `count` operands of the instruction's type, as its modifiers say.

    `exactly` computes it in float64, where rounding matters.
    """
    flushes = op.has("ftz") and op.type == "f32"  # reciprocals of f64 take it for nothing
    if (op.has("ftz") and not flushes and op.base != "rcp") or {*op.flags} - _MODIFIERS:
        raise NotInTable
    computed: Compute = (lambda *given: exact.clamp(compute(*given))) if op.has("sat") else compute
    if flushes:
        computed = exact.with_flush(computed, op.rounding, exactly)
    else:
        computed = exact.in_mode(computed, op.rounding)
    return of_one_type(op, with_nans(computed, op.base, op.type), count)


def rounded(op: Mnemonic, count: int) -> Lowered:
    """Lower an operation that is rounded once, as its modifiers say."""
    return modified(op, _ROUNDED[op.base], count, _ROUNDED[op.base])


def fused(op: Mnemonic) -> Lowered:
    """Lower `fma` and `mad` of f32 and f64."""
    op = Mnemonic("fma", op.flags, op.types)
    return modified(op, multiply_add(op.type), 3, exact.fused)


def in_pairs(op: Mnemonic, lower: Callable[[Mnemonic], Lowered]) -> Lowered:
    """Lower an instruction on two f32 in 64 bits, each of which is computed by itself."""
    one = lower(Mnemonic(op.base, op.flags, ("f32",)))

    def compute(*pairs: Lanes) -> Lanes:
        parts = (np.ascontiguousarray(pair)[..., None].view(np.float32) for pair in pairs)
        result: Lanes = np.ascontiguousarray(one.compute(*parts)).view(np.uint64)[..., 0]
        return result

    return Lowered(compute, (ARITHMETIC["f32x2"],) * len(one.sources))


def widening(op: Mnemonic, lower: Callable[[Mnemonic], Lowered]) -> Lowered:
    """Lower an instruction such as `add.f32.bf16`: all operands but the last are halves, made f32 first."""
    whole, half = op.types
    if whole != "f32" or half not in HALVES:
        raise NotInTable
    one = lower(Mnemonic(op.base, op.flags, (whole,)))

    def compute(*operands: Lanes) -> Lanes:
        wide = (bits.view(HALVES[half]).astype(np.float32) for bits in operands[:-1])
        result: Lanes = one.compute(*wide, operands[-1])
        return result

    return Lowered(compute, (ARITHMETIC["bf16"],) * (len(one.sources) - 1) + one.sources[-1:])


def of_three(pair: Lowered) -> Lowered:
    """Lower `min` and `max` of three floats, given that of two."""
    return Lowered(lambda a, b, c: pair.compute(pair.compute(a, b), c), pair.sources[:1] * 3)


def multiply_add(kind: str) -> Compute:
    """Return what `native` has: LLVM is loaded when a kernel computes, not to look at one."""
    from gpuprof.executor.arithmetic import native

    return native.multiply_add(kind)


def minus(value: Lanes) -> Lanes:
    """Return f32 or f64 values with the other sign, as instructions read them: a NaN keeps its own."""
    return np.where(np.isnan(value), value, -value) if value.dtype == np.float64 else -value


def extremes(op: Mnemonic) -> Lowered:
    """Lower `min` and `max`: the smaller or larger number; with `.NaN` a NaN wins; `.abs` takes the sizes."""
    lowest = op.base == "min"
    of_nan: tuple[Compute, Compute] = (np.minimum, np.maximum)
    of_number: tuple[Compute, Compute] = (np.fmin, np.fmax)
    choose = (of_nan if op.has("NaN") else of_number)[not lowest]
    compute = extreme(choose)
    if op.has("xorsign"):
        compute = of_sizes(compute)
    elif op.has("abs"):
        compute = lambda a, b: extreme(choose)(np.abs(a), np.abs(b))  # noqa: E731
    return modified(op, compute, 2)
