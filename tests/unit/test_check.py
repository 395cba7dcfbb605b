# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The comparison that decides what is right: bounds, overflow, what never passes, and one verdict of all."""

import tomllib

import numpy as np
import pytest
from problem_support import Gemm, Transpose

from gpuprof.backends.verification import worst
from gpuprof.errors import HeaderError
from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.declaration import read_operation
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import Verification
from gpuprof.tables import TableReader

LOOSE = ErrorBound(relative=0.1, absolute=0.5, largest=1000.0)
LARGEST = {
    "f32": (2 - 2**-23) * 2.0**127,
    "f64": (2 - 2**-52) * 2.0**1023,
    "f16": 65504.0,
    "bf16": (2 - 2**-7) * 2.0**127,
}


def wrong(got, expected, magnitude=1.0, bound=LOOSE):
    values = [np.atleast_1d(np.array(value, np.float64)) for value in (got, expected, magnitude)]
    return compare(*values, bound).wrong.tolist()


@pytest.mark.parametrize(
    ("got", "expected", "magnitude", "is_wrong"),
    [
        (11.5, 10.0, 10.0, False),  # 0.1 * 10 + 0.5
        (11.51, 10.0, 10.0, True),
        (8.5, 10.0, 10.0, False),
        (8.49, 10.0, 10.0, True),
        (-0.6, 0.0, 0.0, True),
        (np.nan, 10.0, 10.0, True),
        (np.nan, np.nan, 10.0, True),
        (10.0, np.inf, 10.0, True),
        (np.inf, np.inf, np.inf, False),
        (-np.inf, np.inf, np.inf, True),
        (np.inf, 899.5, 1000.0, False),  # 899.5 + 0.1 * 1000 + 0.5
        (np.inf, 899.4, 1000.0, True),
        (-np.inf, -2000.0, 2000.0, False),
        (np.inf, -2000.0, 2000.0, True),
        (1.0, 2.0, np.inf, False),  # a magnitude beyond every double still bounds something
    ],
)
def test_element_is_right_within_its_bound(got, expected, magnitude, is_wrong):
    assert wrong(got, expected, magnitude) == [is_wrong]


