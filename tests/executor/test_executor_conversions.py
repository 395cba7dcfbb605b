# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cvt` between every two types, in every rounding mode, against exact rationals and PTX's rules."""

import math
from fractions import Fraction

import numpy as np
import pytest
from each import each
from executor_harness import run_instruction
from float_formats import FLOATS, same

from gpuprof.executor import UnsupportedInstruction

INTEGERS = [f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)]
MODES = ("rn", "rz", "rm", "rp")


def words(kind: str) -> list[int]:
    """Bit patterns of a float type: special ones, near powers of two, whole numbers and halves, and any.

    Also those in the middle of two neighbours of a narrower type, and next to the middle.
    """
    form, rng = FLOATS[kind], np.random.default_rng(7)
    top = form.bits - 1
    hidden = form.fraction_bits
    infinity = (2 * form.bias + 1) << hidden
    found = [0, 1, (1 << hidden) - 1, 1 << hidden, infinity - 1, infinity, infinity + 1]
    for power in (-150, -134, -127, -25, -15, -14, -2, -1, 0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 127):
        if 0 < power + form.bias < 2 * form.bias + 1:
            at = (power + form.bias) << hidden
            found += [at - 1, at, at + 1, at + (1 << (hidden - 1)), at + 3 * (1 << (hidden - 2))]
    found += [int(word) for word in rng.integers(0, infinity, 40, dtype=np.uint64)]
    for narrow in FLOATS.values():
        cut = hidden - narrow.fraction_bits
        if cut > 0:
            ends = [(form.bias + 5 << hidden) + (last << cut) for last in range(4)]
            found += [end + (1 << cut - 1) + more for end in ends for more in (-1, 0, 1)]
    return [word | sign << top for word in found for sign in (0, 1)]


def numbers(kind: str) -> list[int]:
    """Values of an integer type: its ends, and next to halves of the last places that floats have."""
    bits, signed, rng = int(kind[1:]), kind[0] == "s", np.random.default_rng(8)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    near = [0, 1, 2, 255, 256, 257, 65504, 65519, 65520, 65521, 2**24, 2**24 + 1, 2**24 + 3, 2**53 + 1]
    near += [(1 << 60) + (1 << 60 - drop) + more for drop in (8, 11, 12, 24, 53) for more in (-1, 0, 1)]
    near += [int(n) >> shift for shift, n in enumerate(rng.integers(2**62, 2**63, 63))]
    return sorted({low, low + 1, high - 1, high, *(n for v in near for n in (v, -v) if low <= n <= high)})


def convert(opcode: str, source: str, target: str, values: list[int]) -> list[int]:
    """Run one conversion of bit patterns; returns bit patterns."""
    registers = [FLOATS[kind].register if kind in FLOATS else f"u{kind[1:]}" for kind in (source, target)]
    masked = [value & ((1 << 8 * np.dtype(_numpy(registers[0])).itemsize) - 1) for value in values]
    got: list[int] = []
    for start in range(0, len(masked), 1024):  # threads of a block
        part = masked[start : start + 1024]
        got += run_instruction(f"{opcode} d, a;", (registers[0],), registers[1], part).tolist()
    return got


def _numpy(register: str) -> str:
    return "uint16" if register == "b16" else f"uint{register[1:]}"


def flushed(value: float) -> float:
    """Without the subnormal numbers of float32."""
    return math.copysign(0.0, value) if abs(value) < 2.0**-126 else value


NARROWER = [
    *(
        (source, target, mode)
        for source, target in (("f64", "f32"), ("f64", "f16"), ("f32", "f16"))
        for mode in MODES
    ),
    *((source, "bf16", mode) for source in ("f32", "f64") for mode in ("rn", "rz")),
]


@pytest.mark.parametrize(
    ("source", "target", "mode", "flush"),
    [(*one, False) for one in NARROWER] + [(*one, True) for one in NARROWER if "f32" in one],
)
def test_narrower_floats(source, target, mode, flush):
    given = words(source)
    got = convert(f"cvt.{mode}{'.ftz' if flush else ''}.{target}.{source}", source, target, given)
    for word, result in zip(given, got, strict=True):
        value = FLOATS[source].decode(word)
        if flush and source == "f32":
            value = flushed(value)
        expected = value
        if value and math.isfinite(value):
            expected = FLOATS[target].rounded(Fraction(value), mode)
        if flush and target == "f32":
            expected = flushed(expected)
        assert same(FLOATS[target], result, expected), (value, result)


