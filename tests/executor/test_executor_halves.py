# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""f16 and bf16 instructions, single and packed, against exact rationals rounded once."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from executor_harness import run_cuda, run_instruction

#: NumPy type, bits of the significand, exponent of the smallest number, the largest, and 1.0's bits.
KINDS = {
    "f16": (np.dtype(np.float16), 11, -24, 65504.0, 0x3C00),
    "bf16": (np.dtype(ml_dtypes.bfloat16), 8, -133, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max), 0x3F80),
}
COUNT = 1024


@pytest.fixture(autouse=True)
def infinities_and_nan_are_meant():
    with np.errstate(all="ignore"):
        yield


both = pytest.mark.parametrize("kind", KINDS)


def patterns(kind, seed):
    """Bits of numbers of every size, close to each other often enough, and of all that is special."""
    dtype, *_, one = KINDS[kind]
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 16, COUNT).astype(np.uint16)
    bits[::3] = (one + rng.integers(-300, 300, len(bits[::3]))).astype(np.uint16)
    special = [0, 0x8000, 1, 0x8001, one, one | 0x8000, 0x7FFF, dtype.type(np.inf).view(np.uint16)]
    bits[: len(special) ** 2] = np.repeat(special, 8) if seed % 2 else np.tile(special, 8)
    return bits


def numbers(bits, kind):
    return bits.view(KINDS[kind][0]).astype(np.float64)


def rounded(value: Fraction, kind: str) -> float:
    """A rational rounded to a half, to nearest even; computed with integers only."""
    _, digits, least, largest, _ = KINDS[kind]
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    whole = round(size / unit) * unit
    return math.copysign(float(whole) if whole <= largest else math.inf, value)


def expect(got, exact, *operands, kind):
    """Hold results against exact values where all operands are finite, and against NumPy's elsewhere."""
    values = numbers(got.astype(np.uint16), kind)
    for i, parts in enumerate(zip(*operands, strict=True)):
        if all(map(math.isfinite, parts)):
            assert values[i] == rounded(exact(*map(Fraction, parts)), kind), parts
        else:
            with np.errstate(invalid="ignore"):
                wanted = exact(*map(np.float64, parts))
            assert values[i] == wanted or (np.isnan(values[i]) and np.isnan(wanted)), parts


OPERATIONS = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "fma.rn": (3, lambda a, b, c: a * b + c),
}


@both
@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_rounds_once(name, kind):
    count, exact = OPERATIONS[name]
    operands = [patterns(kind, seed) for seed in range(count)]
    letters = ", ".join("abc"[:count])
    got = run_instruction(f"{name}.{kind} d, {letters};", ("b16",) * count, "b16", *operands)
    expect(got, exact, *(numbers(bits, kind) for bits in operands), kind=kind)


@both
@pytest.mark.parametrize("name", OPERATIONS)
def test_packed_arithmetic_is_that_of_both_halves(name, kind):
    count, _ = OPERATIONS[name]
    low = [patterns(kind, seed) for seed in range(count)]
    high = [patterns(kind, seed + 7) for seed in range(count)]
    words = [a.astype(np.uint32) | b.astype(np.uint32) << 16 for a, b in zip(low, high, strict=True)]
    letters = ", ".join("abc"[:count])
    got = run_instruction(f"{name}.{kind}x2 d, {letters};", ("b32",) * count, "b32", *words)
    for part, operands in ((got & 0xFFFF, low), (got >> 16, high)):
        single = run_instruction(f"{name}.{kind} d, {letters};", ("b16",) * count, "b16", *operands)
        np.testing.assert_array_equal(part, single)


@both
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_prefer_numbers_and_tell_zeros_apart(name, kind):
    a, b = patterns(kind, 0), patterns(kind, 1)
    got = numbers(run_instruction(f"{name}.{kind} d, a, b;", ("b16",) * 2, "b16", a, b), kind)
    one, other = numbers(a, kind), numbers(b, kind)
    wanted = {"min": np.fmin, "max": np.fmax}[name](one, other)
    np.testing.assert_array_equal(got, wanted)
    zeros = (one == 0) & (other == 0)
    signs = np.signbit(one) | np.signbit(other) if name == "min" else np.signbit(one) & np.signbit(other)
    assert zeros.any()
    np.testing.assert_array_equal(np.signbit(got)[zeros], signs[zeros])
    of_nan = numbers(run_instruction(f"{name}.NaN.{kind} d, a, b;", ("b16",) * 2, "b16", a, b), kind)
    np.testing.assert_array_equal(of_nan, {"min": np.minimum, "max": np.maximum}[name](one, other))


@both
def test_clamped_results(kind):
    a, b, c = (patterns(kind, seed) for seed in range(3))
    plain = numbers(run_instruction(f"fma.rn.{kind} d, a, b, c;", ("b16",) * 3, "b16", a, b, c), kind)
    got = numbers(run_instruction(f"fma.rn.relu.{kind} d, a, b, c;", ("b16",) * 3, "b16", a, b, c), kind)
    np.testing.assert_array_equal(got, np.where(plain < 0, 0, plain))
    if kind == "f16":
        got = numbers(run_instruction("fma.rn.sat.f16 d, a, b, c;", ("b16",) * 3, "b16", a, b, c), kind)
        np.testing.assert_array_equal(got, np.where(plain > 0, np.minimum(plain, 1), 0))


COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b),
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: ~(a >= b),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
    "num": lambda a, b: ~np.isnan(a) & ~np.isnan(b),
}


