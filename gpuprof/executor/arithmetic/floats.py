# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions on f32 and f64 that are rounded correctly: sums to roots, signs, and extremes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.extremes import extreme, of_sizes
from gpuprof.executor.arithmetic.hardware_loops import hardware_loop
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.arithmetic.nans import with_nans
from gpuprof.executor.lanes.scalars import Lanes

_NEAREST: dict[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rcp": lambda a: a.dtype.type(1) / a,
}
_DIRECTED: dict[str, Callable[..., Lanes]] = {
    "add": exact.add,
    "sub": lambda a, b, mode: exact.add(a, -b, mode),
    "mul": exact.multiply,
    "div": exact.divide,
    "sqrt": exact.square_root,
    "rcp": lambda a, mode: exact.divide(np.ones_like(a), a, mode),
}
_MODIFIERS = {"rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "NaN", "xorsign", "abs"}
#: What this machine may have a loop of its own for.
_HOT = ("add", "sub", "mul", "fma")


def modified(op: Mnemonic, compute: Compute, count: int) -> Lowered:
    """Lower to a function of `count` operands of the instruction's type, with `.sat`, `.ftz` and its NaNs."""
    if (op.has("ftz") and op.type != "f32") or {*op.flags} - _MODIFIERS:
        raise NotInTable
    computed = _saturated(compute) if op.has("sat") else compute
    if op.has("ftz"):
        computed = exact.with_flush(computed)
    return _of_one_type(op, with_nans(computed, op.base, op.type), count)


def _of_one_type(op: Mnemonic, compute: Compute, count: int) -> Lowered:
    return Lowered(compute, (op.dtype,) * count, op.dtype)


def _saturated(compute: Compute) -> Compute:
    """Clamp to [0, 1]; a NaN becomes 0."""

    def clamped(*operands: Lanes) -> Any:
        value = compute(*operands)
        return np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))

    return clamped


def rounded(op: Mnemonic, count: int) -> Lowered:
    """Lower an operation that is rounded once, as its modifiers say."""
    mode = op.rounding
    if mode != "rn":
        compute = _DIRECTED[op.base]
        return modified(op, lambda *operands: compute(*operands, mode), count)
    if op.base in _HOT and not op.has("sat") and (loop := _loop(op)) is not None:
        return _of_one_type(op, loop, count)
    return modified(op, _NEAREST[op.base], count)


def fused(op: Mnemonic) -> Lowered:
    """Lower `fma` and `mad` of f32 and f64."""
    mode = op.rounding
    fma = exact.fma32 if op.type == "f32" else exact.fma64
    if mode != "rn":
        return modified(_named_fma(op), lambda a, b, c: fma(a, b, c, mode), 3)
    loop = _loop(_named_fma(op))
    if loop is not None and not op.has("sat"):
        return _of_one_type(op, loop, 3)
    return modified(_named_fma(op), hardware_loop("fma", op.type) or fma, 3)


def _named_fma(op: Mnemonic) -> Mnemonic:
    return Mnemonic("fma", op.flags, op.types)


def _loop(op: Mnemonic) -> Compute | None:
    if not op.has("ftz"):
        return hardware_loop(op.base, op.type)
    return hardware_loop(f"{op.base}.ftz", "f32") if op.type == "f32" else None


def minus(value: Lanes) -> Lanes:
    """Return f32 or f64 values with the other sign, as instructions read them: a NaN keeps its own."""
    return np.where(np.isnan(value), value, -value) if value.dtype == np.float64 else -value


def fused_multiply_add(kind: str) -> Compute:
    """Return a * b + c of f32 or f64, rounded once to nearest: by the CPU's own instruction if possible."""
    return fused(Mnemonic("fma", ("rn",), (kind,))).compute


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


def signs(op: Mnemonic) -> Lowered:
    """Lower `neg` and `abs`, of which a NaN knows nothing."""
    return modified(op, np.negative if op.base == "neg" else np.abs, 1)


def copied_sign(op: Mnemonic) -> Lowered:
    """Lower `copysign`, which moves bits, those of NaNs too."""
    return _of_one_type(op, lambda sign, size: np.copysign(size, sign), 2)
