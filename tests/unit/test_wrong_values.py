# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What wrong elements look like: each likeness is found where it is, and not claimed where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from gpuprof.problems.behaviour import Expected
from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.wrong_places import axes_of
from gpuprof.problems.wrong_values import WrongResult, describe_values

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
    assert said(got, expected, unwritten=mask) == "are 6 that were never written and 6 others"
    # What holds poison by chance, but is right, is none of them.
    mask[0] = False
    assert said(expected + 1, expected, unwritten=np.zeros((8, 6), np.bool_)) == "are 1 too large"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (0.0, "are 0"),
        (-0.0, "are 0"),
        (np.nan, "are NaN"),
        (np.inf, "are infinite"),
        (-np.inf, "are infinite"),
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


LINE, TABLE, CUBE, SEVENS = right(50), right(9, 8), right(4, 5, 6), np.arange(100) * 7
INTEGERS = np.random.default_rng(3).integers(-50, 50, (6, 7))
TWO_VALUES = np.where(np.arange(64).reshape(8, 8) % 5, 3.0, 5.0)
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
        (LINE + 1.5 * (1 + 2e-3 * (np.arange(50) == 4)), LINE, BOUND, ""),
        (np.zeros((6, 7), np.int32), INTEGERS, EXACT, "are 0"),
        (TABLE[::-1], TABLE, BOUND, ELSEWHERE),
        (TABLE[::-1, ::-1].astype(np.float32), TABLE, BOUND, ELSEWHERE),
        # Values that are all alike, or of two kinds, have no places.
        (np.full((8, 8), 5.0), np.full((8, 8), 3.0), BOUND, "are 1.67 times what they must be"),
        (TWO_VALUES.T.copy(), TWO_VALUES, BOUND, ""),
        # Zeros and infinities do not hide a factor.
        (3 * ODD, ODD, BOUND, "are 3 times what they must be"),
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
        (0.125, "are 0.125 times what they must be"),
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
    got[0] += 2 * off * BOUND.relative
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
