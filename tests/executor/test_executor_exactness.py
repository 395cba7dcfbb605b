# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Fused multiply-add and directed rounding against exact rationals, where it is hard: ties and subnormals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from executor_harness import numpy_loop, run_instruction

from gpuprof.executor.arithmetic import exact, floats
from gpuprof.executor.arithmetic.instruction_table import TABLE
from gpuprof.executor.arithmetic.mnemonic import Mnemonic
from gpuprof.executor.arithmetic.native import hardware_loop


def nearest(value: Fraction, dtype) -> float:
    """Round to the nearest float of a type, ties to even, by bisection over bit patterns."""
    below, above = neighbours(value, dtype)
    if below == above:
        return below
    low, high = Fraction(below), Fraction(above)
    if value - low != high - value:
        return below if value - low < high - value else above
    return below if even(below, dtype) else above


def even(value: float, dtype) -> bool:
    return int(dtype(value).view(np.uint32 if dtype is np.float32 else np.uint64)) % 2 == 0


def neighbours(value: Fraction, dtype) -> tuple[float, float]:
    guess = dtype(float(value))
    with np.errstate(over="ignore"):
        while float(guess) > value:
            guess = np.nextafter(guess, dtype(-np.inf))
        while float(above := np.nextafter(guess, dtype(np.inf))) <= value:
            guess = above
    return float(guess), float(guess if float(guess) == value else above)


def rounded(value: Fraction, dtype, mode: str) -> float:
    if mode == "rn":
        return nearest(value, dtype)
    below, above = neighbours(value, dtype)
    if mode == "rz":
        return below if value > 0 else above
    return below if mode == "rm" else above


def f32_near_ties(count: int, seed: int):
    """Products whose sum with c lies on, or next to, the midpoint of two floats."""
    rng = np.random.default_rng(seed)
    a = (rng.integers(2**23, 2**24, count) * 2.0 ** rng.integers(-40, 20, count)).astype(np.float32)
    b = (rng.integers(2**23, 2**24, count) * 2.0 ** rng.integers(-40, 20, count)).astype(np.float32)
    product = a.astype(np.float64) * b
    # c is a float plus half an ulp away from the product, give or take what only the exact sum shows.
    c = (-product * (1 + rng.choice([0, 2.0**-24, 2.0**-25, 3 * 2.0**-25], count))).astype(np.float32)
    small = (product * 2.0 ** -rng.integers(20, 60, count)).astype(np.float32)
    return a, b, np.where(rng.random(count) < 0.5, c, small)


def f32_subnormal_sums(count: int, seed: int):
    rng = np.random.default_rng(seed)
    a = (rng.integers(1, 2**24, count) * 2.0**-75).astype(np.float32)
    b = (rng.integers(1, 2**24, count) * 2.0**-97).astype(np.float32)
    c = (rng.integers(-(2**23), 2**23, count) * 2.0**-149).astype(np.float32)
    return a, b, c


def fma(a, b, c, mode):
    with np.errstate(all="ignore"):
        return exact.in_mode(hardware_loop("fma", f"f{8 * a.dtype.itemsize}"), mode)(a, b, c)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("cases", [f32_near_ties, f32_subnormal_sums])
def test_f32_fma_is_rounded_once(mode, cases):
    a, b, c = cases(600, seed=3)
    got = fma(a, b, c, mode)
    np.testing.assert_array_equal(
        run_instruction(f"fma.{mode}.f32 d, a, b, c;", ("f32",) * 3, "f32", a, b, c), got
    )
    for x, y, z, result in zip(a, b, c, got, strict=True):
        value = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert float(result) == rounded(value, np.float32, mode), (x, y, z)


def f64_cases(count: int, seed: int):
    rng = np.random.default_rng(seed)
    exponent = rng.choice([-1020, -540, -500, -30, 0, 30, 500], count)
    a = rng.integers(2**52, 2**53, count) * 2.0 ** (exponent / 2).astype(int)
    b = rng.integers(2**52, 2**53, count) * 2.0 ** (exponent / 2 - 60).astype(int)
    with np.errstate(all="ignore"):
        c = (
            -(a * b)
            * (1 + rng.choice([0, 2.0**-53, 2.0**-52, 0.5], count))
            * rng.choice([1, 2.0**-54, 2.0**-70], count)
        )
    return a, b, c


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_f64_fma_is_rounded_once(mode):
    a, b, c = f64_cases(400, seed=4)
    got = fma(a, b, c, mode)
    np.testing.assert_array_equal(
        run_instruction(f"fma.{mode}.f64 d, a, b, c;", ("f64",) * 3, "f64", a, b, c), got
    )
    for x, y, z, result in zip(a, b, c, got, strict=True):
        value = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert result == rounded(value, np.float64, mode), (x, y, z)


def test_f64_fma_at_the_ends_of_the_range():
    """Where the error of a product, or of a sum, is too small or too large for a double."""
    rng = np.random.default_rng(6)
    places = [-1074, -1022, -960, -901, -899, -500, -452, -449, -60, 0, 60, 449, 451, 500, 999, 1001]
    exponents = [(a, b, c) for a in places for b in places for c in (*places, a + b, a + b - 53)]
    exponents = [some for some in exponents if all(-1074 <= e <= 1001 for e in some) and sum(some[:2]) < 960]
    significands = rng.integers(2**52, 2**53, (3, len(exponents))) * rng.choice([-1, 1], (3, len(exponents)))
    with np.errstate(all="ignore"):
        a, b, c = (
            np.array([math.ldexp(int(m), max(e - 52, -1074)) for m, e in zip(row, column, strict=True)])
            for row, column in zip(significands, zip(*exponents, strict=True), strict=True)
        )
        for mode in ("rn", "rp"):
            got = fma(a, b, c, mode)
            for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
                value = Fraction(x) * Fraction(y) + Fraction(z)
                assert result == rounded_or_infinite(value, np.float64, mode), (x, y, z)


