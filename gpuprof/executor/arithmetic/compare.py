# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Comparing and selecting: `setp`, `set`, `selp`, `slct` and `testp`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic import exact, halves
from gpuprof.executor.arithmetic.formats import HALVES
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_BOOL = np.dtype(np.bool_)
#: What `set` gives for a comparison that holds, as a half.
_TRUE = {kind: np.ones((), half).view(ARITHMETIC[kind]) for kind, half in HALVES.items()}


def _either_nan(a: Lanes, b: Lanes) -> Lanes:
    return np.isnan(a) | np.isnan(b)


ORDERED: dict[str, Compute] = {
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
    "nan": _either_nan,
}
#: NumPy's `!=` holds for NaN.
_OF_FLOATS = ORDERED | {"ne": lambda a, b: (a != b) & ~_either_nan(a, b)}
#: Each is the negation of another; all but the last hold also when an operand is NaN.
_NEGATED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt", "num": "nan"}
_COMBINE: dict[str, Compute] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
COMPARISONS = frozenset({*ORDERED, *_NEGATED, *_COMBINE})


def _comparison(op: Mnemonic, kind: str) -> Callable[[Lanes, Lanes], Lanes]:
    known = _OF_FLOATS if kind in ("f16", "bf16", "f32", "f64") else ORDERED
    name = next((flag for flag in op.flags if flag in {*known, *_NEGATED}), "")
    if not name:
        raise NotInTable
    compare = known[_NEGATED.get(name, name)]
    if name in _NEGATED:
        opposite = compare
        compare = lambda a, b: ~opposite(a, b)  # noqa: E731
    if op.has("ftz") and kind not in ("f32", "f16"):
        raise NotInTable

    def value(given: Lanes) -> Lanes:
        held = given.view(HALVES[kind]) if kind in HALVES else given
        return exact.flush(held) if op.has("ftz") else held

    return (lambda a, b: compare(value(a), value(b))) if kind in HALVES or op.has("ftz") else compare


def _combined(op: Mnemonic, compare: Compute) -> tuple[Compute, tuple[np.dtype[Any], ...]]:
    """Return a comparison of a and b, combined with a predicate c where the instruction has one."""
    combine = next((_COMBINE[flag] for flag in op.flags if flag in _COMBINE), None)
    if combine is None:
        return compare, ()
    return lambda a, b, c: combine(compare(a, b), c), (_BOOL,)


def lower_setp(op: Mnemonic) -> Lowered:
    """Lower `setp`: the comparison, and for a second destination its negation, each combined with c.

    Of packed halves the second destination is the comparison of the upper ones.
    """
    if op.type not in ARITHMETIC:
        raise NotInTable
    kind = op.type.removesuffix("x2")
    compare = _comparison(op, kind)
    holds, predicate = _combined(op, compare)
    sources = (op.dtype, op.dtype, *predicate)
    if kind != op.type:

        def of_part(part: int) -> Compute:
            return lambda a, b, *c: holds(halves.words_of(a)[part], halves.words_of(b)[part], *c)

        return Lowered(of_part(0), sources, of_part(1))
    fails, _ = _combined(op, lambda a, b: ~compare(a, b))
    return Lowered(holds, sources, fails)


def lower_set(op: Mnemonic) -> Lowered:
    """Lower `set`: all ones or 1.0 where the comparison holds, else zero; of packed halves, half by half."""
    target, source = op.types
    kind = source.removesuffix("x2")
    holds, predicate = _combined(op, _comparison(op, kind))
    if kind != source:
        true = _TRUE.get(target.removesuffix("x2"), np.uint16(0xFFFF)).view(np.uint16)

        def each(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
            parts = zip(halves.words_of(a), halves.words_of(b), strict=True)
            return halves.joined(*(np.where(holds(x, y, *c), true, np.uint16(0)) for x, y in parts))

        return Lowered(each, (ARITHMETIC[source], ARITHMETIC[source], *predicate))
    result = ARITHMETIC[target]
    given = np.dtype(np.uint16) if source in halves.TYPES else ARITHMETIC[source]
    one = _TRUE.get(target, result.type(1) if result.kind == "f" else np.array(-1).astype(result))
    return Lowered(
        lambda a, b, *c: np.where(holds(a, b, *c), one, result.type(0)).astype(result),
        (given, given, *predicate),
    )


def lower_selp(op: Mnemonic) -> Lowered:
    """Lower `selp`: the first operand where the predicate holds, else the second."""
    return Lowered(lambda a, b, p: np.where(p, a, b), (op.dtype, op.dtype, _BOOL))


def lower_slct(op: Mnemonic) -> Lowered:
    """Lower `slct`: the first operand where the third is not negative, else the second."""
    value, test = (ARITHMETIC[kind] for kind in op.types)
    tested: Compute = exact.flush if op.has("ftz") else lambda c: c
    return Lowered(lambda a, b, c: np.where(tested(c) >= 0, a, b), (value, value, test))


_TESTS: dict[str, Compute] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    # A zero counts as normal.
    "normal": lambda a: np.isfinite(a) & ((a == 0) | (np.abs(a) >= np.finfo(a.dtype).tiny)),
    "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
}


def lower_testp(op: Mnemonic) -> Lowered:
    """Lower `testp`: the class of a float."""
    return Lowered(_TESTS[op.flags[0]], (op.dtype,))
