# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How much times of identical code differ from round to round, by how long a launch takes.

A round is a fresh process with fresh allocations. Between rounds arrays and code lie elsewhere, which moves
short launches by percents and long ones hardly at all. The figures are those of 30 runs of identical code on
an H200 (17,400 pairs of cases): below 25 us runs differ by 1 to 8 %, above 100 us by 0.1 to 0.6 %; kernels
whose blocks compete for the L2 cache differ by more, up to a deviation of 1.4 %.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeClass:
    """Launches of one order of duration.

    Args:
        below_us: Times of this class are shorter.
        least: Smallest relative change that is ever called one: two sessions of one card, minutes or days
            apart, may differ by as much whatever the spread within each of them.
        close: Times within this of each other are called the same.
        widest: No kernel of this class was seen to spread further: the standard deviation of round medians
            that is assumed where there are too few rounds to tell.
        usual: The same of most kernels.
    """

    below_us: float
    least: float
    close: float
    widest: float
    usual: float


CLASSES = (
    TimeClass(below_us=25.0, least=0.03, close=0.10, widest=0.05, usual=0.03),
    TimeClass(below_us=100.0, least=0.01, close=0.05, widest=0.03, usual=0.006),
    TimeClass(below_us=float("inf"), least=0.01, close=0.03, widest=0.02, usual=0.004),
)

#: Standard deviation of the offset that all rounds of one session share: temperature and clocks of that hour.
SESSIONS = 0.0015
#: Standard deviation between cards of one kind that is assumed where there are too few of them to tell.
#: Copies through the memory of H200s differ by 0.6 % from the slowest recorded run to the fastest.
CARDS = 0.004
#: Share of rounds in which a process is slow all by itself, by 5 % on average.
FLUKES = 0.01


def class_of(time_us: float) -> TimeClass:
    """The class of a launch that takes so long."""
    return next(kind for kind in CLASSES if time_us < kind.below_us)
