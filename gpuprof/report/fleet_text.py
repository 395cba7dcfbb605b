# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet as a document, and what its page says in the same words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import expm1
from statistics import median

from gpuprof.analysis import numbers
from gpuprof.comparison.fleet import Finding, Fleet, Kind
from gpuprof.comparison.outliers import FEWEST_CASES, Deviation, Series, changes_in, spread_of
from gpuprof.report.document import Cell, Column, Content, Document, Mark, Row, Section, Sentence, Table

#: Items that a sentence names before it counts the rest.
_MOST_NAMED = 6
#: Distance from the middle that no reader needs figures of.
_NOTHING = 0.0005
#: Cards from which on a spread between them is shown.
_FEWEST_TO_SPREAD = 6
#: Cards from which on what is shown of their spread is mostly theirs.
_ENOUGH_CARDS = 12
#: Outliers, failures and cases that are named before the rest is folded away; a page names all.
_MOST_CARDS, _MOST_CASES = 30, 12
_CAUTION, _FAILED, _ONCE = Mark("!", "!"), Mark("✗", "x"), Mark("?", "?")
_FINDINGS = (
    Column("", right=False),
    Column("card", right=False),
    Column("labels", right=False, rank=1),
    Column("off by", right=False, folds=24),
)
_LABELS = (Column("cards"), Column("outliers"), Column("median"))
_CASES = (
    Column("case", right=False),
    Column("cards", rank=2),
    Column("median"),
    Column("spread", rank=1),
    Column("slowest", right=False, folds=16),
)


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One case on all cards.

    Args:
        series: The case.
        changes: How far each card lies from the middle: 0.02 is 2 % slower.
        time: The middle.
        spread: Standard deviation between cards.
        slowest: The card farthest on the slow side, with its distance.
    """

    series: Series
    changes: dict[str, float]
    time: str
    spread: str
    slowest: str


def case_rows(kind: Kind) -> list[FleetRow]:
    """The cases of a kind that more than one card ran, in the order met."""
    found = []
    for series in kind.series:
        if len(series.levels) < 2:
            continue
        changes = {card: expm1(change) for card, change in changes_in(series).items()}
        worst = max(changes, key=lambda card: changes[card])
        found.append(
            FleetRow(
                series,
                changes,
                numbers.time_us(median(level.median_us for level in series.levels.values()), 4),
                _spread(list(changes.values())),
                f"{far(changes[worst])}, {worst}",
            )
        )
    return found


def _spread(changes: list[float]) -> str:
    """Standard deviation between cards; a dash where they are too few to have one."""
    if len(changes) < _FEWEST_TO_SPREAD:
        return "–"
    return numbers.percent(100 * spread_of(changes), 2)


def far(change: float) -> str:
    """How far from the middle: `2.1 % slower`."""
    if abs(change) < _NOTHING:
        return "as the others"
    text = numbers.percent(abs(100 * change), 2)
    return f"{text} {'slower' if change > 0 else 'faster'}"


def where(finding: Finding) -> str:
    """How far a card lies off, and in what: `2.1 % slower over its 24 cases`."""
    outlier = finding.outlier
    gravest = outlier.gravest
    if gravest is outlier.whole:
        return f"{far(gravest.change)} over its {gravest.cases} cases"
    if gravest in outlier.parts:
        return f"{far(gravest.change)} where {gravest.of} binds ({gravest.cases} cases)"
    more = len(outlier.cases) - 1
    rest = f", and off in {more} more {'case' if more == 1 else 'cases'}" if more else ""
    return f"{far(gravest.change)} in {gravest.of}{rest}"


def why(finding: Finding) -> str:
    """What else of the card is unlike the others; a sentence where nothing is."""
    found = "; ".join(finding.causes)
    if not finding.outlier.confirmed:
        seen = "one process may have caused it: measure again with --rounds 7"
        return f"{found}; {seen}" if found else seen
    return found or "nothing else that was recorded differs"


def deviations(finding: Finding) -> tuple[Deviation, ...]:
    """Everything in which a card lies off, the widest view first."""
    whole = (finding.outlier.whole,) if finding.outlier.whole else ()
    return (*whole, *finding.outlier.parts, *finding.outlier.cases)


def labels(finding: Finding) -> str:
    """A card's labels on one line."""
    card = finding.card
    return ", ".join(f"{key} {value}" for key, value in card.labels.items() if value != card.title)


