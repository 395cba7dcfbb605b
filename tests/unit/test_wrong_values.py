# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What wrong elements look like and where they lie: found where they are, and not claimed where not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.references import Expected
from gpuprof.problems.wrong_places import Axis, axes_of, describe_places
from gpuprof.problems.wrong_values import WrongResult, describe_values
from gpuprof.records import replace

BOUND = ErrorBound(relative=1e-5, absolute=1e-6, largest=3e38)
EXACT = ErrorBound(relative=0.0, absolute=0.0, largest=2.0**31)


def right(*shape, seed=1):
    return np.random.default_rng(seed).uniform(1, 5, shape) * np.random.default_rng(seed + 1).choice(
        [-1, 1], shape
    )


def said(got, expected, bound=BOUND, unwritten=None, scalars=None, shape=None):
    got, flat = np.asarray(got).ravel(), np.asarray(expected).ravel()
    magnitude = np.abs(flat).astype(np.float64)
    wrong = compare(got, flat, magnitude, bound).wrong
    shape = expected.shape if shape is None else shape
    missing = None if unwritten is None else np.asarray(unwritten).ravel()
    if missing is not None:
        wrong = wrong | missing
    assert wrong.any()
    return describe_values(
        WrongResult(
            shape,
            axes_of(len(shape)) if shape else (),
            got,
            Expected(flat, magnitude),
            wrong,
            missing,
            bound,
            scalars or {},
        )
    )


def test_unwritten_in_whole_and_in_part():
    expected = right(8, 6)
    got = expected.copy()
    got[3] = np.nan
    mask = np.zeros((8, 6), np.bool_)
    mask[3] = True
    assert said(got, expected, unwritten=mask) == "were never written"
    got[5] += 1
    assert said(got, expected, unwritten=mask) == "include 6 that were never written"
    # What holds poison by chance, but is right, is none of them.
    mask[0] = False
    assert said(expected + 1, expected, unwritten=np.zeros((8, 6), np.bool_)) == "are 1 too large"


def test_small_errors_may_be_rounding():
    expected, narrow = right(8, 6), replace(BOUND, relative=1e-7, absolute=0.0)
    got = expected.copy()
    got[1, ::2] += 4e-6
    got[1, 1::2] -= 3e-6
    assert said(got, expected, narrow) == f"differ in their last digits, by at most 4e-06{ALLOW}"
    got[2] += 1e-3
    assert said(got, expected, narrow) == ""
    expected[1, 0] = np.nan  # a number in its place is no rounding
    got[:] = np.nan_to_num(expected + np.where(np.arange(6) % 2, 4e-6, -3e-6))
    assert said(got, expected, narrow) == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (0.0, "are 0"),
        (np.nan, "are NaN"),
        (np.inf, "are infinite"),
    ],
)
def test_one_value_that_says_it_all(values, words):
    expected = right(8, 6)
    got = expected.copy()
    got[2:4] = values
    assert said(got, expected) == words
    # Of a single element too.
    alone = expected.copy()
    alone[0, 0] = values
    assert said(alone, expected) == words


def test_rounding_alone_is_told_where_the_very_bits_are_asked_for():
    expected = right(8, 6).astype(np.float32)
    got = np.nextafter(expected, np.float32(9))
    words = 'differ by rounding alone, which equal = true does not allow, and relative = "4 * u" does'
    assert said(got, expected, EXACT) == words
    got[0, 0] *= np.float32(1 + 2.0**-20)
    assert said(got, expected, EXACT) != words
    assert said(expected.astype(np.int32) + 1, expected.astype(np.int32), EXACT) == "are 1 too large"


LINE, TABLE, CUBE, SEVENS = right(50), right(9, 8), right(4, 5, 6), np.arange(100) * 7
INTEGERS = np.random.default_rng(3).integers(-50, 50, (6, 7))
TWO_VALUES = np.where(np.arange(64).reshape(8, 8) % 5, 3.0, 5.0)
ALLOW = ": a larger relative allows that, or the magnitude of a sum's terms"
LAST_DIGITS = f"differ in their last digits, by at most 9.6e-05{ALLOW}"
NEARLY = np.where(np.arange(50) == 7, 1, 1e3 * LINE)
ODD = np.array([*right(18), 0.0, np.inf])
TRANSPOSED, ELSEWHERE = "are the right values, transposed", "are the right values in other places"


