# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Fused multiply-add and directed rounding against exact rationals, and runs of float32 arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from each import each
from executor_harness import KERNELS_BY_HAND, exact_fma, run_cuda, run_instruction

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.float_runs import Tape
from gpuprof.executor.arithmetic.native import multiply_add, player
from gpuprof.executor.steps import fusion


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
        return exact.in_mode(multiply_add(f"f{8 * a.dtype.itemsize}"), mode)(a, b, c)


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
@pytest.mark.parametrize("cases", [f32_near_ties, f32_subnormal_sums, f64_cases])
def test_fma_is_rounded_once(mode, cases):
    a, b, c = cases(600, seed=3)
    kind = f"f{8 * a.itemsize}"
    got = fma(a, b, c, mode)
    np.testing.assert_array_equal(
        run_instruction(f"fma.{mode}.{kind} d, a, b, c;", (kind,) * 3, kind, a, b, c), got
    )
    for x, y, z, result in zip(a, b, c, got, strict=True):
        value = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert float(result) == rounded(value, a.dtype.type, mode), (x, y, z)


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


SHAPES = [(3, 2, 32), (1, 2, 32), (3, 1, 32), (3, 2, 1), (1, 1, 32), (1, 1, 1)]
PORTABLE = {"fma": exact_fma, "add": np.add, "sub": np.subtract, "mul": np.multiply}


def random_source(rng, shape):
    """An array of that shape: contiguous, or one element of vectors, or a broadcast view."""
    layout = rng.integers(3)
    if layout == 0:
        return rng.standard_normal(shape, dtype=np.float32)
    if layout == 1:
        return rng.standard_normal((*shape, 4), dtype=np.float32)[..., int(rng.integers(4))]
    return np.broadcast_to(rng.standard_normal((1, 1, shape[2]), dtype=np.float32), shape)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint32)


@each(seed=range(40))
def test_a_tape_computes_what_its_instructions_do(seed):
    rng = np.random.default_rng(seed)
    tape, sources, values = Tape(), [], []
    for _ in range(int(rng.integers(1, 6))):
        sources.append(random_source(rng, SHAPES[rng.integers(len(SHAPES))]))
        values.append((tape.source(), sources[-1]))
    for _ in range(int(rng.integers(1, 60))):
        name = list(PORTABLE)[rng.integers(4)]
        chosen = [values[i] for i in rng.integers(0, len(values), 3 if name == "fma" else 2)]
        number = tape.compute(name, [number for number, _ in chosen])
        with np.errstate(all="ignore"):
            values.append((number, PORTABLE[name](*(value for _, value in chosen))))
    wanted = [values[i] for i in rng.integers(0, len(values), 5)]
    for number, _ in wanted:
        tape.target(number)
    got = tape.compiled().play(player(), sources)
    for result, (_, value) in zip(got, wanted, strict=True):
        value = np.broadcast_to(value, result.shape)
        nan = np.isnan(value)
        np.testing.assert_array_equal(bits(result)[~nan], bits(value)[~nan])
        assert np.isnan(result[nan]).all()


def test_a_nan_that_is_computed_is_that_of_the_gpu_and_one_that_is_moved_keeps_its_bits():
    given = np.full((1, 1, 32), 0xFFC01234, np.uint32).view(np.float32)
    tape = Tape()
    nan = tape.source()
    tape.target(tape.compute("mul", [nan, nan]))
    tape.target(nan)
    computed, moved = tape.compiled().play(player(), [given])
    assert (bits(computed) == 0x7FFFFFFF).all()
    assert (bits(moved) == 0xFFC01234).all()


INTERLEAVED = KERNELS_BY_HAND["stores, loads and a branch between sums"].text


def test_loads_stores_and_branches_between_sums_see_them_in_order(monkeypatch):
    """Values, counters and lines are those of a run without tapes."""
    x = np.random.default_rng(1).uniform(-0.5, 0.5, 64).astype(np.float32)
    found = []
    for fewest in (fusion._FEWEST, 10**6):
        monkeypatch.setattr(fusion, "_FEWEST", fewest)
        buffers, result = run_cuda(INTERLEAVED, x, np.zeros(64, np.float32), scalars=(3,))
        found.append((buffers[1].array().tobytes(), result.counters, result.lines))
    assert np.isfinite(buffers[1].array()).all()
    assert found[0] == found[1]
