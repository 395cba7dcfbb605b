# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cards of one kind differ from the fleet median, from the times of the same cases on each of them.

A card is judged over groups of cases: over all of them, over those that one part of the GPU binds (a card of
slow memory is slow where memory binds, and nowhere else), and over each alone. What cases say together counts
for more than what each says: a card's score over a group is the mean of its distances from the median of all
cards, on logarithms, without the quarter of them at either end. How far healthy scores lie is told by the
scores themselves, by Qn (P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation",
Journal of the American Statistical Association 88, 1993), a quartile of the distances between all pairs. It
withstands as many outliers as the median absolute deviation, half of all cards, needs no symmetry, which
times do not have, and is less uncertain. Of few cards it says little, so that what is known of cards and
rounds counts as some degrees of freedom beside theirs, as in `judging`.

No estimator knows that a process now and then is slow for a case all by itself. So one case alone names a
card only where rounds confirm it: see `_is_beyond_chance`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from statistics import fmean, median, median_low

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.comparison.judging import CARDS, FLUKES, PRIOR_DEGREES, class_of, student, trimmed
from gpuprof.records import grouped
from gpuprof.schema import Count, NonNegative, Positive

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
#: Makes the first quartile of distances between pairs the standard deviation of normal values.
_QN = 2.2219
#: What of few values is that quartile's excess over the standard deviation of normal ones, from 2 values on.
_QN_OF_FEW = (0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872)
#: Relative precision to which Qn is found.
_PRECISION = 1e-3
#: Standard error of a median over that of a mean.
_MEDIAN = math.sqrt(math.pi / 2)
#: Where more than this share of the cards deviate, they are a group of their own, and no outliers.
_MOST_OUTLIERS = 0.1
#: Cards from which on what is told of their spread is mostly theirs.
_ENOUGH_CARDS = 12
#: Distance from the median that no reader needs figures of.
_NOTHING = 0.0005


class CardSeries(Struct, dict=True):
    """One case on all cards: by the card, the median of each round, at least one, all above 0.

    `part` of the GPU binds it; it is empty where that is not known. `failures` says why a card has none.
    """

    name: str
    rounds_us: dict[str, list[float]] = {}
    part: str = ""
    failures: dict[str, str] = {}

    @cached_property
    def times_us(self) -> dict[str, float]:
        return {card: median(rounds) for card, rounds in self.rounds_us.items()}

    @cached_property
    def median_us(self) -> float:
        return median(self.times_us.values())

    @cached_property
    def changes(self) -> dict[str, float]:
        """How far each card lies from the fleet median, a logarithm: 0.02 is about 2 % slower."""
        logs = {card: math.log(time) for card, time in self.times_us.items()}
        middle = _middle(list(logs.values()))
        return {card: value - middle for card, value in logs.items()}


class Deviation(Struct, frozen=True):
    """How far a card lies from the fleet median.

    Args:
        of: Name of the case, or of the part; empty for all of the card.
        change: 0.02 is 2 % slower than the median.
        threshold: The least that is called a deviation there.
        cases: How many cases it rests on.
    """

    of: str
    change: float
    threshold: float
    cases: int = 1

    @property
    def beyond(self) -> bool:
        return abs(self.change) >= self.threshold


class Outlier(Struct, frozen=True):
    """A card that differs from the fleet median.

    Args:
        card: What it is called: by its label, its host's, or its file.
        file: The results file that it was first met in.
        labels: Those of its run.
        confirmed: Whether it is more than a chance of one process.
        whole: Over all its cases, where that is a deviation.
        parts: The parts of the GPU over whose cases it deviates.
        cases: The cases in which it does, those that deviate most first.
        causes: What else of it differs, in words, most telling first.
    """

    card: str
    file: str
    labels: Mapping[str, str]
    confirmed: bool
    whole: Deviation | None
    parts: tuple[Deviation, ...]
    cases: tuple[Deviation, ...]
    causes: tuple[str, ...] = ()

    @property
    def gravest(self) -> Deviation:
        """What says most of it: all of it, else the part or the case that deviates most."""
        return self.whole or max(self.parts or self.cases, key=lambda item: abs(item.change))

    @property
    def change(self) -> float:
        """How far it lies off where that says most: 0.02 is 2 % slower than the fleet median."""
        return self.gravest.change

    @property
    def where(self) -> str:
        """How far it lies off, and in what: `2.1 % slower over its 24 cases`."""
        found = self.gravest
        if found is self.whole:
            return f"{far(found.change)} over its {found.cases} cases"
        if found in self.parts:
            return f"{far(found.change)} where {found.of} binds ({found.cases} cases)"
        more = len(self.cases) - 1
        rest = f", and off in {numbers.plural(more, 'more case')}" if more else ""
        return f"{far(found.change)} in {found.of}{rest}"

    @property
    def why(self) -> str:
        """What else of the card differs; a sentence where nothing does."""
        chance = "" if self.confirmed else "one process may have caused it: measure again with --rounds 7"
        return "; ".join(filter(None, (*self.causes, chance))) or "nothing else that was recorded differs"

    @property
    def sentence(self) -> str:
        """How far it lies off, in what, and what else differs."""
        return f"{self.where}: {self.why}"

    def __repr__(self) -> str:
        return f"<{self.card}: {self.sentence}>"


