# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cards of one kind are not like the others, from the times of the same cases on each of them.

A card is judged three ways, on logarithms, each against the middle of all cards: over all its cases, over
those that one part of the GPU binds (a card of slow memory is slow where memory binds, and nowhere else), and
case by case. Two estimators make that hold when many cards are unlike the others, whatever these do: the
median for the middle, and Qn for the spread (P. J. Rousseeuw and C. Croux, "Alternatives to the median
absolute deviation", Journal of the American Statistical Association 88, 1993). Qn is a quartile of the
distances between all pairs of cards. It withstands as many outliers as the median absolute deviation (MAD),
half of all cards, needs no symmetry, which times do not have, and is less uncertain: of 10 normal values one
in 50,000 lies 7.6 Qn from the median, but 17 MAD.

No estimator knows that a process now and then is slow for a case all by itself. So one case alone names a
card only where rounds confirm it: see `_flukes`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, median, median_low

from gpuprof.comparison.noise import CARDS, FLUKES, class_of

#: How often a healthy card may be named, over all that it is judged by.
LEVEL = 0.0002
#: The same where there are few cards: 2 % is to be seen among them too, and few are named for nothing then.
LEVEL_OF_FEW = 0.0008
#: Shares of that for all of a card, for its parts together, and for its cases together. If each judgement had
#: the same, dozens of cases would blunt the one that finds a card which is slow throughout.
_SHARES = (0.5, 0.25, 0.25)
#: Cards from which on their own spread is known well enough to judge by.
ENOUGH_CARDS = 20
#: Cards from which on their own spread says anything at all.
FEWEST_OWN = 5
#: Cases that stand for a card or for one part of it: a median of fewer is one case's.
FEWEST_CASES = 3
#: Deviation of all of a card from which it is ever called one.
LEAST_OF_CARD = 0.01
#: Where more than this share of the cards lie apart, they are a group of their own, and no outliers.
MOST_OUTLIERS = 0.1
#: Standard deviation between rounds of the most restless kernels, and of most, by the class of their time.
_KNOWN = {25.0: (0.05, 0.03), 100.0: (0.03, 0.006), math.inf: (0.02, 0.004)}
#: Makes the first quartile of distances between pairs the standard deviation of normal values.
_QN = 2.2219
#: What of few values is that quartile's excess over the standard deviation of normal ones, from 2 values on.
_QN_OF_FEW = (0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872)
#: Relative precision to which Qn is found.
_PRECISION = 1e-3
#: Standard error of a median over that of a mean.
_MEDIAN = math.sqrt(math.pi / 2)
#: Share of the most restless cards that say nothing of the usual spread within one.
_RESTLESS = 0.05


@dataclass(frozen=True, slots=True)
class Level:
    """How long a case takes on one card.

    Args:
        median_us: Median of the medians of its rounds, above 0.
        rounds: How many rounds, at least one.
        variance: Of the logarithms of those medians; None of one round.
    """

    median_us: float
    rounds: int = 1
    variance: float | None = None

    @classmethod
    def of(cls, rounds_us: Sequence[float]) -> "Level":
        """From the median of each round, in microseconds, at least one, all above 0."""
        logs = [math.log(time) for time in rounds_us]
        return cls(median(rounds_us), len(logs), _variance(logs) if len(logs) > 1 else None)


@dataclass(frozen=True, slots=True)
class Series:
    """One case on all cards.

    Args:
        name: What tells the case from others.
        levels: Its time, by the card.
        part: The part of the GPU that binds it; empty where that is not known.
    """

    name: str
    levels: Mapping[str, Level]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far a card lies from the middle of all.

    Args:
        of: Name of the case, or of the part; empty for all of the card.
        change: 0.02 is 2 % slower than the middle.
        threshold: The least that is called a deviation there.
        cases: How many cases it rests on.
    """

    of: str
    change: float
    threshold: float
    cases: int = 1

    @property
    def beyond(self) -> bool:
        """Whether it is one."""
        return abs(self.change) >= self.threshold


@dataclass(frozen=True, slots=True)
class Outlier:
    """A card that is not like the others.

    Args:
        card: Which.
        whole: Over all its cases, where that is a deviation.
        parts: The parts of the GPU over whose cases it deviates.
        cases: The cases in which it does, those that deviate most first.
        confirmed: Whether it is more than a chance of one process.
    """

    card: str
    whole: Deviation | None
    parts: tuple[Deviation, ...]
    cases: tuple[Deviation, ...]
    confirmed: bool

    @property
    def gravest(self) -> Deviation:
        """What says most of it: all of it, else the part or the case that deviates most."""
        if self.whole is not None:
            return self.whole
        return max(self.parts or self.cases, key=lambda item: abs(item.change))


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of all cards of one kind.

    Args:
        outliers: Those that are not like the others: confirmed ones first, the farthest first.
        changes: Over all its cases, how far each card lies from the middle; of none with too few cases.
        threshold: The least that is called a deviation of all of a card; None where there is nothing to
            judge.
        spread: Standard deviation between cards over all cases, by Qn; None likewise.
    """

    outliers: tuple[Outlier, ...]
    changes: Mapping[str, float]
    threshold: float | None
    spread: float | None

    @property
    def confirmed(self) -> tuple[Outlier, ...]:
        """Outliers that are more than a chance of one process."""
        return tuple(outlier for outlier in self.outliers if outlier.confirmed)


@dataclass(frozen=True, slots=True)
class _Residual:
    """A case on one card.

    Args:
        change: Logarithm of how many times the middle it takes.
        deviation: Standard deviation of that on healthy cards, at most.
        usual: The same of most kernels, which several cases together come near.
        least: Smallest change that is ever called one.
    """

    case: str
    part: str
    change: float
    deviation: float
    usual: float
    least: float
    rounds: int


def judge_cards(series: Sequence[Series]) -> Judged:
    """Find the cards that are not like the others.

    Args:
        series: The cases, all on cards of one kind with one source; a case on one card alone says nothing.
    """
    residuals: dict[str, list[_Residual]] = defaultdict(list)
    for case in series:
        for card, residual in _residuals(case):
            residuals[card].append(residual)
    parts = {case.part for case in series if case.part}
    tests = (1, len(parts), max(map(len, residuals.values()), default=0))
    level = LEVEL if len(residuals) >= ENOUGH_CARDS else LEVEL_OF_FEW
    if len(residuals) == 2:  # only one of the two is ever named
        level *= 2
    of_whole, of_part, of_case = (
        _reach(share * level, count) for share, count in zip(_SHARES, tests, strict=True)
    )
    whole, spread = _over(residuals, "", of_whole)
    of_parts = [_over(_in_part(residuals, part), part, of_part)[0] for part in sorted(parts)]
    found = []
    for card, own in residuals.items():
        outlier = _outlier(card, own, whole.get(card), [of[card] for of in of_parts if card in of], of_case)
        if outlier is not None:
            found.append(outlier)
    found.sort(key=lambda item: (not item.confirmed, -abs(item.gravest.change), item.card))
    thresholds = [deviation.threshold for deviation in whole.values()]
    return Judged(
        tuple(found),
        {card: deviation.change for card, deviation in whole.items()},
        median(thresholds) if thresholds else None,
        spread,
    )


def _reach(level: float, tests: int) -> float:
    """Standard deviations that a healthy card exceeds in one of so many judgements as often as it may."""
    return NormalDist().inv_cdf(1 - level / 2 / max(1, tests))


def spread_of(values: Iterable[float]) -> float:
    """Qn, the robust standard deviation: a quartile of all distances between two of the values.

    Args:
        values: At least two.

    Returns:
        That quartile, scaled to the standard deviation of normal values and correct to a thousandth; 0 where
        more than half of the values are equal. Few values have a factor of their own (C. Croux and P. J.
        Rousseeuw, "Time-efficient algorithms for two highly robust estimators of scale", 1992).
    """
    ordered = sorted(values)
    half = len(ordered) // 2 + 1
    wanted = half * (half - 1) // 2
    if _pairs_within(ordered, 0.0) >= wanted:
        return 0.0
    low, high = 0.0, ordered[-1] - ordered[0]
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if _pairs_within(ordered, middle) >= wanted:
            high = middle
        else:
            low = middle
    return _QN * _of_few(len(ordered)) * high


def _of_few(count: int) -> float:
    """By how much the quartile of so many normal values is too large, as a factor against it."""
    if count - 2 < len(_QN_OF_FEW):
        return _QN_OF_FEW[count - 2]
    return count / (count + (1.4 if count % 2 else 3.8))


def _pairs_within(ordered: Sequence[float], distance: float) -> int:
    """How many pairs of ascending values lie at most so far apart."""
    count = first = 0
    for index, value in enumerate(ordered):
        while value - ordered[first] > distance:
            first += 1
        count += index - first
    return count


def _middle(values: Sequence[float]) -> float:
    """The median; of two the lower, since nothing makes a healthy card faster than it can be."""
    return median_low(values) if len(values) == 2 else median(values)


def _between(values: Sequence[float]) -> float:
    """Standard deviation between cards: their own where they are enough, at least the known one of few."""
    if len(values) < FEWEST_OWN:  # the distance between two of them is all that there is to tell it by
        return CARDS
    own = spread_of(values)
    return own if len(values) >= ENOUGH_CARDS else max(own, CARDS)


def _of_middle(cards: int) -> float:
    """By how much the middle of few cards, which is uncertain too, widens a distance from it."""
    if cards >= ENOUGH_CARDS:
        return 1.0
    return math.sqrt(2) if cards == 2 else math.hypot(1, _MEDIAN / math.sqrt(cards))


def _residuals(case: Series) -> Iterator[tuple[str, _Residual]]:
    if len(case.levels) < 2:
        return
    logs = {card: math.log(level.median_us) for card, level in case.levels.items()}
    middle = _middle(list(logs.values()))
    between = _between(list(logs.values()))
    kind = class_of(math.exp(middle))
    within = _within(case.levels.values())
    for card, level in case.levels.items():
        # One round shows nothing of its own spread: then what kernels were seen to have counts.
        shown = None if level.rounds == 1 else within
        deviation, usual = (
            max(between, (known if shown is None else shown) * _MEDIAN / math.sqrt(level.rounds))
            * _of_middle(len(logs))
            for known in _KNOWN[kind.below_us]
        )
        change, least = logs[card] - middle, math.log1p(kind.least)
        yield card, _Residual(case.name, case.part, change, deviation, usual, least, level.rounds)


def _variance(values: Sequence[float]) -> float:
    """Of at least two values; `statistics.variance` counts in fractions, which takes most of judging."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _within(levels: Iterable[Level]) -> float | None:
    """Standard deviation of rounds within a card, without the most restless; None for want of rounds."""
    variances = sorted(level.variance for level in levels if level.variance is not None)
    kept = variances[: len(variances) - int(_RESTLESS * len(variances))]
    return math.sqrt(fmean(kept)) if kept else None


def _in_part(residuals: Mapping[str, Sequence[_Residual]], part: str) -> dict[str, list[_Residual]]:
    return {card: [item for item in own if item.part == part] for card, own in residuals.items()}


def _over(
    residuals: Mapping[str, Sequence[_Residual]], name: str, reach: float
) -> tuple[dict[str, Deviation], float | None]:
    """How far each card lies from the middle over several cases, and the spread between cards."""
    found = {card: own for card, own in residuals.items() if len(own) >= FEWEST_CASES}
    if len(found) < 2:
        return {}, None
    usual = median(item.usual for own in found.values() for item in own)
    changes, errors = {}, {}
    for card, own in found.items():
        # A case that is quieter than most weighs no more than these, or it alone would decide.
        weights = [1 / max(item.usual, usual) for item in own]
        changes[card] = _weighted_median([item.change for item in own], weights)
        errors[card] = _MEDIAN / math.sqrt(math.fsum(weight**2 for weight in weights))
    middle = _middle(list(changes.values()))
    spread = _between(list(changes.values()))
    usual_error = median(errors.values())
    deviations = {}
    for card, change in changes.items():
        deviation = max(spread * max(1.0, errors[card] / usual_error), errors[card])
        if len(found) < ENOUGH_CARDS:
            deviation = max(deviation, math.hypot(CARDS * _of_middle(len(found)), errors[card]))
        threshold = max(math.log1p(LEAST_OF_CARD), reach * deviation)
        deviations[card] = Deviation(
            name, math.expm1(change - middle), math.expm1(threshold), len(found[card])
        )
    return deviations, spread


def _weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The value with half of the weight on either side; between two that share it, their mean."""
    ordered = sorted(zip(values, weights, strict=True))
    half = math.fsum(weights) / 2
    total = 0.0
    for index, (value, weight) in enumerate(ordered):
        total += weight
        if math.isclose(total, half) and index + 1 < len(ordered):
            return (value + ordered[index + 1][0]) / 2
        if total > half:
            return value
    return ordered[-1][0]


def _outlier(
    card: str,
    own: Sequence[_Residual],
    whole: Deviation | None,
    parts: Sequence[Deviation],
    reach: float,
) -> Outlier | None:
    cases = []
    for item in own:
        threshold = math.expm1(max(item.least, reach * item.deviation))
        cases.append(Deviation(item.case, math.expm1(item.change), threshold))
    beyond = sorted((case for case in cases if case.beyond), key=lambda case: -abs(case.change))
    parts = [part for part in parts if part.beyond]
    if whole is not None and not whole.beyond:
        whole = None
    if whole is None and not parts and not beyond:
        return None
    confirmed = whole is not None or bool(parts)
    for slower in (True, False):
        agree = sum((case.change > 0) == slower for case in beyond)
        confirmed = confirmed or (agree > 0 and _flukes([item.rounds for item in own], agree) <= LEVEL / 2)
    return Outlier(card, whole, tuple(parts), tuple(beyond), confirmed)


def _flukes(rounds: Sequence[int], deviating: int) -> float:
    """How often so many of a card's cases deviate because single processes were slow.

    A round is a process of its own, and of those of one case most must be slow to move their median; the
    cases of one process are taken to be slow independently of each other.

    Args:
        rounds: Of each case.
        deviating: How many deviate.
    """
    share = fmean(_at_least(count // 2 + 1 if count > 2 else 1, count, FLUKES) for count in rounds)
    return _at_least(deviating, len(rounds), share)


@cache
def _at_least(successes: int, trials: int, share: float) -> float:
    """The upper tail of a binomial distribution."""
    return math.fsum(
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(successes, trials + 1)
    )