@pytest.mark.parametrize(
    ("got", "expected", "bound", "words"),
    [
        *((one.T.copy(), one, BOUND, TRANSPOSED) for one in (right(7, 7), right(5, 9), right(9, 5))),
        (INTEGERS.T.astype(np.int8), INTEGERS, EXACT, TRANSPOSED),
        # All of it, or it is none.
        (np.where(np.arange(49).reshape(7, 7) == 17, 9.0, right(7, 7).T), right(7, 7), BOUND, ""),
        (np.roll(LINE, 1), LINE, BOUND, "are those that belong one element before"),
        (np.roll(CUBE, -1, 2), CUBE, BOUND, "are those that belong one index of axis 2 after"),
        (np.roll(INTEGERS, 1, 1), INTEGERS, EXACT, "are those that belong one column before"),
        (TABLE + 0.25, TABLE, BOUND, "are 0.25 too large"),
        (TABLE - 1.5, TABLE, BOUND, "are 1.5 too small"),
        ((SEVENS - 1).astype(np.int32), SEVENS, EXACT, "are 1 too small"),
        # The same everywhere, or it is none.
        # Nor are they rounding, however small beside the largest value.
        (1e5 * LINE + 9, 1e5 * LINE, BOUND, "are 9 too large"),
        (np.arange(1e5) + 1, np.arange(1e5), BOUND, "are those that belong one element after"),
        (LINE + 1.5 * (1 + 2e-3 * (np.arange(50) == 4)), LINE, BOUND, ""),
        (np.zeros((6, 7), np.int32), INTEGERS, EXACT, "are 0"),
        (TABLE[::-1], TABLE, BOUND, ELSEWHERE),
        (TABLE[::-1, ::-1].astype(np.float32), TABLE, BOUND, ELSEWHERE),
        # Values that are all alike, or of two kinds, have no places.
        (np.full((8, 8), 5.0), np.full((8, 8), 3.0), BOUND, "are 1.67 times what they must be"),
        (TWO_VALUES.T.copy(), TWO_VALUES, BOUND, ""),
        # Zeros and infinities do not hide a factor.
        (3 * ODD, ODD, BOUND, "are 3 times what they must be"),
        # Nor does a sum that nearly vanishes, which is off by roundoffs of its terms.
        (3 * NEARLY + 1e-3 * (NEARLY == 1), NEARLY, BOUND, "are 3 times what they must be"),
        ((1 + 2e-5) * ODD, ODD, ErrorBound(relative=1e-5, absolute=0, largest=3e38), LAST_DIGITS),
    ],
)
def test_likenesses(got, expected, bound, words):
    assert said(got, expected, bound) == words


@pytest.mark.parametrize(
    ("axis", "step", "words"),
    [
        (0, 1, "are those that belong one row before"),
        (0, -1, "are those that belong one row after"),
        (1, 1, "are those that belong one column before"),
        (1, -1, "are those that belong one column after"),
    ],
)
def test_shifted(axis, step, words):
    expected = right(9, 8)
    got = np.roll(expected, step, axis)
    # At the edge a shift has nothing to take from: whatever is there.
    edge = 0 if step > 0 else -1
    got[(edge, slice(None)) if axis == 0 else (slice(None), edge)] = 77.0
    assert said(got, expected) == words


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1 / 1.5, "lack the factor alpha = 1.5"),
        (1.5, "have the factor alpha = 1.5 once too often"),
        (-1.0, "have the wrong sign"),
        (2.0, "are 2 times what they must be"),
    ],
)
def test_scaled(factor, words):
    expected = right(9, 8)
    scalars = {"alpha": 1.5, "beta": 0.0, "one": 1.0}
    assert said((factor * expected).astype(np.float32), expected, scalars=scalars) == words
    part = expected.copy()
    part[:, 2:4] *= factor
    assert said(part, expected, scalars=scalars) == words


def test_of_some_elements_only_what_needs_no_shape_is_said():
    expected = right(90)
    assert said(2 * expected, expected, shape=()) == "are 2 times what they must be"
    assert said(np.roll(expected, 1), expected, shape=()) == "are the right values in other places"


@pytest.mark.parametrize(("off", "words"), [(3.5, "are 2 times what they must be"), (4.5, "")])
def test_likeness_is_held_to_four_times_the_bound(off, words):
    expected = np.array([1.0, 3.0, -2.0, 5.0, 4.0])
    got = 2 * expected
    got[1] += 2 * 3 * off * BOUND.relative
    assert said(got, expected, replace(BOUND, absolute=0.0)) == words


def test_shift_is_told_where_at_least_half_have_a_neighbour():
    expected = right(2, 6)
    got = np.roll(expected, 1, 0)
    got[0] = 77.0
    assert said(got, expected) == "are those that belong one row before"
    expected = right(1, 6)
    got = np.full((1, 6), 77.0)
    assert said(got, expected) == ""
    got[0, 1:] = expected[0, :-1]
    assert said(got, expected) == "are those that belong one column before"


def places(shape, *chosen, axes=None):
    """What is said where these parts of an array are wrong."""
    wrong = np.zeros(shape, np.bool_)
    for part in chosen:
        wrong[part] = True
    return describe_places(wrong, axes or axes_of(len(shape)))