def test_each_element_is_held_against_its_own_magnitude():
    assert wrong([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [10.0, 4.0, 100.0]) == [False, True, False]


def test_infinite_magnitude_does_not_let_everything_through():
    bound = ErrorBound(100 * 2.0**-53, 100 * 2.0**-1074, np.finfo(np.float64).max)
    assert wrong(1.0, 1.7e308, np.inf, bound) == [True]
    assert wrong(1.7e308, 1.7e308, np.inf, bound) == [False]


def test_equality_is_demanded_without_a_bound():
    bound = Transpose(4, 4).bound("out")
    assert (bound.relative, bound.absolute) == (0.0, 0.0)
    assert wrong([1.0, 1.0, np.inf], [1.0, np.nextafter(1.0, 2), 1e300], 1.0, bound) == [False, True, False]


def test_errors_are_the_largest_and_infinite_for_no_number():
    values = [np.array(row) for row in ([1.0, 5.0, 3.0], [1.0, 4.0, 3.25], [1.0, 2.0, 0.5])]
    compared = compare(*values, ErrorBound(1.0, 0.125, 1e9))
    assert compared.max_abs_error == 1.0
    assert compared.max_rel_error == pytest.approx((1.0 - 0.125) / 2)
    values[0][2] = np.nan
    assert compare(*values, LOOSE).max_abs_error == np.inf
    values[0][2] = -np.inf
    assert compare(*values, LOOSE).max_rel_error == np.inf


@pytest.mark.parametrize(
    ("got", "expected", "magnitude", "is_wrong", "error", "share"),
    [
        (12, 10, 15.0, False, 2.0, 2 / 15),  # 0.1 * 15 + 0.5
        (13, 10, 15.0, True, 3.0, 0.2),
        (2**62 + 1, 2**62, 0.0, True, 1.0, 1.0),  # one double stands for both
        (2**62, 2**62, 0.0, False, 0.0, 0.0),
        (0.5, 0.0, 0.0, False, 0.5, 0.0),  # what underflow explains takes no share of the magnitude
        (np.inf, 999.5, 1.0, False, 0.0, 0.0),  # nor does an overflow that is right
    ],
)
def test_integers_are_told_apart_as_integers(got, expected, magnitude, is_wrong, error, share):
    compared = compare(np.array([got]), np.array([expected]), np.array([magnitude]), LOOSE)
    assert compared.wrong.tolist() == [is_wrong]
    assert (compared.max_abs_error, compared.max_rel_error) == (error, pytest.approx(share))


@pytest.mark.parametrize(
    ("dtype", "roundoff", "smallest"), [("f32", 2**-24, 2**-149), ("f64", 2**-53, 2**-1074)]
)
def test_bound_counts_roundoffs_and_smallest_numbers(dtype, roundoff, smallest):
    factor = 8 * 3.0 + 4  # of a sum of nine products
    bound = Gemm(2, 2, 9, dtype).bound("C")
    assert bound == ErrorBound(factor * roundoff, factor * smallest + smallest / 2, LARGEST[dtype])


@pytest.mark.parametrize(
    ("dtype", "truncation", "result", "roundoff", "smallest"),
    [
        ("f16", 2**-23, "f16", 2**-11, 2**-24),
        ("bf16", 2**-23, "bf16", 2**-8, 2**-133),
        ("tf32", 2**-23, "f32", 0, 0),
        ("e4m3", 2**-13, "bf16", 2**-8, 2**-133),
    ],
)
def test_tensor_cores_truncate_sums_in_f32_and_a_narrow_result_is_rounded_once(
    dtype, truncation, result, roundoff, smallest
):
    sums = Gemm(2, 2, 9).bound("C")
    relative = sums.relative + 8 * truncation
    absolute = (8 * 3.0 + 4) * 2.0**-149 + (smallest or 2.0**-150)
    wanted = ErrorBound(relative, absolute, LARGEST[result], roundoff * (1 + relative))
    assert Gemm(2, 2, 9, dtype).bound("C") == wanted


def test_rounding_to_a_narrower_type_is_allowed_besides():
    bound = ErrorBound(relative=0.1, absolute=0.5, largest=1000.0, rounding=0.25)
    # Of a magnitude of 1, 0.1; besides, 0.5 and a quarter of what is expected.
    assert wrong([13.1, 13.05, 6.95, 6.9], [10.0] * 4, 1.0, bound) == [False, False, False, False]
    assert wrong([13.11, 6.89], [10.0] * 2, 1.0, bound) == [True, True]
    compared = compare(np.array([13.05]), np.array([10.0]), np.array([1.0]), bound)
    assert compared.max_rel_error == pytest.approx(0.05)


def declared(text, dtype, output="real"):
    """The bound of an operation's output whose check says this."""
    table = f"""
dimensions = ["n"]
default_sizes = "4"
arrays.y = {{ shape = ["n"], role = "out", dtype = "{output}" }}
work.bytes = "n"
check.y = {{ value = "arange(n)", {text} }}
"""
    operation = read_operation(TableReader(tomllib.loads(table), "operation.toml"), "sums")
    return Problem.of(operation, (4,), dtype).bound("y")


SUMS = 'relative = "n * u", absolute = "tiny", accumulate = "f32"'


def test_sums_in_a_wider_type_are_held_to_that_types_roundoff():
    bound = declared(SUMS, "f16")
    assert bound.relative == 4 * 2.0**-24
    assert bound.absolute == 2.0**-149 + 2.0**-24
    assert bound.rounding == pytest.approx(2.0**-11)
    assert bound.rounding > 2.0**-11
    assert bound.largest == 65504.0


def test_sums_have_a_type_of_numbers_with_fractions():
    with pytest.raises(HeaderError, match="accumulate is 'i32', not one of f32, f64, f16, bf16"):
        declared(SUMS.replace("f32", "i32"), "f16")


CLOSE = Verification(0.5, 0.01, bound=0.1, checked_elements=10, absolute_bound=0.001)
NEAR_ITS_BOUND = Verification(0.1, 0.009, bound=0.01, checked_elements=20, absolute_bound=0.002)
WRONG = Verification(9.0, 0.02, bound=0.1, checked_elements=5, wrong_elements=2, detail="y[3] is 9.")
NAN = Verification(None, None, bound=0.1, checked_elements=7, wrong_elements=1, detail="z[0] is nan.")
OVERRUN = Verification(0.0, 0.0, bound=0.1, checked_elements=5, detail="the kernel wrote past the end of y")


@pytest.mark.parametrize(
    ("outputs", "shown"),
    [
        ([NEAR_ITS_BOUND, CLOSE], NEAR_ITS_BOUND),
        ([NEAR_ITS_BOUND, OVERRUN], OVERRUN),
        ([WRONG, NAN, CLOSE], NAN),  # further off than any number
        ([replace(CLOSE, max_rel_error=None), NEAR_ITS_BOUND], replace(CLOSE, max_rel_error=None)),
        ([replace(CLOSE, bound=0.0), CLOSE], CLOSE),  # 0.01 where equality is demanded, against 10 %
        ([CLOSE, replace(CLOSE, bound=0.0, max_rel_error=0.2)], replace(CLOSE, bound=0.0, max_rel_error=0.2)),
    ],
)
def test_furthest_output_speaks_for_all(outputs, shown):
    verdict = worst(outputs)
    assert verdict == replace(
        shown,
        checked_elements=sum(one.checked_elements for one in outputs),
        wrong_elements=sum(one.wrong_elements for one in outputs),
    )
    assert verdict.passed == all(one.passed for one in outputs)
