# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Timing statistics without assumptions on the distribution, and when to stop sampling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuprof.results import Timing

#: Two-sided 95 % quantile of the normal distribution.
_Z95 = 1.959963984540054
#: Samples taken even of a launch that spends the whole budget alone.
_FEWEST = 3


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """Linear interpolation between order statistics (Hyndman and Fan's type 7, NumPy's default).

    Args:
        ordered: Values in ascending order, at least one.
        fraction: Between 0 and 1.
    """
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """A 95 % confidence interval of the median from order statistics.

    The number of samples below the median is binomial(n, 1/2); the interval's ranks are its central 95 %
    (normal approximation, as in Le Boudec, "Performance Evaluation of Computer and Communication Systems",
    section 2.2).

    Args:
        ordered: Samples in ascending order.

    Returns:
        Lower and upper bound, or None below six samples, where no such interval exists.
    """
    n = len(ordered)
    if n < 6:
        return None
    reach = _Z95 * math.sqrt(n) / 2
    low = max(math.floor(n / 2 - reach), 1)
    high = min(math.ceil(n / 2 + reach) + 1, n)
    return ordered[low - 1], ordered[high - 1]


def summarise(
    samples: Sequence[float], dropped: int = 0, launches_per_sample: int = 1, throttled: int = 0
) -> Timing:
    """Median, percentiles and the median's relative uncertainty.

    Args:
        samples: Microseconds, in the order taken, at least one.
        dropped: Samples that were set aside.
        launches_per_sample: Back-to-back launches that each sample is the mean of.
        throttled: How many of the samples were taken while the GPU was throttled.
    """
    ordered = sorted(samples)
    median = percentile(ordered, 0.5)
    interval = median_interval(ordered)
    return Timing(
        median_us=median,
        p05_us=percentile(ordered, 0.05),
        p95_us=percentile(ordered, 0.95),
        ci95_rel=(interval[1] - interval[0]) / 2 / median if interval and median else None,
        rounds_us=(tuple(samples),),
        dropped=dropped,
        launches_per_sample=launches_per_sample,
        throttled=throttled,
    )


@dataclass(frozen=True, slots=True)
class Samples:
    """What sampling brought.

    Args:
        kept: Microseconds, in the order taken.
        dropped: How many others were set aside because the GPU was throttled.
        throttled: How many of those kept were taken under throttling, because there are no others.
    """

    kept: list[float]
    dropped: int = 0
    throttled: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """When enough samples are enough.

    Args:
        target_ci95_rel: Wanted half width of the median's 95 % interval, relative to the median.
        seconds: Kernel time after which sampling stops all the same.
        min_samples: Fewest samples, unless they alone would spend the budget.
        max_samples: Most samples, however noisy.
    """

    target_ci95_rel: float = 0.005
    seconds: float = 0.25
    min_samples: int = 7
    max_samples: int = 2000


def sample_until(
    take: Callable[[int], tuple[list[float], bool]],
    first: float,
    budget: Budget,
    max_batch: int,
    launches_per_sample: int = 1,
) -> Samples:
    """Take batches until the median is known well enough or the budget is spent.

    Args:
        take: Takes that many samples; returns them in microseconds and whether the GPU ran undisturbed.
        first: A first estimate of one launch, in microseconds, to size the batches.
        budget: The stopping rule.
        max_batch: Most samples that `take` can take at once.
        launches_per_sample: Launches that each sample is the mean of.

    Returns:
        The samples of undisturbed batches; all of them when every batch was disturbed.
    """
    kept: list[float] = []
    disturbed: list[float] = []
    taken = 0
    spent_us = 0.0
    sample_us = max(first * launches_per_sample, 1.0)
    batch = max(budget.min_samples, min(max_batch, int(20_000 / sample_us)))
    batch = max(_FEWEST, min(batch, int(budget.seconds * 1e6 / sample_us)))
    while True:
        samples, clean = take(min(batch, max_batch, budget.max_samples - taken))
        (kept if clean else disturbed).extend(samples)
        spent_us += sum(samples) * launches_per_sample
        taken = len(kept) + len(disturbed)
        interval = median_interval(sorted(kept))
        precise = False
        if interval is not None and len(kept) >= budget.min_samples:
            half_width = (interval[1] - interval[0]) / 2
            precise = half_width <= budget.target_ci95_rel * percentile(sorted(kept), 0.5)
        if precise or spent_us >= budget.seconds * 1e6 or taken >= budget.max_samples:
            break
        # A batch that would by itself spend what is left is cut to what still fits.
        left = (budget.seconds * 1e6 - spent_us) / max(spent_us / taken, 1e-3)
        batch = max(1, min(batch, int(left)))
    return Samples(kept, dropped=len(disturbed)) if kept else Samples(disturbed, throttled=len(disturbed))
