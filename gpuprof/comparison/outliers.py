# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cards of one kind are not like the others, from the times of the same cases on each of them.

A card is judged over groups of cases: over all of them, over those that one part of the GPU binds (a card of
slow memory is slow where memory binds, and nowhere else), and over each alone. What cases say together counts
for more than what each says: a card's score over a group is the mean of its distances from the middle of all
cards, on logarithms, without the quarter of them at either end. How far healthy scores lie is told by the
scores themselves, by Qn (P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation",
Journal of the American Statistical Association 88, 1993), a quartile of the distances between all pairs. It
withstands as many outliers as the median absolute deviation, half of all cards, needs no symmetry, which
times do not have, and is less uncertain. Of few cards it says little, so that what is known of cards and
rounds counts as some degrees of freedom beside theirs, as in `judging`.

No estimator knows that a process now and then is slow for a case all by itself. So one case alone names a
card only where rounds confirm it: see `_flukes`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, median_low

from gpuprof.comparison.judging import student, trimmed
from gpuprof.comparison.noise import CARDS, FLUKES, PRIOR_DEGREES, class_of

#: How often a healthy card may be named, over all that it is judged by.
LEVEL = 0.0008
#: Shares of that for all of a card, for its parts together, and for its cases together. If each judgement had
#: the same, dozens of cases would blunt the one that finds a card which is slow throughout.
_SHARES = (0.5, 0.25, 0.25)
#: Cards from which on their own spread says anything at all.
FEWEST_OWN = 5
#: Cases that stand for a card or for one part of it: a score of fewer is one case's.
FEWEST_CASES = 3
#: Deviation of all of a card, or of a part, from which it is ever called one.
LEAST_OF_CARD = 0.01
#: Where more than this share of the cards lie apart, they are a group of their own, and no outliers.
MOST_OUTLIERS = 0.1
#: Makes the first quartile of distances between pairs the standard deviation of normal values.
_QN = 2.2219
#: What of few values is that quartile's excess over the standard deviation of normal ones, from 2 values on.
_QN_OF_FEW = (0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872)
#: Relative precision to which Qn is found.
_PRECISION = 1e-3
#: Standard error of a median over that of a mean.
_MEDIAN = math.sqrt(math.pi / 2)


@dataclass(frozen=True, slots=True)
class Level:
    """How long a case takes on one card.

    Args:
        median_us: Median of the medians of its rounds, above 0.
        rounds: How many rounds, at least one.
    """

    median_us: float
    rounds: int = 1

    @classmethod
    def of(cls, rounds_us: Sequence[float]) -> "Level":
        """From the median of each round, in microseconds, at least one, all above 0."""
        return cls(median(rounds_us), len(rounds_us))


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
        spread: Standard deviation between healthy cards over all cases; None likewise.
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
class _Group:
    """What a card is judged by: all cases, those of a part, or one.

    Args:
        name: As `Deviation.of`.
        cases: The cases.
        level: How often a healthy card may exceed the threshold of this group.
    """

    name: str
    cases: Sequence[Series]
    level: float

    def deviations(self, changes: Mapping[str, Mapping[str, float]]) -> tuple[dict[str, Deviation], float]:
        """How far each card lies from the middle, and how far healthy ones do (standard deviation).

        Args:
            changes: By the case, how far each card lies from its middle, a logarithm.
        """
        own: dict[str, list[float]] = defaultdict(list)
        for case in self.cases:
            for card, change in changes[case.name].items():
                own[card].append(change)
        fewest = min(FEWEST_CASES, len(self.cases))
        found = {card: _score(of_card) for card, of_card in own.items() if len(of_card) >= fewest}
        if len(found) < 2:
            return {}, 0.0
        scores = {card: score for card, (score, _) in found.items()}
        middle = _middle(list(scores.values()))
        usual = median(len(own[card]) for card in scores)
        # Of two cards only the slower one is ever named.
        level = self.level * (2 if len(scores) == 2 else 1)
        degrees, variance = PRIOR_DEGREES, self._known() ** 2
        if len(scores) >= FEWEST_OWN:
            degrees += len(scores) - 1
            spread = spread_of(scores.values())
            least = variance if len(self.cases) == 1 else median(error for _, error in found.values())
            # Short kernels take one of a few times: where most cards have the same, Qn is 0.
            variance = max(least, (PRIOR_DEGREES * variance + (len(scores) - 1) * spread**2) / degrees)
        of_middle = math.sqrt(2) if len(scores) == 2 else math.hypot(1, _MEDIAN / math.sqrt(len(scores)))
        reach = student(level, degrees) * math.sqrt(variance) * of_middle
        deviations = {}
        for card, score in scores.items():
            scarce = math.sqrt(max(1.0, usual / len(own[card])))
            threshold = max(self._least, math.expm1(reach * scarce))
            deviations[card] = Deviation(self.name, math.expm1(score - middle), threshold, len(own[card]))
        return deviations, math.sqrt(variance)

    def _known(self) -> float:
        """Standard deviation of healthy scores as far as it is known without these."""
        variances = [
            class_of(_time(case)).deviation ** 2 / median(level.rounds for level in case.levels.values())
            for case in self.cases
        ]
        return math.sqrt(CARDS**2 + math.fsum(variances) / len(variances) ** 2)

    @property
    def _least(self) -> float:
        return LEAST_OF_CARD if len(self.cases) > 1 else class_of(_time(self.cases[0])).least


