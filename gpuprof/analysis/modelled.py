# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a modelled time may be said to tell: its interval, and which of two is less.

Two versions of one kernel on one card share most of what the model errs by. The factor between two modelled
times is therefore as uncertain as the upper side of either's interval, and no more: of the rungs of every
ladder and those that they come from, docs/data/model-errors.csv has nine of ten within it
(tests/unit/test_modelled.py). A card that nobody measured has wider intervals, and is told by the same rule.
"""

import math

from gpuprof.analysis import numbers
from gpuprof.results import Model


def modelled_text(model: Model) -> str:
    """A modelled time with its interval: `2.5 ms modelled (2.1 ms–3.3 ms)`."""
    return model_interval(model).replace(" (", " modelled (")


def model_interval(model: Model) -> str:
    """The same in a column whose head says that it is modelled."""
    low, high = numbers.time_us(model.low_us, 2), numbers.time_us(model.high_us, 2)
    return f"{numbers.time_us(model.median_us, 2)} ({low}–{high})"


def difference_error(one: Model, other: Model) -> float:
    """By what logarithm the factor between two modelled times may be off."""
    return max(math.log(each.high_us / each.median_us) for each in (one, other))


def too_near(one: Model, other: Model) -> bool:
    """Whether the model cannot tell which of two takes less."""
    return abs(math.log(other.median_us / one.median_us)) <= difference_error(one, other)
