# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Many cards side by side, from one results file or several each: which are not like the others, and why.

Files are added one by one, and of each only a few numbers a case are kept: a fleet may be larger than the
memory that its files would take.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from gpuprof.comparison.causes import Card, causes_of
from gpuprof.comparison.digest import CardDigest, CaseDigest, Digester, RunDigest
from gpuprof.comparison.outliers import MOST_OUTLIERS, Judged, Level, Outlier, Series, judge_cards
from gpuprof.errors import InputError
from gpuprof.results import Run

#: The label by which several files are of one card: their rounds are then taken together.
CARD_LABEL = "card"
#: The label that names a card's machine.
HOST_LABEL = "host"


@dataclass(frozen=True, slots=True)
class Finding:
    """An outlier, with what else is unlike the others on it.

    Args:
        outlier: How far it lies off, and in what.
        card: Which card it is.
        causes: What else of it differs, in words, most telling first.
    """

    outlier: Outlier
    card: Card
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelGroup:
    """The cards that share a label's value.

    Args:
        value: The value; empty for cards without the label.
        cards: How many.
        change: Median of how far they lie from the middle of all; None where too few cases tell.
        outliers: How many of them are confirmed outliers.
    """

    value: str
    cards: int
    change: float | None
    outliers: int


@dataclass(frozen=True, slots=True)
class Kind:
    """All cards of one model.

    Args:
        name: The model, as the driver names it.
        cards: By their titles.
        series: Their cases that were timed.
        judged: What became of the cards.
        findings: Its outliers: confirmed ones first.
        labels: By the key, its values.
    """

    name: str
    cards: Mapping[str, Card]
    series: tuple[Series, ...]
    judged: Judged
    findings: tuple[Finding, ...]
    labels: Mapping[str, tuple[LabelGroup, ...]]

    @property
    def confirmed(self) -> tuple[Finding, ...]:
        """Outliers that are more than a chance of one process."""
        return tuple(finding for finding in self.findings if finding.outlier.confirmed)

    @property
    def is_split(self) -> bool:
        """Whether so many lie apart that they are a group of their own."""
        return len(self.confirmed) > max(1, MOST_OUTLIERS * len(self.cards))


