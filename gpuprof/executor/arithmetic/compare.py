# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Comparing and selecting: `setp`, `set`, `selp`, `slct` and `testp`."""

from collections.abc import Callable

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_BOOL = np.dtype(np.bool_)
_ORDERED: dict[str, Compute] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
#: True also when an operand is NaN: each is the negation of an ordered comparison.
_UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
_COMBINE: dict[str, Compute] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _either_nan(a: Lanes, b: Lanes) -> Lanes:
    return np.isnan(a) | np.isnan(b)


def _comparison(op: Mnemonic, kind: str) -> Callable[[Lanes, Lanes], Lanes]:
    name = next((flag for flag in op.flags if flag in {*_ORDERED, *_UNORDERED, "num", "nan"}), "")
    is_float = kind in ("f16", "f32", "f64")
    compare: Compute
    if name == "ne" and is_float:
        compare = lambda a, b: (a != b) & ~_either_nan(a, b)  # noqa: E731 - NumPy's != is unordered
    elif name in _ORDERED:
        compare = _ORDERED[name]
    elif name == "neu":
        compare = np.not_equal
    elif name == "equ":
        compare = lambda a, b: (a == b) | _either_nan(a, b)  # noqa: E731
    elif name in _UNORDERED:
        opposite = _ORDERED[_UNORDERED[name]]
        compare = lambda a, b: ~opposite(a, b)  # noqa: E731
    elif name == "nan":
        compare = _either_nan
    elif name == "num":
        compare = lambda a, b: ~_either_nan(a, b)  # noqa: E731
    else:
        raise NotInTable
    if op.has("ftz"):
        return lambda a, b: compare(exact.flush(a), exact.flush(b))
    return compare


def lower_setp(op: Mnemonic) -> Lowered:
    """Lower `setp`: the comparison, and for a second destination its negation, each combined with c."""
    if op.type not in ARITHMETIC or op.type in ("bf16", "f16x2", "bf16x2"):
        raise NotInTable
    compare = _comparison(op, op.type)
    combine = next((_COMBINE[flag] for flag in op.flags if flag in _COMBINE), None)
    if combine is None:
        return Lowered(compare, (op.dtype,) * 2, _BOOL, lambda a, b: ~compare(a, b))
    return Lowered(
        lambda a, b, c: combine(compare(a, b), c),
        (op.dtype, op.dtype, _BOOL),
        _BOOL,
        lambda a, b, c: combine(~compare(a, b), c),
    )


def lower_set(op: Mnemonic) -> Lowered:
    """Lower `set`: all ones or 1.0 where the comparison holds, else zero."""
    target, source = op.types
    compare = _comparison(op, source)
    combine = next((_COMBINE[flag] for flag in op.flags if flag in _COMBINE), None)
    result = ARITHMETIC[target]
    true = result.type(1) if result.kind == "f" else np.array(-1).astype(result)

    def compute(a: Lanes, b: Lanes, c: Lanes | None = None) -> Lanes:
        holds = compare(a, b)
        if combine is not None:
            holds = combine(holds, c)
        return np.where(holds, true, result.type(0))

    sources = (ARITHMETIC[source],) * 2 + (() if combine is None else (_BOOL,))
    return Lowered(compute, sources, result)


def lower_selp(op: Mnemonic) -> Lowered:
    """Lower `selp`: the first operand where the predicate holds, else the second."""
    return Lowered(lambda a, b, p: np.where(p, a, b), (op.dtype, op.dtype, _BOOL), op.dtype)


def lower_slct(op: Mnemonic) -> Lowered:
    """Lower `slct`: the first operand where the third is not negative, else the second."""
    value, test = (ARITHMETIC[kind] for kind in op.types)
    return Lowered(lambda a, b, c: np.where(c >= 0, a, b), (value, value, test), value)


_TESTS: dict[str, Compute] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny),
    "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
}


def lower_testp(op: Mnemonic) -> Lowered:
    """Lower `testp`: the class of a float."""
    return Lowered(_TESTS[op.flags[0]], (op.dtype,), _BOOL)