def judge_cards(series: Sequence[Series]) -> Judged:
    """Find the cards that are not like the others.

    Args:
        series: The cases, all on cards of one kind with one source; a case on one card alone says nothing.
    """
    series = [case for case in series if len(case.levels) > 1]
    changes = {case.name: changes_in(case) for case in series}
    whole, *others = _groups(series) or [_Group("", (), LEVEL)]
    of_whole, spread = whole.deviations(changes)
    found: dict[str, list[Deviation]] = defaultdict(list)
    for group in others:
        for card, deviation in group.deviations(changes)[0].items():
            if deviation.beyond:
                found[card].append(deviation)
    rounds: dict[str, list[int]] = defaultdict(list)
    for case in series:
        for card, level in case.levels.items():
            rounds[card].append(level.rounds)
    outliers = [
        _outlier(card, of_whole.get(card), found[card], rounds[card], set(changes))
        for card in rounds
        if found[card] or (card in of_whole and of_whole[card].beyond)
    ]
    outliers.sort(key=lambda item: (not item.confirmed, -abs(item.gravest.change), item.card))
    return Judged(
        tuple(outliers),
        {card: deviation.change for card, deviation in of_whole.items()},
        median(deviation.threshold for deviation in of_whole.values()) if of_whole else None,
        spread if of_whole else None,
    )


def changes_in(series: Series) -> dict[str, float]:
    """How far each card lies from the middle of one case, a logarithm: 0.02 is about 2 % slower."""
    logs = {card: math.log(level.median_us) for card, level in series.levels.items()}
    middle = _middle(list(logs.values()))
    return {card: value - middle for card, value in logs.items()}


def _groups(series: Sequence[Series]) -> list[_Group]:
    """All cases, those of each part, each case."""
    parts: dict[str, list[Series]] = defaultdict(list)
    for case in series:
        if case.part:
            parts[case.part].append(case)
    parts = {part: cases for part, cases in parts.items() if len(cases) >= FEWEST_CASES}
    groups = [_Group("", series if len(series) >= FEWEST_CASES else (), _SHARES[0] * LEVEL)]
    groups += [_Group(part, parts[part], _SHARES[1] * LEVEL / len(parts)) for part in sorted(parts)]
    groups += [_Group(case.name, (case,), _SHARES[2] * LEVEL / len(series)) for case in series]
    return groups


def _score(changes: Sequence[float]) -> tuple[float, float]:
    """The mean of one card's distances without a quarter at either end, and its error's variance."""
    few = len(changes) < FEWEST_CASES
    mean, count, squares = trimmed(changes, fewest=0 if few else max(1, len(changes) // 4))
    return mean, squares / count / (count - 1) if count > 1 else 0.0


def _time(case: Series) -> float:
    return median(level.median_us for level in case.levels.values())


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


def _outlier(
    card: str,
    whole: Deviation | None,
    beyond: Sequence[Deviation],
    rounds: Sequence[int],
    names: set[str],
) -> Outlier:
    """A card that lies off in something, and whether that is more than a chance of one process."""
    cases = sorted((item for item in beyond if item.of in names), key=lambda item: -abs(item.change))
    parts = tuple(item for item in beyond if item.of not in names)
    whole = whole if whole is not None and whole.beyond else None
    confirmed = whole is not None or bool(parts)
    for slower in (True, False):
        agree = sum((case.change > 0) == slower for case in cases)
        confirmed = confirmed or (agree > 0 and _flukes(rounds, agree) <= LEVEL / 8)
    return Outlier(card, whole, parts, tuple(cases), confirmed)


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