@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("target", ["f16", "bf16"])
@pytest.mark.parametrize("clamps", ["relu", "satfinite", "relu.satfinite"])
def test_clamped_halves(mode, target, clamps):
    given = words("f32")
    form = FLOATS[target]
    largest = form.rounded(Fraction(10) ** 60, "rz")
    for word, result in zip(
        given, convert(f"cvt.{mode}.{clamps}.{target}.f32", "f32", target, given), strict=True
    ):
        value = FLOATS["f32"].decode(word)
        expected = form.rounded(Fraction(value), mode) if value and math.isfinite(value) else value
        if "satfinite" in clamps and abs(expected) > largest:
            expected = math.copysign(largest, expected)
        if "relu" in clamps and expected <= 0:
            expected = 0.0
        assert same(form, result, expected), (value, result)


@pytest.mark.parametrize("name", ["cvt.rn.relu.f16.f64", "cvt.rn.satfinite.f16.s32", "cvt.rs.f16x2.f32"])
def test_modifiers_that_are_not_modelled_are_named(name):
    with pytest.raises(UnsupportedInstruction, match=name.replace(".", r"\.")):
        convert(name, name.split(".")[-1], "f16", [0])


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "f64"), ("f16", "f64"), ("f16", "f32"), ("bf16", "f32"), ("bf16", "f64")]
)
def test_wider_floats_are_exact(source, target):
    given = words(source)
    for word, result in zip(given, convert(f"cvt.{target}.{source}", source, target, given), strict=True):
        assert same(FLOATS[target], result, FLOATS[source].decode(word)), word


def test_widening_flushes_what_it_reads():
    given = words("f32")
    for word, result in zip(given, convert("cvt.ftz.f64.f32", "f32", "f64", given), strict=True):
        assert same(FLOATS["f64"], result, flushed(FLOATS["f32"].decode(word))), word


INTEGRAL = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("source", FLOATS)
@each(target=INTEGERS, mode=INTEGRAL)
def test_floats_to_integers_round_and_clamp(source, target, mode):
    bits, signed = int(target[1:]), target[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    given = words(source)
    for word, result in zip(
        given, convert(f"cvt.{mode}.{target}.{source}", source, target, given), strict=True
    ):
        value = FLOATS[source].decode(word)
        if math.isnan(value):  # PTX ISA, cvt: 0, or the top bit alone where either side has 64 bits
            expected = 1 << (bits - 1) if source == "f64" or bits == 64 else 0
        elif math.isinf(value):
            expected = high if value > 0 else low
        else:
            expected = min(max(INTEGRAL[mode](Fraction(value)), low), high)
        assert result == expected & ((1 << bits) - 1), value


def test_rounding_to_an_integer_flushes_what_it_reads():
    tiny = [1, 1 << 31 | 1, (1 << 23) - 1, 1 << 23]
    assert convert("cvt.rpi.ftz.s32.f32", "f32", "s32", tiny) == [0, 0, 0, 1]
    assert convert("cvt.rpi.s32.f32", "f32", "s32", tiny) == [1, 0, 1, 1]


@pytest.mark.parametrize("mode", INTEGRAL)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_floats_to_integral_floats_of_their_type(kind, mode):
    given = words(kind)
    for word, result in zip(given, convert(f"cvt.{mode}.{kind}.{kind}", kind, kind, given), strict=True):
        value = FLOATS[kind].decode(word)
        if math.isfinite(value):
            value = math.copysign(float(INTEGRAL[mode](Fraction(value))), value)
        assert same(FLOATS[kind], result, value), word


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_saturation_clamps_to_one_and_makes_nan_zero(kind):
    given = words(kind)
    for word, result in zip(given, convert(f"cvt.sat.{kind}.{kind}", kind, kind, given), strict=True):
        value = FLOATS[kind].decode(word)
        assert same(FLOATS[kind], result, min(value, 1.0) if value > 0 else 0.0), value


@pytest.mark.parametrize("source", INTEGERS)
@each(target=FLOATS, mode=MODES)
def test_integers_to_floats_are_rounded_once(source, target, mode):
    given = numbers(source)
    for value, word in zip(
        given, convert(f"cvt.{mode}.{target}.{source}", source, target, given), strict=True
    ):
        assert same(FLOATS[target], word, FLOATS[target].rounded(Fraction(value), mode) if value else 0.0), (
            value
        )


@pytest.mark.parametrize("source", INTEGERS)
@each(target=INTEGERS, saturate=[False, True])
def test_integers_to_integers_wrap_or_clamp(source, target, saturate):
    bits, signed = int(target[1:]), target[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    given = numbers(source)
    got = convert(f"cvt{'.sat' if saturate else ''}.{target}.{source}", source, target, given)
    wanted = [min(max(value, low), high) if saturate else value for value in given]
    assert got == [value & ((1 << bits) - 1) for value in wanted]