def far(change: float) -> str:
    """How far from the fleet median: `2.1 % slower`."""
    if abs(change) < _NOTHING:
        return "at the median"
    return f"{numbers.percent(abs(100 * change), 2)} {'slower' if change > 0 else 'faster'}"


class FleetCase(Struct, frozen=True):
    """One case on all cards that ran it.

    Args:
        name: Kernel, size, block and parameters.
        bound_by: What binds it; empty where that is not known.
        spread: Robust standard deviation between cards, as a share; null of one card.
    """

    name: str
    bound_by: str
    cards: Count
    median_us: Positive
    spread: NonNegative | None


class FleetKind(Struct, frozen=True):
    """All cards of one model.

    Args:
        changes: How far each card lies from the median over all its cases: 0.02 is 2 % slower.
        threshold: From where on that is an outlier; null where nothing can be judged.
        spread: Standard deviation between cards; null likewise.
        outliers: Confirmed ones first.
    """

    name: str
    cards: Count
    changes: Mapping[str, float]
    threshold: float | None
    spread: NonNegative | None
    outliers: tuple[Outlier, ...]
    cases: tuple[FleetCase, ...]

    @property
    def confirmed(self) -> tuple[Outlier, ...]:
        """Outliers that are more than a chance of one process."""
        return tuple(outlier for outlier in self.outliers if outlier.confirmed)

    @property
    def is_split(self) -> bool:
        return len(self.confirmed) > max(1, _MOST_OUTLIERS * self.cards)

    @property
    def facts(self) -> str:
        """How well its cards can be told apart."""
        text = f"{numbers.plural(self.cards, 'card')}, {numbers.plural(len(self.cases), 'case')}"
        if self.threshold is None or self.spread is None:
            if self.cards == 1:
                return f"{text}: a single card has nothing to be compared with"
            return (
                f"{text}: a card is judged as a whole only by {FEWEST_CASES} cases that it shares with others"
            )
        spread, least = (numbers.percent(100 * value, 2) for value in (self.spread, self.threshold))
        few = "; of so few cards most of it is assumed" if self.cards < _ENOUGH_CARDS else ""
        spread = f"{spread} (standard deviation{few})"
        return f"{text}; cards spread by {spread}; {least} over all cases is an outlier"


def judge_cards(name: str, cards: int, timed: Sequence[CardSeries]) -> FleetKind:
    """Find the cards of one kind that differ from the fleet median, by the cases that any of them timed."""
    series = [case for case in timed if len(case.rounds_us) > 1]
    by_part = grouped(series, lambda case: case.part)
    rounds: dict[str, list[int]] = defaultdict(list)
    for case in series:
        for card, medians in case.rounds_us.items():
            rounds[card].append(len(medians))
    of_whole, spread = _deviations("", series if len(series) >= FEWEST_CASES else [], _SHARES[0] * LEVEL)
    parts = [(part, by_part[part]) for part in sorted(by_part) if part and len(by_part[part]) >= FEWEST_CASES]
    beyond: list[dict[str, list[Deviation]]] = []
    for share, groups in zip(_SHARES[1:], (parts, [(case.name, [case]) for case in series]), strict=True):
        beyond.append(defaultdict(list))
        for of, held in groups:
            for card, found in _deviations(of, held, share * LEVEL / len(groups))[0].items():
                beyond[-1][card] += [found] if found.beyond else []
    outliers = []
    for card in rounds:
        own = of_whole[card] if card in of_whole and of_whole[card].beyond else None
        of_parts, cases = beyond[0][card], sorted(beyond[1][card], key=lambda item: -abs(item.change))
        if own or of_parts or cases:
            sure = bool(own or of_parts) or _is_beyond_chance(cases, rounds[card])
            outliers.append(Outlier(card, "", {}, sure, own, tuple(of_parts), tuple(cases)))
    outliers.sort(key=lambda item: (not item.confirmed, -abs(item.change), item.card))
    return FleetKind(
        name,
        cards,
        {card: deviation.change for card, deviation in of_whole.items()},
        median(deviation.threshold for deviation in of_whole.values()) if of_whole else None,
        spread if of_whole else None,
        tuple(outliers),
        tuple(map(_fleet_case, timed)),
    )