@both
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, kind):
    a, b = patterns(kind, 0), patterns(kind, 1)
    wanted = COMPARISONS[name](numbers(a, kind), numbers(b, kind))
    got = run_instruction(f"setp.{name}.{kind} d, a, b;", ("b16", "b16"), "pred", a, b)
    np.testing.assert_array_equal(got, wanted)
    got = run_instruction(f"set.{name}.u32.{kind} d, a, b;", ("b16", "b16"), "u32", a, b)
    np.testing.assert_array_equal(got, np.where(wanted, 0xFFFFFFFF, 0))
    got = run_instruction(f"set.{name}.{kind}.{kind} d, a, b;", ("b16", "b16"), "b16", a, b)
    np.testing.assert_array_equal(got, np.where(wanted, KINDS[kind][-1], 0))


@both
def test_packed_comparisons(kind):
    parts = [(patterns(kind, 0), patterns(kind, 1)), (patterns(kind, 2), patterns(kind, 3))]
    less = [numbers(a, kind) < numbers(b, kind) for a, b in parts]
    words = [low.astype(np.uint32) | high.astype(np.uint32) << 16 for low, high in zip(*parts, strict=True)]
    got = run_instruction(f"set.lt.{kind}x2.{kind}x2 d, a, b;", ("b32", "b32"), "b32", *words)
    one = KINDS[kind][-1]
    np.testing.assert_array_equal(got & 0xFFFF, np.where(less[0], one, 0))
    np.testing.assert_array_equal(got >> 16, np.where(less[1], one, 0))
    for text, wanted in (("d|z", less[0]), ("z|d", less[1])):
        source = f".reg .pred z; setp.lt.{kind}x2 {text}, a, b;"
        got = run_instruction(source, ("b32", "b32"), "pred", *words)
        np.testing.assert_array_equal(got, wanted)


@both
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_conversions_from_float_round_in_every_direction(kind, mode):
    rng = np.random.default_rng(1)
    dtype, _, _, largest, _ = KINDS[kind]
    near = numbers(patterns(kind, 1), kind)
    values = np.where(np.isfinite(near), near * (1 + rng.integers(-3, 4, COUNT) * 2.0**-12), 3e38)
    values = values.astype(np.float32)
    values[:4] = (3.4e38, -3.4e38, 1e-45, -1e-45)
    got = numbers(run_instruction(f"cvt.{mode}.{kind}.f32 d, a;", ("f32",), "b16", values), kind)
    for value, result in zip(values.tolist(), got.tolist(), strict=True):
        nearest = rounded(Fraction(value), kind)
        below = value >= 0 if mode == "rz" else mode == "rm"
        if mode == "rn" or nearest == value:
            assert result == nearest
        elif below:
            assert result <= value
            up = np.nextafter(dtype.type(result), dtype.type(np.inf)) if result > -math.inf else -largest
            assert float(up) > value
        else:
            assert result >= value
            down = np.nextafter(dtype.type(result), dtype.type(-np.inf)) if result < math.inf else largest
            assert float(down) < value


@both
@pytest.mark.parametrize("source", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_conversions_from_integers_round_once(kind, source):
    bits = int(source[1:])
    rng = np.random.default_rng(3)
    drawn, shifts = rng.integers(0, 2**63, COUNT).tolist(), rng.integers(0, 63, COUNT).tolist()
    values = [value >> shift for value, shift in zip(drawn, shifts, strict=True)]
    # Just above a tie of the result's digits, which a detour through a double would lose.
    values[0] = (2 ** KINDS[kind][1] + 1) << (bits - 3 - KINDS[kind][1])
    values[1] = values[0] + 1
    values = [value % 2 ** (bits - 1) for value in values]
    dtype = np.dtype(f"{'i' if source[0] == 's' else 'u'}{bits // 8}")
    got = run_instruction(f"cvt.rn.{kind}.{source} d, a;", (source,), "b16", np.array(values, dtype))
    assert numbers(got, kind).tolist() == [rounded(Fraction(value), kind) for value in values]


@both
@pytest.mark.parametrize(("name", "function"), [("ex2.approx", np.exp2), ("tanh.approx", np.tanh)])
def test_approximations_come_near(kind, name, function):
    bits = patterns(kind, 1)
    flag = ".ftz" if kind == "bf16" and name.startswith("ex2") else ""
    got = numbers(run_instruction(f"{name}{flag}.{kind} d, a;", ("b16",), "b16", bits), kind)
    with np.errstate(over="ignore"):
        wanted = function(numbers(bits, kind))
    roundoff = 2.0 ** -KINDS[kind][1]
    close = np.abs(got - wanted) <= 2 * roundoff * np.abs(wanted) + 2.0**-24
    largest = KINDS[kind][3]
    assert (close | (got == wanted) | (np.isnan(got) & np.isnan(wanted)) | (wanted > largest)).all()


@both
def test_atomic_additions_of_halves(kind):
    source = f"""
extern "C" __global__ void k(const unsigned short *in, unsigned short *out, unsigned *pairs) {{
    unsigned short old;
    unsigned both = in[threadIdx.x] | in[threadIdx.x] << 16;
    asm volatile("atom.add.noftz.{kind} %0, [%1], %2;"
                 : "=h"(old) : "l"(out + threadIdx.x % 2), "h"(in[threadIdx.x]));
    asm volatile("red.add.noftz.{kind}x2 [%0], %1;" :: "l"(pairs), "r"(both));
}}"""
    dtype = KINDS[kind][0]
    ones = np.ones(32, dtype).view(np.uint16)
    (_, out, pairs), _ = run_cuda(source, ones, np.zeros(2, np.uint16), np.zeros(1, np.uint32))
    assert out.array().view(dtype).astype(float).tolist() == [16.0, 16.0]
    assert pairs.array().view(np.uint16).view(dtype).astype(float).tolist() == [32.0, 32.0]
