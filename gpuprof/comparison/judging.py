# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel became faster: a verdict from the spread between rounds, and what it could have seen.

Within one process samples agree far better than processes do with each other, so an interval from one run
says little about the next one. What varies is the round; its median is one observation, on logarithms,
because noise is a share of the time.

One round says nothing of the spread between rounds, a few say little. So the spread is what recorded runs
of identical code had (`CLASSES`), which counts as so many degrees of freedom, together with what these
rounds have: the more of them there are, the more they say of it themselves. This is the moderated t of G.
K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments" (Statistical Applications in Genetics and Molecular Biology 3, 2004). The middle is the mean
without the eighth of the rounds at either end, its error that of K. K. Yuen, "The two-sample trimmed t for
unequal population variances" (Biometrika 61, 1974): now and then a round is slow by itself, and short
kernels take one of two times by where their arrays lie.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, median
from statistics import variance as variance_of
from typing import Literal, NamedTuple

from msgspec import Struct

from gpuprof.analysis.models import difference_error
from gpuprof.results import Measurement, Model, Timing
from gpuprof.statistics import percentile, round_medians_us

Verdict = Literal["improved", "same", "regressed", "uncertain", "unmeasured"]

#: How often a verdict on identical code may be wrong, faster and slower together. A ladder has tens of cases:
#: by Bonferroni's inequality at most one comparison of 50 cases in a hundred holds a false one.
ALPHA = 0.0002
#: Rounds a side with which slowdowns of 2 % above 25 us and 10 % below are found: see docs/compare.md.
ENOUGH_ROUNDS = 16
_MOST_ROUNDS = 100
#: Modelled times that differ by less are of the same code and counts, but for rounding.
_SAME_MODEL = 1e-4
#: One round of so many is left out at either end.
_TRIMMED = 8
#: Stretches of a round's samples, in the order taken, between which its time may drift.
_STRETCHES = 4
#: Samples of fewer rounds are drawn in so many stretches at most, in the order taken.
_FEW_ROUNDS, _MOST_DRAWN = 3, 60
#: How often a change that is called detectable is to be found; with what is estimated, nine times of ten.
_Z_POWER = NormalDist().inv_cdf(0.95)
#: Standard error of a median over that of a mean, and the quartiles' distance of normal values.
_MEDIAN, _QUARTILES = math.sqrt(math.pi / 2), 1.349


class TimeClass(Struct, frozen=True):
    """How much times of identical code differ from run to run, of launches of one order of duration.

    A round is a fresh process with fresh allocations. Between rounds arrays and code lie elsewhere, which
    moves short launches by percents and long ones hardly at all. `python benchmarks/verdicts.py --prior` fits
    these deviations to recorded runs (benchmarks/recorded-*.json.xz: several H200s, hours and days apart, and
    an H100). docs/verdicts.md says how well they hold.

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


class Times(Struct, frozen=True):
    """The median of each round of a case, above 0, and how well they were measured.

    `error` is the standard error of such a median as its samples show it, as a share; `event_us` what was
    taken off each time for the events themselves.
    """

    medians_us: Sequence[float]
    error: float = 0.0
    event_us: float = 0.0


class Judgement(Struct, frozen=True):
    """How a time changed, as a share of the base: 0.02 is 2 % more time, -0.02 is 2 % less.

    `detectable` is the smallest slowdown that would have been found nine times of ten; of modelled times
    the smallest that is called one. `needed` are the rounds a side that would tell where the
    change is uncertain, otherwise 0.
    """

    verdict: Verdict
    change: float
    low: float
    high: float
    detectable: float
    needed: int = 0


def times_of(case: Measurement, *, warm: bool = False) -> Times:
    """What a case's own record says of its cold time, or of back-to-back launches."""
    timing = None if case.timing is None else case.timing.warm if warm else case.timing.cold
    if case.outcome != "ok" or timing is None:
        return Times(())
    medians = [time for time in round_medians_us(timing.rounds_us) if time > 0]
    variances = [_variance(samples) for samples in timing.rounds_us if samples]
    return Times(medians, math.sqrt(fmean(variances)) if medians else 0.0, case.event_pair_us or 0.0)


def spreads(timing: Timing) -> list[tuple[float, float, float]]:
    """5th percentile, median and 95th of each round; of few rounds, of each stretch of samples."""
    rounds = [samples for samples in timing.rounds_us if samples]
    if len(rounds) < _FEW_ROUNDS:
        each = math.ceil(len(timing.samples_us) / _MOST_DRAWN) or 1
        rounds = [timing.samples_us[start : start + each] for start in range(0, len(timing.samples_us), each)]
    found = [sorted(samples) for samples in rounds] or [[timing.median_us]]
    return [
        (percentile(samples, 0.05), percentile(samples, 0.5), percentile(samples, 0.95)) for samples in found
    ]