ALL = slice(None)


@pytest.mark.parametrize(
    ("shape", "part", "words"),
    [
        ((100,), slice(3, 4), "element 3"),
        ((100,), slice(99, 100), "the last element"),
        ((100,), slice(90, 100), "elements 90 to 99"),
        ((1000,), slice(768, 1000), "elements 768 to 999, past the last multiple of 256"),
        ((12,), slice(8, 12), "elements 8 to 11, past the last multiple of 8"),
        ((16,), slice(8, 16), "elements 8 to 15"),
        ((11,), slice(8, 10), "elements 8 to 9"),
        ((8,), [0, 4], "one element in 4, from 0"),
        ((7,), [0, 4], "elements between 0 and 4"),
        ((1026,), [5, 518], "elements between 5 and 518"),
        ((1001,), slice(0, None, 2), "every other element, from 0"),
        ((1001,), slice(3, None, 7), "one element in 7, from 3"),
        ((90, 70), 89, "the last row"),
        ((90, 70), (ALL, slice(64, 70)), "columns 64 to 69, past the last multiple of 64"),
        ((90, 70), (slice(16, 32), slice(0, 16)), "columns 0 to 15 of rows 16 to 31"),
        ((90, 70), (7, 8), "column 8 of row 7"),
        ((90, 70), (slice(1, None, 2), slice(0, 8)), "columns 0 to 7 of every other row, from 1"),
        ((4, 5, 6), (ALL, ALL, slice(1, 3)), "indices 1 to 2 of axis 2"),
        ((4, 5, 6), (3, ALL, 5), "the last index of axis 2 of the last index of axis 0"),
    ],
)
def test_a_box_is_told_by_its_indices(shape, part, words):
    assert places(shape, part) == words


@pytest.mark.parametrize(
    ("shape", "parts", "words"),
    [
        (
            (100, 70),
            (slice(96, 100), (ALL, slice(64, 70))),
            "rows from 96, past the last multiple of 32 and columns from 64, past the last multiple of 64",
        ),
        (
            (9, 9, 9),
            (slice(8, 9), (ALL, slice(8, 9))),
            "indices from 8 of axis 0 and indices from 8 of axis 1, past the last multiple of 8",
        ),
        ((9, 8), (slice(4, 9), (ALL, slice(5, 8))), "rows from 4 and columns from 5"),
        ((9, 8), (0, slice(4, 9), (ALL, slice(5, 8))), ""),
        ((90, 70), ((3, 0), (4, 69), (4, 6)), "within rows 3 to 4"),
        ((5, 5), ((0, 0), (1, 3), (4, 1)), "within columns 0 to 3"),
        ((3, 4), (ALL,), ""),
    ],
)
def test_several_parts_are_told_together(shape, parts, words):
    assert places(shape, *parts) == words


def test_words_for_axes_may_be_given():
    assert places((90, 70), 5, axes=(Axis("column", "columns"), Axis("row", "rows"))) == "column 5"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.arange(200) % 32 >= 28, "elements 28 to 31 of every 32"),
        (np.eye(9), "the diagonal"),
        (1 - np.eye(9), "all but the diagonal"),
        (np.triu(np.ones((9, 9)), 1), "all above the diagonal"),
        (np.tril(np.ones((9, 9)), -1), "all below the diagonal"),
        (np.triu(np.ones((9, 9))), "the diagonal and all above it"),
        (np.tril(np.ones((9, 9))), "the diagonal and all below it"),
        (np.random.default_rng(0).random((50, 60)) < 0.5, ""),
    ],
)
def test_patterns_have_names(wrong, words):
    assert describe_places(wrong.astype(np.bool_), axes_of(wrong.ndim)) == words


@given(hnp.arrays(np.bool_, hnp.array_shapes(max_dims=4, max_side=9)).filter(np.any))
def test_any_mask_has_words_or_reaches_from_end_to_end(wrong):
    ends = [
        np.flatnonzero(np.moveaxis(wrong, axis, 0).reshape(extent, -1).any(1))
        for axis, extent in enumerate(wrong.shape)
    ]
    reaches = all(
        end[0] == 0 and end[-1] == extent - 1 for end, extent in zip(ends, wrong.shape, strict=True)
    )
    assert describe_places(wrong, axes_of(wrong.ndim)) or reaches


@given(st.integers(5, 2000), st.data())
def test_a_range_is_told_exactly(extent, data):
    first = data.draw(st.integers(0, extent - 2))
    last = data.draw(st.integers(first + 1, extent - 1).filter(lambda last: (first, last) != (0, extent - 1)))
    assert places((extent,), slice(first, last + 1)).partition(",")[0] == f"elements {first} to {last}"
