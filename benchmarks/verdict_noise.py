# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A model of what rounds of identical code differ by: not a measurement, and every figure of it says so.

The logarithm of a round's median is the sum of an offset that the round draws once (where arrays and code lie
in memory), of what is left of the noise within the round, and now and then of an outlier, which only makes
slower. Both versions may have been measured in sessions of their own, which differ by an offset too.
"""

import math
import random
from dataclasses import dataclass

from gpuprof.comparison.judging import SESSIONS

#: Resolution of the clock, in microseconds: medians lie on this grid.
TICK_US = 0.032
#: Share of rounds in which a process is slow all by itself.
FLUKES = 0.01
#: By how much a round that is slow all by itself is slower on average.
FLUKE_MEAN = 0.05


@dataclass(frozen=True)
class Kind:
    """Cases of one order of time and one way to spread.

    Args:
        name: In tables.
        time_us: Of one launch.
        spread: Standard deviation of the offset between rounds.
        placements: Whether that offset takes one of two values, with little around them, or is normal.
        within: Standard deviation of a round's median for want of samples.
        slowdown: What must be found.
    """

    name: str
    time_us: float
    spread: float
    placements: bool
    within: float
    slowdown: float

    def rounds(self, count: int, rng: random.Random, factor: float = 1.0) -> list[float]:
        """Medians of so many rounds of one session, in microseconds."""
        session = rng.gauss(0, SESSIONS)
        return [self._round(session, rng) * factor for _ in range(count)]

    def _round(self, session: float, rng: random.Random) -> float:
        if self.placements:
            offset = rng.choice((-1, 1)) * self.spread + rng.gauss(0, self.spread / 4)
        else:
            offset = rng.gauss(0, self.spread)
        if rng.random() < FLUKES:
            offset += rng.expovariate(1 / FLUKE_MEAN)
        time = self.time_us * math.exp(session + offset + rng.gauss(0, self.within))
        return max(TICK_US, round(time / TICK_US) * TICK_US)


#: Spreads as identical code had on an H200: 1 to 8 % between runs below 25 us, 0.1 to 0.6 % above 100.
KINDS = (
    Kind("128, quiet", 8.0, 0.010, False, 0.003, 0.10),
    Kind("128, usual", 12.0, 0.023, False, 0.003, 0.10),
    Kind("128, restless", 8.0, 0.036, False, 0.003, 0.10),
    Kind("128, two placements", 6.0, 0.030, True, 0.003, 0.10),
    Kind("512, 30 µs", 30.0, 0.006, False, 0.002, 0.02),
    Kind("1024, quiet", 60.0, 0.003, False, 0.001, 0.02),
    Kind("1024, restless", 100.0, 0.006, False, 0.001, 0.02),
    Kind("1024, two placements", 130.0, 0.005, True, 0.001, 0.02),
    Kind("4096, quiet", 2500.0, 0.001, False, 0.0005, 0.02),
    Kind("4096, restless", 3800.0, 0.006, False, 0.0005, 0.02),
)
