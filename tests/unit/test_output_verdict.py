# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One verdict from several outputs, and the sentence that shows how two values differ."""

from dataclasses import replace

import pytest

from gpuprof.backends.verification import worst
from gpuprof.results import Verification

CLOSE = Verification(0.5, 0.01, bound=0.1, checked_elements=10, absolute_bound=0.001)
NEAR_ITS_BOUND = Verification(0.1, 0.009, bound=0.01, checked_elements=20, absolute_bound=0.002)
WRONG = Verification(9.0, 0.02, bound=0.1, checked_elements=5, wrong_elements=2, detail="y[3] is 9.")
NAN = Verification(None, None, bound=0.1, checked_elements=7, wrong_elements=1, detail="z[0] is nan.")
OVERRUN = Verification(0.0, 0.0, bound=0.1, checked_elements=5, detail="the kernel wrote past the end of y")


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
