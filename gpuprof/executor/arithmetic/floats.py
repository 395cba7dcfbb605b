# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions on f32 and f64 that are rounded correctly: sums to roots, signs, and extremes."""

import functools

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable, of_one_type
from gpuprof.executor.arithmetic.nans import with_nans
from gpuprof.executor.lanes.scalars import Lanes


def extreme(choose: Compute) -> Compute:
    """Return min or max of two or three floats by NumPy's function, but with -0 less than +0."""
    picks_larger = choose in (np.fmax, np.maximum)

    def pair(a: Lanes, b: Lanes) -> Lanes:
        picked: Lanes = choose(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            negative = np.signbit(a) & np.signbit(b) if picks_larger else np.signbit(a) | np.signbit(b)
            sign = np.where(negative, -1, 1).astype(picked.dtype)
            picked = np.where(zeros, np.copysign(picked, sign), picked)
        return picked

    return lambda *operands: functools.reduce(pair, operands)


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


def multiply_add(kind: str) -> Compute:
    """Return what `native` has: LLVM is loaded when a kernel computes, not to look at one."""
    from gpuprof.executor.arithmetic import native

    return native.multiply_add(kind)


def minus(value: Lanes) -> Lanes:
    """Return f32 or f64 values with the other sign, as instructions read them: a NaN keeps its own."""
    return np.where(np.isnan(value), value, -value) if value.dtype == np.float64 else -value


def extremes(op: Mnemonic) -> Lowered:
    """Lower `min` and `max`: the smaller or larger number; with `.NaN` a NaN wins."""
    lowest = op.base == "min"
    of_nan: tuple[Compute, Compute] = (np.minimum, np.maximum)
    of_number: tuple[Compute, Compute] = (np.fmin, np.fmax)
    choose = (of_nan if op.has("NaN") else of_number)[not lowest]
    if op.has("xorsign") != op.has("abs"):
        raise NotInTable
    compute = extreme(choose)
    return modified(op, of_sizes(compute) if op.has("xorsign") else compute, 2)
