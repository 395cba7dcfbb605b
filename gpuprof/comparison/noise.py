# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How much times of identical code differ from run to run, by how long a launch takes.

A round is a fresh process with fresh allocations. Between rounds arrays and code lie elsewhere, which moves
short launches by percents and long ones hardly at all. One round shows nothing of that, so it is known
beforehand: `python benchmarks/verdicts.py --prior` fits these deviations to recorded runs of identical code
(benchmarks/recorded-*.json.xz: several H200s, hours and days apart, and an H100). docs/verdicts.md says how
well they hold.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeClass:
    """Launches of one order of duration.

    Args:
        below_us: Times of this class are shorter.
        deviation: Standard deviation between runs of identical code, as a share of the time.
        least: Smallest relative change that is ever called one: two sessions of one card, minutes or days
            apart, may differ by as much whatever the spread within each of them.
        close: Times within this of each other are called the same.
    """

    below_us: float
    deviation: float
    least: float
    close: float


CLASSES = (
    TimeClass(below_us=10.0, deviation=0.026, least=0.03, close=0.30),
    TimeClass(below_us=25.0, deviation=0.017, least=0.03, close=0.20),
    TimeClass(below_us=100.0, deviation=0.0062, least=0.01, close=0.08),
    TimeClass(below_us=float("inf"), deviation=0.0031, least=0.01, close=0.05),
)
#: How many degrees of freedom these deviations count for, beside those of the rounds themselves: recorded
#: runs differ as Student's t with so many does.
PRIOR_DEGREES = 10
#: Standard deviation of the offset that all rounds of one session share: temperature and clocks of that hour.
SESSIONS = 0.0015
#: Standard deviation between healthy cards of one kind: copies through the memory of H200s differ by 0.6 %
#: from the slowest recorded run to the fastest.
CARDS = 0.003
#: Share of rounds in which a process is slow all by itself, by 5 % on average.
FLUKES = 0.01


def class_of(time_us: float) -> TimeClass:
    """The class of a launch that takes so long."""
    return next(kind for kind in CLASSES if time_us < kind.below_us)