def rounded_or_infinite(value: Fraction, dtype, mode: str) -> float:
    """`rounded`, where the value may be beyond the largest float of the type."""
    largest = Fraction(float(np.finfo(dtype).max))
    half_above = largest * (1 + Fraction(1, 2 ** (np.finfo(dtype).nmant + 2) - 2))
    if abs(value) <= largest or (mode == "rn" and abs(value) < half_above):
        return rounded(min(max(value, -largest), largest), dtype, mode)
    sign = 1.0 if value > 0 else -1.0
    inward = mode == "rz" or (mode == "rm" and value > 0) or (mode == "rp" and value < 0)
    return sign * (float(largest) if inward else math.inf)


def expected_fma(a: float, b: float, c: float, dtype, mode: str) -> float:
    """IEEE 754's fused multiply-add, but for the sign of an exact zero."""
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        return math.nan
    if math.isinf(a) or math.isinf(b):
        product = a * b  # NaN for infinity times zero
        return product + c
    if math.isinf(c):
        return c
    return rounded_or_infinite(Fraction(a) * Fraction(b) + Fraction(c), dtype, mode)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_of_extremes(dtype, mode):
    """Every combination of infinities, NaN, zeros, and finite values whose product overflows or nearly."""
    limits = np.finfo(dtype)
    root = dtype(2.0 ** (limits.maxexp // 2))
    sizes = [0.0, limits.smallest_subnormal, 1.0, 2.0, np.nextafter(root, dtype(0)), root, limits.max, np.inf]
    values = [sign * float(size) for size in sizes for sign in (1, -1)] + [math.nan]
    a, b, c = (np.array(column, dtype) for column in zip(*itertools.product(values, repeat=3), strict=True))
    got = fma(a, b, c, mode)
    assert got.dtype == dtype
    for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        expected = expected_fma(x, y, z, dtype, mode)
        assert result == expected or (math.isnan(result) and math.isnan(expected)), (x, y, z, result)
        if expected:
            assert math.copysign(1, result) == math.copysign(1, expected) or math.isnan(expected)
        elif mode == "rn" and (x == 0 or y == 0):
            assert math.copysign(1, result) == math.copysign(1, x * y + z), (x, y, z)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_directed_results_beyond_the_largest_float(dtype, mode):
    largest, half = float(np.finfo(dtype).max), 0.5
    add, multiply, divide = (exact.in_mode(each, mode) for each in (np.add, np.multiply, np.divide))
    for compute, operate, other in (
        (add, Fraction.__add__, largest),
        (multiply, Fraction.__mul__, 2.0),
        (divide, Fraction.__truediv__, half),
    ):
        for signs in itertools.product((1, -1), repeat=2):
            a, b = signs[0] * largest, (signs[0] if compute is add else signs[1]) * other
            with np.errstate(all="ignore"):
                got = float(compute(np.array([a], dtype), np.array([b], dtype))[0])
            assert got == rounded_or_infinite(operate(Fraction(a), Fraction(b)), dtype, mode), (a, b)
    with np.errstate(all="ignore"):
        for compute in (add, multiply, divide):
            infinite = compute(np.array([np.inf], dtype), np.array([-2.0], dtype))
            assert np.isinf(infinite)[0]
        assert divide(np.array([1.0], dtype), np.array([-0.0], dtype))[0] == -np.inf
        zero = multiply(np.array([-0.0], dtype), np.array([3.0], dtype))
        assert np.signbit(zero)[0]


@pytest.mark.parametrize("strides", ["lanes", "one value", "every other"])
@pytest.mark.parametrize(
    "name",
    ["add.f32", "sub.f32", "mul.ftz.f32", "fma.rn.f32", "fma.rn.ftz.f32", "add.f64", "mul.f64", "fma.rn.f64"],
)
def test_loops_of_the_cpu_give_every_bit_that_numpy_gives(name, strides, monkeypatch):
    """Patterns of all classes, NaNs with payloads among them, however the operands lie in memory."""
    op = Mnemonic.of(tuple(name.split(".")))
    bits = 8 * op.dtype.itemsize
    rng = np.random.default_rng(7)
    count = 3 if op.base == "fma" else 2
    infinity = int(np.array(np.inf, op.dtype).view(f"u{bits // 8}"))
    operands = []
    for _ in range(count):
        words = rng.integers(0, 1 << bits, 2000, dtype=f"u{bits // 8}")
        words[::3] = rng.choice([0, 1, infinity, infinity + 1, infinity + 12345], len(words[::3]))
        words[::5] |= np.array(1 << bits - 1, words.dtype)
        operands.append(words.view(op.dtype))
    if strides == "one value":
        operands[1] = operands[1][21:22]
    elif strides == "every other":
        operands = [operand[::2] for operand in operands]
    with np.errstate(all="ignore"):
        got = TABLE[op.base](op).compute(*operands)
        monkeypatch.setattr(floats, "hardware_loop", numpy_loop)
        expected = TABLE[op.base](op).compute(*operands)
    np.testing.assert_array_equal(got.view(f"u{bits // 8}"), expected.view(f"u{bits // 8}"))
