# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel became faster: a verdict from the spread between rounds, and what it could have seen.

Within one process samples agree far better than processes do with each other, so an interval from one run
says little about the next one. What varies is the round; its median is one observation. Two sets of them are
compared by ranks (`ranks`), on logarithms, because noise is a share of the time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Literal

from gpuprof.comparison.noise import SESSIONS, TimeClass, class_of
from gpuprof.comparison.ranks import fewest_each, shift

Verdict = Literal["improved", "same", "regressed", "uncertain"]

#: How often a verdict on identical code may be wrong, faster and slower together. A ladder has tens of cases:
#: by Bonferroni's inequality at most one comparison of 50 cases in a hundred holds a false one.
ALPHA = 0.0002
#: Rounds a side below which no order of times is unlikely enough.
FEWEST_ROUNDS = fewest_each(ALPHA)
#: Rounds a side with which slowdowns of 2 % above 25 us and 10 % below are found: see docs/compare.md.
ENOUGH_ROUNDS = 16
#: Standard errors by which a change must exceed what identical code was seen to do, where rounds are too few.
_BEYOND = 5.0
#: How often a change that is called detectable is to be found; with what is estimated, nine times of ten.
_POWER = 0.95
_Z_POWER = NormalDist().inv_cdf(_POWER)
_Z_ALPHA = NormalDist().inv_cdf(1 - ALPHA / 2)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a time changed.

    All changes are relative to the base: 0.02 is 2 % more time, -0.02 is 2 % less.

    Args:
        verdict: What can be said of it.
        change: Best estimate of the change.
        low: Lower end of its interval.
        high: Upper end.
        detectable: Smallest slowdown that would have been found nine times of ten.
        rounds: Rounds of the base and of the new one.
        by_ranks: Whether the interval comes from these rounds; else from the widest spread that is known.
        why: What the verdict is for want of, where it is uncertain.
    """

    verdict: Verdict
    change: float
    low: float
    high: float
    detectable: float
    rounds: tuple[int, int]
    by_ranks: bool
    why: str = ""


def judge(base_us: Sequence[float], new_us: Sequence[float]) -> Judgement:
    """Compare the round medians of two versions of a case.

    Regressed or improved: the interval at level `ALPHA` leaves out 0, and the change is at least the
    smallest that is ever called one. Same: the whole interval is close to 0. Uncertain: neither.

    Args:
        base_us: Median of each round of the base, in microseconds, above 0.
        new_us: Likewise of the new version.
    """
    base, new = [math.log(time) for time in base_us], [math.log(time) for time in new_us]
    kind = class_of(median(base_us))
    found = shift(base, new, ALPHA)
    by_ranks = found.low is not None and found.high is not None
    if found.low is not None and found.high is not None:
        estimate, low, high = found.estimate, found.low, found.high
        reach = (high - low) / 2
        error = reach / _Z_ALPHA
    else:
        estimate = found.estimate
        error = kind.widest * math.sqrt(1 / len(base) + 1 / len(new))
        reach = _BEYOND * error
        low, high = estimate - reach, estimate + reach
    detectable = max(reach, math.log1p(kind.least)) + _Z_POWER * math.hypot(error, math.sqrt(2) * SESSIONS)
    verdict = _verdict(estimate, low, high, kind)
    return Judgement(
        verdict,
        math.expm1(estimate),
        math.expm1(low),
        math.expm1(high),
        math.expm1(detectable),
        (len(base), len(new)),
        by_ranks,
        _why(len(base), len(new), reach, kind, by_ranks) if verdict == "uncertain" else "",
    )


def _verdict(estimate: float, low: float, high: float, kind: TimeClass) -> Verdict:
    least, close = math.log1p(kind.least), math.log1p(kind.close)
    if low > 0 and estimate >= least:
        return "regressed"
    if high < 0 and estimate <= -least:
        return "improved"
    return "same" if -close <= low and high <= close else "uncertain"


def _why(base: int, new: int, reach: float, kind: TimeClass, by_ranks: bool) -> str:
    """What is missing for a verdict, in one sentence with its fix."""
    if not by_ranks:
        counts = (
            f"{base} and {new} rounds" if base != new else f"{base} {'round' if base == 1 else 'rounds'} each"
        )
        return f"{counts} are too few: measure both with --rounds {ENOUGH_ROUNDS}"
    needed = math.ceil(min(base, new) * (reach / math.log1p(kind.close / 2)) ** 2)
    more = max(needed, ENOUGH_ROUNDS, min(base, new) + 4)
    return (
        f"the rounds spread by ±{100 * math.expm1(reach):.2g} %: about --rounds {min(more, 100)} would tell"
    )