@dataclass(frozen=True, slots=True)
class Mixture:
    """Software of which the fleet has several versions.

    Args:
        what: Its name.
        cards: How many cards have each version, the most frequent first.
    """

    what: str
    cards: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Fleet:
    """All of it.

    Args:
        kinds: Models, that of most cards first.
        mixtures: Software of several versions, gpuprof itself included.
        sources: Kernels of which the files hold several sources, which are judged apart.
        failures: Cases without a time on a card where others have one: the card, the case and why.
        left_out: Files that say nothing of a fleet, with the reason.
    """

    kinds: tuple[Kind, ...]
    mixtures: tuple[Mixture, ...]
    sources: tuple[str, ...]
    failures: tuple[tuple[str, str, str], ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def cards(self) -> int:
        """How many cards."""
        return sum(len(kind.cards) for kind in self.kinds)

    @property
    def confirmed(self) -> tuple[Finding, ...]:
        """The outliers of all kinds."""
        return tuple(finding for kind in self.kinds for finding in kind.confirmed)

    @property
    def headline(self) -> str:
        """For example `1,000 cards, 3 outliers`."""
        found = len(self.confirmed)
        unsure = sum(not finding.outlier.confirmed for kind in self.kinds for finding in kind.findings)
        words = [
            f"{self.cards:,} {'card' if self.cards == 1 else 'cards'}",
            f"{found or 'no'} {'outlier' if found == 1 else 'outliers'}",
        ]
        if unsure:
            words.append(f"{unsure} with a slow case that one process may have caused")
        if self.failures:
            words.append(f"{len(self.failures)} {'case' if len(self.failures) == 1 else 'cases'} failed")
        return ", ".join(words)


@dataclass(slots=True)
class _Case:
    """One case over the cards that were added so far."""

    name: str
    kernel: str
    part: str = ""
    rounds_us: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


class FleetBuilder:
    """Takes in runs one by one."""

    def __init__(self) -> None:
        self._cards: dict[str, Card] = {}
        self._cases: dict[str, dict[Any, _Case]] = defaultdict(dict)
        self._left_out: list[tuple[str, str]] = []
        self._digester = Digester()

    def leave_out(self, file: str, why: str) -> None:
        """Note a file that says nothing of a fleet."""
        self._left_out.append((file, why))

    def add(self, run: Run, file: str) -> None:
        """Take in one run; nothing of it is kept but what a fleet is judged by.

        Args:
            run: A run on one GPU or several.
            file: Its file, for messages, and as the card's title where no label names it.

        Raises:
            InputError: It names a card as another run does, which is of another model.
        """
        self.take(self._digester.digest(run, file))

    def take(self, run: RunDigest) -> None:
        """Take in what is kept of one run.

        Raises:
            InputError: It names a card as another run does, which is of another model.
        """
        if not run.is_gpu:
            self.leave_out(run.file, "nothing in it was measured on a GPU")
            return
        for own in run.cards:
            title = self._title(run, own)
            card = replace(own.card, title=title)
            known = self._cards.get(title)
            if known is not None and known.model != card.model:
                raise InputError(
                    f"{run.file} names its card {title}, as {known.file} does, but they are of two models:"
                    f" {known.model} and {card.model}.",
                    fix=f"Give every card a --label {CARD_LABEL} of its own.",
                )
            self._cards[title] = card if known is None else known.joined(card)
            cases = self._cases[card.model]
            for case in own.cases:
                _add_case(cases, title, case)

    def fleet(self) -> Fleet:
        """What the runs so far amount to.

        Raises:
            InputError: There is no card at all.
        """
        if not self._cards:
            why = f" {self._left_out[0][0]}: {self._left_out[0][1]}." if self._left_out else ""
            raise InputError(
                f"No run on a GPU is among them.{why}", fix="Name results files of runs on a GPU."
            )
        counts = Counter(card.model for card in self._cards.values())
        kinds = [self._kind(model) for model, _ in counts.most_common()]
        return Fleet(
            tuple(kinds),
            tuple(self._mixtures()),
            tuple(self._several_sources()),
            tuple(self._failures()),
            tuple(self._left_out),
        )

    def _title(self, run: RunDigest, own: CardDigest) -> str:
        """What a card is called: by its label, its host's, or its file; unlike cards never share one."""
        label = run.labels.get(CARD_LABEL)
        several = run.devices > 1
        if label:
            return f"{label} GPU {own.number}" if several else label
        host = run.labels.get(HOST_LABEL) or own.host
        title = f"{host or run.file} GPU {own.number}" if several else host or run.file
        return f"{host} ({run.file})" if host and title in self._cards else title

    def _kind(self, model: str) -> Kind:
        cards = {title: card for title, card in self._cards.items() if card.model == model}
        series = tuple(
            Series(name, {card: Level.of(times) for card, times in case.rounds_us.items()}, case.part)
            for name, case in self._named(model)
            if case.rounds_us
        )
        judged = judge_cards(series)
        findings = tuple(
            Finding(outlier, cards[outlier.card], causes_of(cards[outlier.card], cards.values()))
            for outlier in judged.outliers
        )
        return Kind(model, cards, series, judged, findings, dict(_labels(cards, judged)))

    def _named(self, model: str) -> Iterator[tuple[str, _Case]]:
        """Cases by a name of their own: of one kernel's several sources each says which."""
        cases = self._cases[model]
        counts = Counter(case.name for case in cases.values())
        for key, case in cases.items():
            source = key[-1]
            yield (f"{case.name} ({source[:8]})" if counts[case.name] > 1 and source else case.name), case

    def _several_sources(self) -> Iterator[str]:
        """Kernels of which one case has several."""
        found = {}
        for cases in self._cases.values():
            counts = Counter(key[:-1] for key in cases)
            found.update({case.kernel: 0 for key, case in cases.items() if counts[key[:-1]] > 1})
        yield from found

    def _mixtures(self) -> Iterator[Mixture]:
        names = dict.fromkeys(name for card in self._cards.values() for name in card.versions)
        for name in names:
            counts = Counter(card.versions[name] for card in self._cards.values() if name in card.versions)
            if len(counts) > 1:
                yield Mixture(name, dict(counts.most_common()))

    def _failures(self) -> Iterator[tuple[str, str, str]]:
        for model in self._cases:
            for name, case in self._named(model):
                for card, why in case.failures.items():
                    if any(other != card for other in case.rounds_us):
                        yield card, name, why


def _add_case(cases: dict[Any, _Case], card: str, case: CaseDigest) -> None:
    held = cases.get(case.key)
    if held is None:
        held = cases[case.key] = _Case(case.name, case.kernel)
    held.part = held.part or case.part
    if case.rounds_us:
        held.rounds_us.setdefault(card, []).extend(case.rounds_us)
    elif case.failure:
        held.failures[card] = case.failure


def _labels(cards: Mapping[str, Card], judged: Judged) -> Iterator[tuple[str, tuple[LabelGroup, ...]]]:
    """Every label that tells some cards from others, with its values, the slowest first."""
    confirmed = {outlier.card for outlier in judged.confirmed}
    for key in dict.fromkeys(key for card in cards.values() for key in card.labels):
        groups: dict[str, list[str]] = defaultdict(list)
        for title, card in cards.items():
            groups[card.labels.get(key, "")].append(title)
        if key == CARD_LABEL or not 1 < len(groups) < len(cards):
            continue  # it tells no cards apart, or each from every other
        found = []
        for value, titles in groups.items():
            changes = [judged.changes[title] for title in titles if title in judged.changes]
            found.append(
                LabelGroup(
                    value,
                    len(titles),
                    median(changes) if changes else None,
                    sum(title in confirmed for title in titles),
                )
            )
        found.sort(key=lambda group: (-(group.change or 0.0), group.value))
        yield key, tuple(found)
