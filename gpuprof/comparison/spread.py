# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the samples of a case spread, round by round, for whoever draws them."""

from dataclasses import dataclass
from math import ceil

from gpuprof.results import Timing
from gpuprof.statistics import percentile

#: With fewer rounds their samples are cut into stretches in the order taken.
_FEW_ROUNDS = 3
_MOST_STRETCHES = 60


@dataclass(frozen=True, slots=True)
class Spread:
    """Some samples of one case, in microseconds.

    Args:
        low: Their 5th percentile.
        middle: Their median.
        high: Their 95th percentile.
    """

    low: float
    middle: float
    high: float


def spreads(timing: Timing) -> list[Spread]:
    """One for each round; of fewer than three rounds, one for each stretch of samples in the order taken."""
    rounds = [sorted(samples) for samples in timing.rounds_us if samples]
    if len(rounds) < _FEW_ROUNDS:
        samples = timing.samples_us
        each = ceil(len(samples) / _MOST_STRETCHES) or 1
        rounds = [sorted(samples[start : start + each]) for start in range(0, len(samples), each)]
    found = [Spread(*(percentile(samples, share) for share in (0.05, 0.5, 0.95))) for samples in rounds]
    return found or [Spread(timing.median_us, timing.median_us, timing.median_us)]
