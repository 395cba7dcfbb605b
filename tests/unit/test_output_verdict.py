# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One verdict from several outputs, and the sentence that shows how two values differ."""

from dataclasses import replace

import numpy as np
import pytest

from gpuprof.backends.verification import finite, worst
from gpuprof.problems.wrong_values import told_apart
from gpuprof.results import Verification

CLOSE = Verification(0.5, 0.01, bound=0.1, checked_elements=10, absolute_bound=0.001)
NEAR_ITS_BOUND = Verification(0.1, 0.009, bound=0.01, checked_elements=20, absolute_bound=0.002)
WRONG = Verification(9.0, 0.02, bound=0.1, checked_elements=5, wrong_elements=2, detail="y[3] is 9.")
NAN = Verification(None, None, bound=0.1, checked_elements=7, wrong_elements=1, detail="z[0] is nan.")
OVERRUN = Verification(0.0, 0.0, bound=0.1, checked_elements=5, detail="the kernel wrote past the end of y")


def test_only_output_is_the_verdict_itself():
    for one in (CLOSE, WRONG, NAN):
        assert worst([one]) is one


@pytest.mark.parametrize(
    ("outputs", "shown"),
    [
        ([CLOSE, NEAR_ITS_BOUND], NEAR_ITS_BOUND),  # 90 % of its bound against 10 %
        ([NEAR_ITS_BOUND, CLOSE], NEAR_ITS_BOUND),
        ([NEAR_ITS_BOUND, WRONG, CLOSE], WRONG),  # a wrong one, however small its share
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


def test_error_without_a_number_is_none():
    assert [finite(value) for value in (0.0, 1.5, float("inf"), float("nan"))] == [0.0, 1.5, None, None]


@pytest.mark.parametrize(
    ("got", "expected", "shown"),
    [
        (1.5, 2.0, ("1.5", "2")),
        (1.23456, 1.23457, ("1.23456", "1.23457")),
        (1.2345678901, 2.0, ("1.23457", "2")),
        (np.float32(1.0), np.nextafter(np.float32(1), np.float32(2)), ("1", "1.00000012")),
        (1.0, np.nextafter(1.0, 2.0), ("1", "1.0000000000000002")),
        (0.1, 0.1, ("0.10000000000000001", "0.10000000000000001")),
        (float("nan"), 2.0, ("nan", "2")),
        (np.int32(123456789), np.int64(123456788), ("123456789", "123456788")),
        (np.int32(12345678), 12345678.5, ("12345678", "12345678.5")),
        (10**18, 10**18 + 1, ("1000000000000000000", "1000000000000000001")),
    ],
)
def test_two_values_are_as_short_as_shows_their_difference(got, expected, shown):
    assert told_apart(got, expected) == shown
