# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Half-precision instructions against exact rationals, alone and two in a word."""

import math
from fractions import Fraction

import numpy as np
import pytest
from executor_harness import run_instruction
from float_formats import FLOATS, Format, same

from gpuprof.executor import UnsupportedInstruction


def exactly(form: Format, value: float) -> float:
    """A finite sum or product rounded once; anything else as it is."""
    return form.rounded(Fraction(value), "rn") if value and math.isfinite(value) else value


def added(form: Format, a: float, b: float, sign: int = 1) -> float:
    if math.isfinite(a) and math.isfinite(b) and (total := Fraction(a) + sign * Fraction(b)):
        return form.rounded(total, "rn")
    return a + sign * b


def fused(form: Format, a: float, b: float, c: float) -> float:
    if all(map(math.isfinite, (a, b, c))) and (total := Fraction(a) * Fraction(b) + Fraction(c)):
        return form.rounded(total, "rn")
    return a * b + c


def lesser(a: float, b: float) -> float:
    """The smaller number; of zeros the negative one; NaN only of two."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min((a, b), key=lambda value: (value, math.copysign(1, value)))


OPERATIONS = {
    "add": (2, added),
    "sub": (2, lambda form, a, b: added(form, a, b, -1)),
    "mul": (2, lambda form, a, b: exactly(form, a * b)),
    "min": (2, lambda form, a, b: lesser(a, b)),
    "max": (2, lambda form, a, b: -lesser(-a, -b)),
    "fma.rn": (3, fused),
    "neg": (1, lambda form, a: -a),
    "abs": (1, lambda form, a: abs(a)),
}


def words(kind: str, count: int) -> list[np.ndarray]:
    """Bit patterns: special ones against each other, then any."""
    form, rng = FLOATS[kind], np.random.default_rng(9)
    infinity = (2 * form.bias + 1) << form.fraction_bits
    special = [
        0,
        1,
        1 << form.fraction_bits,
        form.bias << form.fraction_bits,
        infinity - 1,
        infinity,
        infinity + 1,
    ]
    special += [word | 1 << 15 for word in special]
    pairs = [(a, b) for a in special for b in special]
    columns = [np.array([pair[i % 2] for pair in pairs]) for i in range(count)]
    return [np.concatenate([column, rng.integers(0, 1 << 16, 600)]) for column in columns]


@pytest.mark.parametrize("packed", [False, True], ids=["one", "two"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_halves_are_rounded_once(name, kind, packed):
    count, expected = OPERATIONS[name]
    form, columns = FLOATS[kind], words(kind, count)
    operands = ", ".join("abc"[:count])
    if packed:
        given = [column[0::2] | column[1::2] << 16 for column in columns]
        got = run_instruction(f"{name}.{kind}x2 d, {operands};", ("b32",) * count, "b32", *given)
        got = np.stack([got & 0xFFFF, got >> 16], axis=1).ravel()
    else:
        got = run_instruction(f"{name}.{kind} d, {operands};", ("b16",) * count, "b16", *columns)
    for result, *bits in zip(got.tolist(), *(column.tolist() for column in columns), strict=True):
        values = [form.decode(word) for word in bits]
        assert same(form, result, expected(form, *values)), (values, form.decode(result))


def test_modifiers_of_halves_that_are_not_modelled_are_named():
    for name, kind in (("add.sat.f16", "b16"), ("min.NaN.f16", "b16"), ("add.ftz.f16x2", "b32")):
        with pytest.raises(UnsupportedInstruction, match=name.replace(".", r"\.")):
            run_instruction(f"{name} d, a, b;", (kind, kind), kind, [0], [0])
