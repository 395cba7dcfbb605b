# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Timing statistics, and when to stop sampling: from six samples on no distribution is assumed."""

import math
from collections.abc import Callable, Sequence
from statistics import stdev

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.records import replace
from gpuprof.results import Measurement, Throughput, Timing, TimingPair

#: Two-sided 95 % quantile of the normal distribution.
_Z95 = 1.959963984540054
#: Samples that an interval of the median needs, and those of a launch of which these take too long, in
#: microseconds of kernel time; of a slow one these are enough where they hardly differ.
_FEWEST, _FEWEST_OF_LONG, _LONG_US = 6, 2, 10e6
#: Two-sided 95 % quantiles of Student's t distribution for as many samples.
_STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """Linear interpolation between order statistics (Hyndman and Fan's type 7, NumPy's default)."""
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """A 95 % confidence interval of the median from order statistics.

    The number of samples below the median is binomial(n, 1/2); the interval's ranks are its central 95 %
    (normal approximation, as in Le Boudec, "Performance Evaluation of Computer and Communication Systems",
    section 2.2).

    None below six samples, where no such interval exists.
    """
    n = len(ordered)
    if n < _FEWEST:
        return None
    reach = _Z95 * math.sqrt(n) / 2
    low = max(math.floor(n / 2 - reach), 1)
    high = min(math.ceil(n / 2 + reach) + 1, n)
    return ordered[low - 1], ordered[high - 1]


def half_width(ordered: Sequence[float]) -> float | None:
    """Half of a 95 % confidence interval of the median.

    That of `median_interval`; of two to five samples Student's, for which they scatter normally; None of
    one.
    """
    interval = median_interval(ordered)
    if interval is not None:
        return (interval[1] - interval[0]) / 2
    quantile = _STUDENT.get(len(ordered))
    return None if quantile is None else quantile * stdev(ordered) / math.sqrt(len(ordered))


def summarise(
    samples: Sequence[float], dropped: int = 0, launches_per_sample: int = 1, throttled: int = 0
) -> Timing:
    """Median, percentiles and the median's relative uncertainty.

    Samples are microseconds in the order taken.
    """
    ordered = sorted(samples)
    median = percentile(ordered, 0.5)
    reach = half_width(ordered)
    return Timing(
        median_us=median,
        p05_us=percentile(ordered, 0.05),
        p95_us=percentile(ordered, 0.95),
        ci95_rel=reach / median if reach is not None and median else None,
        rounds_us=(tuple(samples),),
        dropped=dropped,
        launches_per_sample=launches_per_sample,
        throttled=throttled,
    )


def joined(timings: Sequence[Timing]) -> Timing:
    """The timing of several rounds: what each of a case's measurements brought, in order.

    The headline is the median of the rounds' medians, since processes differ from each other by more than
    samples of one do, and a round that took more samples knows no better. From six rounds on its interval is
    that of order statistics of those medians; of fewer, which have none, the widest that the samples of one
    round suggest, or half the range of the medians where that is more.
    """
    if len(timings) == 1:
        return timings[0]
    rounds = [samples for timing in timings for samples in timing.rounds_us]
    medians = sorted(round_medians_us(rounds))
    median = percentile(medians, 0.5)
    interval = median_interval(medians)
    if interval is not None:
        ci95_rel = (interval[1] - interval[0]) / 2 / median if median else None
    else:
        within = [timing.ci95_rel for timing in timings if timing.ci95_rel is not None]
        between = (medians[-1] - medians[0]) / 2 / median if median else 0.0
        ci95_rel = max((*within, between)) if within else None
    together = summarise(
        [sample for samples in rounds for sample in samples],
        sum(timing.dropped for timing in timings),
        timings[0].launches_per_sample,
        sum(timing.throttled for timing in timings),
    )
    rounds_us = tuple(tuple(samples) for samples in rounds)
    return replace(together, median_us=median, ci95_rel=ci95_rel, rounds_us=rounds_us)


