# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far two samples lie apart, from their order alone: no distribution is assumed.

Round medians of a kernel are not normal: below 25 us they take one of a few values by where the arrays and
the code happen to lie, and now and then a round is an outlier. Ranks need only that rounds of identical code
are exchangeable. H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is
stochastically larger than the other" (Annals of Mathematical Statistics 18, 1947), for the distribution of
the count; J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests" (same, 34, 1963), for
the estimate; the interval is the test inverted, as in M. Hollander, D. A. Wolfe and E. Chicken,
"Nonparametric statistical methods", section 4.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

#: Products of sample sizes up to which the null distribution is counted out; beyond, it is as good as normal.
_MOST_COUNTED = 3600


@dataclass(frozen=True, slots=True)
class Shift:
    """By how much the values of one sample exceed those of another.

    Args:
        estimate: Median of all pairwise differences (Hodges and Lehmann).
        low: Lower end of its confidence interval; None where the samples are too small for any.
        high: Upper end.
    """

    estimate: float
    low: float | None
    high: float | None


def shift(base: Sequence[float], new: Sequence[float], alpha: float) -> Shift:
    """The shift from one sample to another, with a distribution-free confidence interval.

    The interval leaves out 0 exactly where the two-sided rank-sum test rejects at `alpha`. Values that are
    equal, as clocks of coarse ticks make them, only widen it.

    Args:
        base: Values, at least one.
        new: Values to compare with them, at least one.
        alpha: How often the interval of two samples of one distribution may leave out 0.
    """
    differences = sorted(y - x for x in base for y in new)
    count = len(differences)
    middle = count // 2
    estimate = differences[middle] if count % 2 else (differences[middle - 1] + differences[middle]) / 2
    outside = critical_count(len(base), len(new), alpha)
    if outside == 0:
        return Shift(estimate, None, None)
    return Shift(estimate, differences[outside - 1], differences[count - outside])


def critical_count(n: int, m: int, alpha: float) -> int:
    """How many of the n·m differences may lie on the wrong side of 0 for the test to reject, plus one.

    Args:
        n: Size of one sample.
        m: Size of the other.
        alpha: Two-sided level.

    Returns:
        The largest k such that fewer than k happens with a probability of at most alpha / 2; 0 for none.
    """
    if n * m > _MOST_COUNTED:
        mean, deviation = n * m / 2, math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, math.floor(mean - 0.5 - NormalDist().inv_cdf(1 - alpha / 2) * deviation))
    arrangements = _arrangements(min(n, m), max(n, m))
    allowed = alpha / 2 * sum(arrangements)
    total = 0
    for k, ways in enumerate(arrangements):
        total += ways
        if total > allowed:
            return k
    return 0


def fewest_each(alpha: float) -> int:
    """How many values two samples of one size need, so that the test can reject at all."""
    return next(n for n in range(2, 100) if critical_count(n, n, alpha) > 0)


@cache
def _arrangements(n: int, m: int) -> tuple[int, ...]:
    """In how many of the orders of n and m values each count of inversions occurs: 0 to n·m.

    The coefficients of the Gaussian binomial, as a product of (1 - q^(m + i)) / (1 - q^i).
    """
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for count in range(n * m, m + i - 1, -1):
            ways[count] -= ways[count - m - i]
        for count in range(i, n * m + 1):
            ways[count] += ways[count - i]
    return tuple(ways)