def judge(base: Times, new: Times) -> Judgement:
    """Compare the times of two versions of a case, of at least one round each.

    Regressed or improved: the interval at level `ALPHA` leaves out 0, and the change is at least the
    smallest that is ever called one. Same: the whole interval is close to 0. Uncertain: neither.
    """
    kind = class_of(median(base.medians_us))
    sides = [_middle(times) for times in (base, new)]
    # What the two took off for the events themselves was never the kernel's.
    events = abs(base.event_us - new.event_us)
    offset = min(1.0, events / min(median(base.medians_us), median(new.medians_us)))
    error, quantile = _error(kind, sides, (base, new))
    estimate, reach = sides[1].value - sides[0].value, quantile * error + offset
    low, high = estimate - reach, estimate + reach
    detectable = max(reach, math.log1p(kind.least)) + _Z_POWER * error
    verdict = _verdict(estimate, low, high, kind)
    rounds = min(len(base.medians_us), len(new.medians_us))
    return Judgement(
        verdict,
        math.expm1(estimate),
        math.expm1(low),
        math.expm1(high),
        math.expm1(detectable),
        _needed(rounds, reach - offset, kind) if verdict == "uncertain" else 0,
    )


def judge_modelled(base: Model, new: Model) -> Judgement:
    """Compare the modelled times of two versions of a case: what the model cannot tell is uncertain.

    The model plays the same code and counts alike: then nothing changed that it knows of.
    """
    change = math.log(new.median_us / base.median_us)
    alike = abs(change) < _SAME_MODEL
    error = 0.0 if alike else difference_error(base, new)
    verdict: Verdict = "same" if alike else "regressed" if change > 0 else "improved"
    ends = math.expm1(change - error), math.expm1(change + error)
    detectable = math.expm1(difference_error(base, new))
    return Judgement(verdict if abs(change) >= error else "uncertain", math.expm1(change), *ends, detectable)


def interval(times: Times) -> tuple[float, float]:
    """Between what factors of the median a time of at least one round lies, at level `ALPHA`."""
    side = _middle(times)
    kind = class_of(median(times.medians_us))
    error, quantile = _error(kind, [side], [times])
    reach = quantile * error
    middle = side.value - math.log(median(times.medians_us))
    return math.exp(middle - reach), math.exp(middle + reach)


class Trimmed(NamedTuple):
    """A mean without values at either end, how many it is of, and the squares that tell their variance."""

    value: float
    kept: int
    squares: float


def trimmed(values: Sequence[float], fewest: int = 0) -> Trimmed:
    """The mean of values without an eighth, or `fewest` of them, at either end.

    The variance is estimated from the sum of squares over the number of values less one: of those left out,
    each drawn in to its neighbour.
    """
    ordered = sorted(values)
    cut = max(fewest, len(ordered) // _TRIMMED)
    kept = ordered[cut : len(ordered) - cut]
    drawn_in = [kept[0]] * cut + kept + [kept[-1]] * cut
    mean = fmean(drawn_in)
    return Trimmed(fmean(kept), len(kept), math.fsum((value - mean) ** 2 for value in drawn_in))


def _middle(times: Times) -> Trimmed:
    return trimmed([math.log(time) for time in times.medians_us])


def _error(kind: TimeClass, sides: Sequence[Trimmed], times: Sequence[Times]) -> tuple[float, float]:
    """Standard error of a time, or of two times' difference, and how many of them an interval reaches."""
    # Between two runs of a round each lies a session too, whose offset no number of rounds takes away.
    known = kind.deviation**2 - SESSIONS**2 + fmean(each.error**2 for each in times)
    degrees = PRIOR_DEGREES + sum(side.kept - 1 for side in sides)
    squares = PRIOR_DEGREES * known + math.fsum(side.squares for side in sides)
    variance = math.fsum(squares / degrees / side.kept + SESSIONS**2 for side in sides)
    return math.sqrt(variance), student(ALPHA, degrees)


def student(level: float, degrees: int) -> float:
    """Student's t that is exceeded with a probability to both sides together, from 10 degrees on.

    The expansion 26.7.5 of M. Abramowitz and I. A. Stegun, "Handbook of mathematical functions".
    """
    z = NormalDist().inv_cdf(1 - level / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees ** (power + 1) for power, term in enumerate(terms))


def _variance(samples: Sequence[float]) -> float:
    """Variance of the median of samples, as a share of it: what they scatter by, and what they drift by.

    A time that drifts, as one does whose clocks are being held back, depends on how long was measured: of
    what stretches of the samples differ by beyond their scatter, no number of samples takes anything away.
    """
    ordered = sorted(samples)
    low, middle, high = (percentile(ordered, share) for share in (0.25, 0.5, 0.75))
    if middle <= 0:
        return 0.0
    scatter = (_MEDIAN * (high - low) / _QUARTILES / middle) ** 2 / len(ordered)
    each = math.ceil(len(samples) / _STRETCHES)
    stretches = [median(samples[start : start + each]) / middle for start in range(0, len(samples), each)]
    between = variance_of(stretches) if len(stretches) > 1 else 0.0
    # Samples that scatter by more than all of their time say nothing, whatever a file holds.
    return min(1.0, scatter + max(0.0, between - len(stretches) * scatter))


def _verdict(estimate: float, low: float, high: float, kind: TimeClass) -> Verdict:
    least, close = math.log1p(kind.least), math.log1p(kind.close)
    if low > 0 and estimate >= least:
        return "regressed"
    if high < 0 and estimate <= -least:
        return "improved"
    return "same" if -close <= low and high <= close else "uncertain"


def _needed(rounds: int, reach: float, kind: TimeClass) -> int:
    """Rounds a side with which an interval would be small enough for a verdict."""
    shorter = math.ceil(rounds * (reach / math.log1p(kind.close / 2)) ** 2)
    return min(max(shorter, ENOUGH_ROUNDS, rounds + 4), _MOST_ROUNDS)