def with_round(case: Measurement, again: Measurement, device: Device) -> Measurement:
    """A case with one more round; where that went wrong, the case is what went wrong."""
    if case.outcome != "ok":
        return case
    if again.outcome != "ok":
        rounds = len(case.timing.cold.rounds_us) if case.timing and case.timing.cold else 1
        why = again.reason or f"It ended as {again.outcome}."
        return replace(again, reason=f"{why} This was round {rounds + 1}: before, it was right.")
    if case.timing is None or again.timing is None:
        return case
    pairs = ((case.timing.cold, again.timing.cold), (case.timing.warm, again.timing.warm))
    cold, warm = (joined([old, new]) if old and new else old or new for old, new in pairs)
    clocks = replace(case.clocks, after=again.clocks.after) if case.clocks and again.clocks else case.clocks
    rates = Throughput.of(case.problem, device, cold.median_us) if cold else case.throughput
    return replace(case, timing=TimingPair(cold, warm), clocks=clocks, throughput=rates)


def round_medians_us(rounds_us: Sequence[Sequence[float]]) -> list[float]:
    """The median of each round that has samples, in microseconds."""
    return [percentile(sorted(samples), 0.5) for samples in rounds_us if samples]


class SamplingBudget(Struct, frozen=True, kw_only=True):
    """When enough samples are enough.

    Args:
        target_ci95_rel: Wanted half width of the median's 95 % interval, relative to the median.
        seconds: Kernel time after which sampling stops all the same, unless the median has no interval yet.
        min_samples: Fewest samples, unless they alone would spend the budget.
        slow_us: Kernel time of a sample from which two are enough that hardly differ.
        max_samples: Most samples, however noisy.
        long_us: Kernel time of the samples that an interval needs, beyond which two are enough.
    """

    target_ci95_rel: float = 0.005
    seconds: float = 0.25
    min_samples: int = 7
    slow_us: float = 5000.0
    max_samples: int = 2000
    long_us: float = _LONG_US


def fewest_samples(sample_us: float, long_us: float = _LONG_US) -> int:
    """Samples to take whatever they cost: as many as an interval needs, fewer only where they take long."""
    return _FEWEST if _FEWEST * sample_us <= long_us else _FEWEST_OF_LONG


def sample_until(
    take: Callable[[int], tuple[list[float], bool]],
    first: float,
    budget: SamplingBudget,
    max_batch: int,
    launches_per_sample: int = 1,
) -> Timing:
    """Take batches until the median is known well enough, or the budget is spent and it has an interval.

    `take` returns that many samples in microseconds, and whether the GPU ran undisturbed; `first` is an
    estimate of one launch in microseconds, to size the batches.

    Returns:
        The timing of undisturbed batches; of all of them when every batch was disturbed.
    """
    kept: list[float] = []
    disturbed: list[float] = []
    taken = 0
    spent_us = 0.0
    sample_us = max(first * launches_per_sample, 1.0)
    fewest = fewest_samples(sample_us, budget.long_us)
    batch = max(budget.min_samples, min(max_batch, int(20_000 / sample_us)))
    batch = max(fewest, min(batch, int(budget.seconds * 1e6 / sample_us)))
    if sample_us >= budget.slow_us:
        batch = _FEWEST_OF_LONG
    while True:
        samples, clean = take(min(batch, max_batch, budget.max_samples - taken))
        (kept if clean else disturbed).extend(samples)
        spent_us += sum(samples) * launches_per_sample
        taken = len(kept) + len(disturbed)
        ordered = sorted(kept)
        reach = half_width(ordered)
        # The estimate may be wrong: a kernel's first launch may be slow on purpose.
        sample_us = max(spent_us / taken, 1e-3)
        slow = sample_us >= budget.slow_us
        enough = _FEWEST_OF_LONG if slow else budget.min_samples
        precise = False
        if reach is not None and len(kept) >= enough:
            precise = reach <= budget.target_ci95_rel * percentile(ordered, 0.5)
        missing = fewest - len(kept)
        # A GPU that is disturbed all the time is not waited for.
        spent = spent_us >= budget.seconds * 1e6 and (missing <= 0 or taken >= 2 * fewest)
        if precise or spent or taken >= budget.max_samples:
            break
        # A batch that would by itself spend what is left is cut to what still fits.
        left = (budget.seconds * 1e6 - spent_us) / sample_us
        batch = 1 if slow else max(1, missing, min(max(batch, enough), int(left)))
    if kept:
        return summarise(kept, len(disturbed), launches_per_sample)
    return summarise(disturbed, 0, launches_per_sample, throttled=len(disturbed))