def kind_facts(kind: Kind) -> str:
    """How well the cards of a kind can be told apart."""
    cards, cases = len(kind.cards), len(kind.series)
    text = f"{cards:,} {'card' if cards == 1 else 'cards'}, {cases:,} {'case' if cases == 1 else 'cases'}"
    judged = kind.judged
    if judged.threshold is None or judged.spread is None:
        if cards == 1:
            return f"{text}: a single card has nothing to be compared with"
        return f"{text}: a card is judged as a whole only from {FEWEST_CASES} cases"
    spread, least = (numbers.percent(100 * value, 2) for value in (judged.spread, judged.threshold))
    few = "; of so few cards most of it is assumed" if cards < _ENOUGH_CARDS else ""
    return f"{text}; cards spread by {spread} (standard deviation{few}); {least} over all cases is an outlier"


def cautions(fleet: Fleet) -> Iterator[str]:
    """What to know before believing the rest."""
    for kind in fleet.kinds:
        if kind.is_split:
            count = len(kind.confirmed)
            yield (
                f"{count} of {len(kind.cards)} cards of {kind.name} lie apart: so many are a group of their"
                " own, and no outliers; look for what they share"
            )
    for mixture in fleet.mixtures:
        found = [f"{version} on {count}" for version, count in mixture.cards.items()]
        yield f"several versions of {mixture.what}: {_named(found)}"
    if fleet.sources:
        yield f"several sources of {_named(fleet.sources)}: each is judged separately"
    for file, reason in fleet.left_out[:_MOST_NAMED]:
        yield f"left out: {reason}" if file in reason else f"left out: {file}: {reason}"
    if len(fleet.left_out) > _MOST_NAMED:
        yield f"{len(fleet.left_out) - _MOST_NAMED} more files are left out"


def _named(items: "list[str] | tuple[str, ...]") -> str:
    more = len(items) - _MOST_NAMED
    return ", ".join(items[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def fleet_report(fleet: Fleet) -> Document:
    """A fleet: the cards of each kind that are unlike the others, its labels, its cases, and what failed."""
    content: list[Content] = [Sentence.of(text, mark=_CAUTION, tone="warning") for text in cautions(fleet)]
    content += [Section(kind.name, tuple(_kind(kind))) for kind in fleet.kinds]
    failures = [
        Sentence.of(f"{card}: {case} failed: {reason}", mark=_FAILED, tone="bad")
        for card, case, reason in fleet.failures
    ]
    content += [Section("", held) for held in (tuple(_first(failures, _MOST_CARDS, "failed")),) if held]
    return Document(fleet.headline, content=tuple(content))


def _kind(kind: Kind) -> Iterator[Content]:
    yield Sentence.of(f"{kind_facts(kind)}.", tone="muted")
    yield from _folded_table(_FINDINGS, list(map(_finding, kind.findings)), _MOST_CARDS, "cards")
    for key, groups in kind.labels.items():
        told = [
            f"{group.value or 'without'} {far(group.change)}"
            for group in groups
            if group.change is not None and abs(group.change) >= (kind.judged.threshold or 1.0)
        ]
        if told:
            text = f"by {key}: {', '.join(told)} (median of its cards)"
            yield Sentence.of(text, mark=_CAUTION, tone="warning")
        rows = [
            Row(
                tuple(
                    map(
                        Cell,
                        (
                            group.value or "–",
                            str(group.cards),
                            str(group.outliers or "–"),
                            "–" if group.change is None else far(group.change),
                        ),
                    )
                )
            )
            for group in groups
        ]
        table = Table((Column(key, right=False), *_LABELS), tuple(rows))
        yield Section(f"by {key}: {len(rows)} values", (table,), folded=True)
    cases = sorted(case_rows(kind), key=lambda row: -max(row.changes.values()))
    yield from _folded_table(_CASES, list(map(_case, cases)), _MOST_CASES, "cases, which spread less far")


def _finding(finding: Finding) -> Row:
    confirmed = finding.outlier.confirmed
    cells = (
        Cell("", mark=_FAILED if confirmed else _ONCE),
        *map(Cell, (finding.card.title, labels(finding) or "–", where(finding))),
    )
    return Row(cells, "bad" if confirmed else "warning", (Sentence.of(why(finding)),))


def _case(row: FleetRow) -> Row:
    return Row(tuple(map(Cell, (row.series.name, str(len(row.changes)), row.time, row.spread, row.slowest))))


def _folded_table(
    columns: tuple[Column, ...], rows: Sequence[Row], most: int, what: str
) -> Iterator[Content]:
    """The first rows, and the others folded away."""
    if rows:
        yield Section("", (Table(columns, tuple(rows[:most])),))
    if len(rows) > most:
        title = f"{len(rows) - most} more {what}"
        yield Section(title, (Table(columns, tuple(rows[most:])),), folded=True)


def _first(found: Sequence[Content], most: int, what: str) -> Iterator[Content]:
    yield from found[:most]
    if len(found) > most:
        yield Sentence.of(f"{len(found) - most} more {what}.", tone="muted")