def _fleet_case(case: CardSeries) -> FleetCase:
    shares = [time / case.median_us for time in case.times_us.values()]
    return FleetCase(
        case.name, case.part, len(shares), case.median_us, spread_of(shares) if len(shares) > 1 else None
    )


def _deviations(name: str, cases: Sequence[CardSeries], level: float) -> tuple[dict[str, Deviation], float]:
    """How far each card lies from the median over some cases, and healthy ones' standard deviation.

    `level` is how often a healthy card may exceed the threshold.
    """
    own: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for card, change in case.changes.items():
            own[card].append(change)
    fewest = min(FEWEST_CASES, len(cases))
    found = {card: _score(of_card) for card, of_card in own.items() if len(of_card) >= fewest}
    if len(found) < 2:
        return {}, 0.0
    scores = {card: score for card, (score, _) in found.items()}
    middle = _middle(list(scores.values()))
    usual = median(len(own[card]) for card in scores)
    known = [
        class_of(case.median_us).deviation ** 2 / median(map(len, case.rounds_us.values())) for case in cases
    ]
    degrees, variance = PRIOR_DEGREES, CARDS**2 + math.fsum(known) / len(known) ** 2
    if len(scores) >= FEWEST_OWN:
        degrees += len(scores) - 1
        spread = spread_of(scores.values())
        least = variance if len(cases) == 1 else median(error for _, error in found.values())
        # Short kernels take one of a few times: where most cards have the same, Qn is 0.
        variance = max(least, (PRIOR_DEGREES * variance + (len(scores) - 1) * spread**2) / degrees)
    # Of two cards only the slower one is ever named.
    level *= 2 if len(scores) == 2 else 1
    of_middle = math.sqrt(2) if len(scores) == 2 else math.hypot(1, _MEDIAN / math.sqrt(len(scores)))
    reach = student(level, degrees) * math.sqrt(variance) * of_middle
    at_least = LEAST_OF_CARD if len(cases) > 1 else class_of(cases[0].median_us).least
    deviations = {}
    for card, score in scores.items():
        scarce = math.sqrt(max(1.0, usual / len(own[card])))
        threshold = max(at_least, math.expm1(reach * scarce))
        deviations[card] = Deviation(name, math.expm1(score - middle), threshold, len(own[card]))
    return deviations, math.sqrt(variance)


def _score(changes: Sequence[float]) -> tuple[float, float]:
    """The mean of one card's distances without a quarter at either end, and its error's variance."""
    few = len(changes) < FEWEST_CASES
    mean, count, squares = trimmed(changes, fewest=0 if few else max(1, len(changes) // 4))
    return mean, squares / count / (count - 1) if count > 1 else 0.0


def _is_beyond_chance(cases: Sequence[Deviation], rounds: Sequence[int]) -> bool:
    """Whether so many cases of a card deviate to one side that slow processes do not explain it.

    A round is a process of its own, and of those of one case most must be slow to move their median; the
    cases of one process are taken to be slow independently of each other.
    """
    share = fmean(_at_least(count // 2 + 1 if count > 2 else 1, count, FLUKES) for count in rounds)
    slower = sum(case.change > 0 for case in cases)
    return any(
        agree and _at_least(agree, len(rounds), share) <= LEVEL / 8 for agree in (slower, len(cases) - slower)
    )


def spread_of(values: Iterable[float]) -> float:
    """Qn, the robust standard deviation: a quartile of all distances between two of the values, scaled.

    It is correct to a thousandth, and 0 where more than half of the values are equal. Few values have a
    factor of their own (C. Croux and P. J. Rousseeuw, "Time-efficient algorithms for two highly robust
    estimators of scale", 1992).
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
    count = len(ordered)
    large = count / (count + (1.4 if count % 2 else 3.8))
    return _QN * (_QN_OF_FEW[count - 2] if count - 2 < len(_QN_OF_FEW) else large) * high


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


@cache
def _at_least(successes: int, trials: int, share: float) -> float:
    """The upper tail of a binomial distribution."""
    return math.fsum(
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(successes, trials + 1)
    )
