# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where wrong elements lie, in words, for arrays of any rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpuprof.problems.wrong_places import Axis, axes_of, describe_places


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
        ((100,), slice(20, 30), "elements 20 to 29"),
        ((100,), slice(96, 100), "elements 96 to 99, past the last multiple of 32"),
        ((100,), slice(90, 100), "elements 90 to 99"),
        ((1000,), slice(768, 1000), "elements 768 to 999, past the last multiple of 256"),
        ((6,), slice(4, 6), "elements 4 to 5, past the last multiple of 4"),
        ((10,), slice(8, 10), "elements 8 to 9, past the last multiple of 8"),
        ((12,), slice(8, 12), "elements 8 to 11, past the last multiple of 8"),
        ((16,), slice(8, 16), "elements 8 to 15"),
        ((11,), slice(8, 10), "elements 8 to 9"),
        ((5,), slice(0, 4), "elements 0 to 3"),
        ((5,), slice(3, 5), "elements 3 to 4"),
        ((8,), [0, 4], "one element in 4, from 0"),
        ((9,), [3, 7], "one element in 4, from 3"),
        ((7,), [0, 4], "elements between 0 and 4"),
        ((1024,), [5, 517], "one element in 512, from 5"),
        ((1026,), [5, 518], "elements between 5 and 518"),
        ((2,), [1], "the last element"),
        ((4,), [0, 2], "every other element, from 0"),
        ((1001,), slice(0, None, 2), "every other element, from 0"),
        ((1001,), slice(3, None, 7), "one element in 7, from 3"),
        ((64,), [0, 9, 33], "elements between 0 and 33"),
        ((90, 70), 5, "row 5"),
        ((90, 70), 89, "the last row"),
        ((90, 70), (ALL, slice(32, 64)), "columns 32 to 63"),
        ((90, 70), (ALL, slice(64, 70)), "columns 64 to 69, past the last multiple of 64"),
        ((90, 70), (slice(16, 32), slice(0, 16)), "columns 0 to 15 of rows 16 to 31"),
        ((90, 70), (7, 8), "column 8 of row 7"),
        ((90, 70), (slice(1, None, 2), slice(0, 8)), "columns 0 to 7 of every other row, from 1"),
        ((4, 5, 6), (2,), "index 2 of axis 0"),
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
            (100, 100),
            (slice(96, 100), (ALL, slice(96, 100))),
            "rows from 96 and columns from 96, past the last multiple of 32",
        ),
        (
            (9, 9, 9),
            (slice(8, 9), (ALL, slice(8, 9))),
            "indices from 8 of axis 0 and indices from 8 of axis 1, past the last multiple of 8",
        ),
        ((9, 8), (slice(4, 9), (ALL, slice(5, 8))), "rows from 4 and columns from 5"),
        ((9, 8), (0, slice(4, 9), (ALL, slice(5, 8))), ""),
        ((90, 70), ((3, 5), (9, 8), (4, 6)), "within rows 3 to 9 and columns 5 to 8"),
        ((90, 70), ((3, 0), (4, 69), (4, 6)), "within rows 3 to 4"),
        ((90, 70), ((0, 5), (88, 8), (4, 6)), "within rows 0 to 88 and columns 5 to 8"),
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
        (np.isin(np.arange(256) % 16, [2, 3, 9]), "3 of every 16 elements"),
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
