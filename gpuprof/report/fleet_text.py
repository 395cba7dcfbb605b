# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet as a document: its outliers, what its labels tell, its cases, and what failed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import expm1
from statistics import median

from gpuprof.analysis import numbers
from gpuprof.analysis.status import Mark
from gpuprof.comparison.fleet import CARD_LABEL, FleetKind, FleetRuns
from gpuprof.comparison.outliers import CardSeries, Deviation, Outlier, far
from gpuprof.report.document import (
    Cell,
    Column,
    Content,
    Document,
    Drawing,
    Row,
    Section,
    Sentence,
    Table,
)
from gpuprof.report.document_page import render_page
from gpuprof.report.svg.intervals import card_strip, end_of_axis

#: Items that a sentence names before it counts the rest.
_MOST_NAMED = 6
#: Cards from which on a spread between them is shown.
_FEWEST_TO_SPREAD = 6
#: Cards up to which each is named, also one that is no outlier.
_FEW_CARDS = 16
#: Outliers, failures and cases that are named before the rest is folded away.
_MOST_CARDS, _MOST_CASES = 30, 12
_CAUTION, _FAILED, _ONCE = Mark("!", "!"), Mark("✗", "x"), Mark("?", "?")
_OUTLIERS = (
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
_READING = (
    "Every case is compared with the fleet median, that of all cards of one model. A card is an outlier "
    "where it differs from it by more than such cards spread (Qn, a robust standard deviation): over all "
    "its cases, over those that one part of the GPU binds, or in single cases that several processes or "
    "several cases confirm. Of a thousand healthy cards at most one is named. What else differs on a card "
    "stands beside it: it may be the cause, and proves nothing. In a drawing a column is as high as its "
    "cards are many, from faster on the left to slower on the right; marks are outliers, and what lies "
    "beyond an end is drawn there."
)


def fleet_page(fleet: FleetRuns) -> str:
    """A fleet as one HTML file: a thousand cards take a drawing a case, not an element a card."""
    return render_page("gpuprof fleet", fleet.headline, [fleet_report(fleet, drawn=True)], fleet.found.tool)


def fleet_report(fleet: FleetRuns, *, drawn: bool = False) -> Document:
    """A fleet: the cards of each kind that differ from its median, its labels, its cases, and what failed."""
    content: list[Content] = [Sentence(text, mark=_CAUTION, tone="warning") for text in cautions(fleet)]
    content += [Section(kind.name, tuple(kind_of_cards(fleet, kind, drawn))) for kind in fleet.found.kinds]
    failures = [
        Sentence(f"{item.card}: {item.case} failed: {item.reason}", mark=_FAILED, tone="bad")
        for item in fleet.found.failures
    ]
    if len(failures) > _MOST_CARDS:
        failures[_MOST_CARDS:] = [Sentence(f"{len(failures) - _MOST_CARDS} more failed.", tone="muted")]
    content += [Section("", tuple(failures))] if failures else []
    content += [Section("How to read this", (Sentence(_READING),), folded=True)] if drawn else []
    return Document(fleet.headline, content=tuple(content))


def cautions(fleet: FleetRuns) -> Iterator[str]:
    """What to know before believing the rest."""
    for kind in fleet.found.kinds:
        if kind.is_split:
            yield (
                f"{len(kind.confirmed)} of {kind.cards} cards of {kind.name} differ from the fleet median: so"
                " many are a group of their own, and no outliers; look for what they share"
            )
    for what, versions in fleet.found.versions.items():
        held = [f"{name} on {count}" for name, count in versions.items()]
        yield f"several versions of {what}: {numbers.listed(held, _MOST_NAMED)}"
    if fleet.sources:
        yield f"several sources of {numbers.listed(fleet.sources, _MOST_NAMED)}: each is judged separately"
    left_out = list(fleet.found.left_out.items())
    for file, reason in left_out[:_MOST_NAMED]:
        yield f"left out: {reason}" if file in reason else f"left out: {file}: {reason}"
    if len(left_out) > _MOST_NAMED:
        yield f"{len(left_out) - _MOST_NAMED} more files are left out"


def kind_of_cards(fleet: FleetRuns, kind: FleetKind, drawn: bool) -> Iterator[Content]:
    """The cards of one model: outliers, or all where they are few; labels; cases."""
    yield Sentence(f"{kind.facts}.", tone="muted")
    rows, caption = list(map(_outlier, kind.outliers)), "Cards that differ from the fleet median"
    if kind.cards <= _FEW_CARDS:
        named = {outlier.card for outlier in kind.outliers}
        rows += [_within(card, change) for card, change in kind.changes.items() if card not in named]
        caption = "Cards, by how far they are from the fleet median"
    yield from _folded_table(_OUTLIERS, rows, _MOST_CARDS, "cards", caption)
    if drawn and kind.changes:
        marked = {item.card: item.confirmed for item in kind.outliers if item.card in kind.changes}
        end = end_of_axis(list(kind.changes.values()), [kind.changes[card] for card in marked])
        yield Drawing(card_strip(kind.changes, marked, end))
        yield Sentence(_axis(end), tone="muted")
    yield from _labels(fleet, kind)
    cases = [case for case in fleet.series[kind.name] if len(case.times_us) > 1]
    changes = [{card: expm1(change) for card, change in case.changes.items()} for case in cases]
    marks = [_marked(kind, case) for case in cases]
    told = [held[card] for held, marked in zip(changes, marks, strict=True) for card in marked]
    end = end_of_axis([change for held in changes for change in held.values()], told)
    order = sorted(range(len(cases)), key=lambda at: -max(changes[at].values()))
    found = {case.name: case.spread for case in kind.cases}
    rows = [_case(cases[at], changes[at], found[cases[at].name], marks[at], end) for at in order]
    yield from _folded_table(
        _CASES, rows, _MOST_CASES, "cases, which spread less far", f"Cases. {_axis(end)}"
    )


def _axis(end: float) -> str:
    return f"Drawings reach from {end:g} % faster to {end:g} % slower than the fleet median."


def _outlier(found: Outlier) -> Row:
    labels = ", ".join(f"{key} {value}" for key, value in found.labels.items() if value != found.card)
    cells = (
        Cell("", mark=_FAILED if found.confirmed else _ONCE),
        *map(Cell, (found.card, labels or "–", found.where)),
    )
    return Row(cells, "bad" if found.confirmed else "warning", (Sentence(found.why),))


def _within(card: str, change: float) -> Row:
    return Row(tuple(map(Cell, ("", card, "–", far(change)))))


def _labels(fleet: FleetRuns, kind: FleetKind) -> Iterator[Content]:
    """Every label that tells some cards from others: how many have each value, and how far they lie off."""
    cards = {title: card for title, card in fleet.cards.items() if card.model == kind.name}
    confirmed = {outlier.card for outlier in kind.confirmed}
    for key in dict.fromkeys(key for card in cards.values() for key in card.labels):
        groups: dict[str, list[str]] = defaultdict(list)
        for title, card in cards.items():
            groups[card.labels.get(key, "")].append(title)
        if key == CARD_LABEL or not 1 < len(groups) < len(cards):
            continue  # it tells no cards apart, or each from every other
        known = {
            value: [kind.changes[title] for title in titles if title in kind.changes]
            for value, titles in groups.items()
        }
        changes = {value: median(held) for value, held in known.items() if held}
        order = sorted(groups, key=lambda value: (-changes.get(value, 0.0), value))
        off = [value for value in order if abs(changes.get(value, 0.0)) >= (kind.threshold or 1.0)]
        if off:
            told = ", ".join(f"{value or 'without'} {far(changes[value])}" for value in off)
            yield Sentence(f"by {key}: {told} (median of its cards)", mark=_CAUTION, tone="warning")
        rows = []
        for value in order:
            outliers = len(confirmed.intersection(groups[value]))
            change = far(changes[value]) if value in changes else "–"
            texts = (value or "–", str(len(groups[value])), str(outliers or "–"), change)
            rows.append(Row(tuple(map(Cell, texts))))
        table = Table((Column(key, right=False), *_LABELS), tuple(rows), f"By {key}")
        yield Section(f"by {key}: {len(rows)} values", (table,), folded=True)


def _marked(kind: FleetKind, case: CardSeries) -> dict[str, bool]:
    """Cards that deviate in a case, in what binds it, or in all; and whether that is confirmed."""
    return {
        item.card: item.confirmed
        for item in kind.outliers
        if item.card in case.times_us
        and any(found.of in ("", case.part, case.name) for found in _deviations(item))
    }


def _deviations(found: Outlier) -> tuple[Deviation, ...]:
    return (*([found.whole] if found.whole else []), *found.parts, *found.cases)


def _case(
    case: CardSeries, changes: dict[str, float], spread: float | None, marked: dict[str, bool], end: float
) -> Row:
    worst = max(changes, key=lambda card: changes[card])
    shown = spread is not None and len(changes) >= _FEWEST_TO_SPREAD
    texts = (case.name, str(len(changes)), numbers.time_us(case.median_us, 4))
    drawn = Cell(
        numbers.percent(100 * (spread or 0.0), 2) if shown else "–", drawing=card_strip(changes, marked, end)
    )
    return Row((*map(Cell, texts), drawn, Cell(f"{far(changes[worst])}, {worst}")))


def _folded_table(
    columns: tuple[Column, ...], rows: Sequence[Row], most: int, what: str, caption: str
) -> Iterator[Content]:
    """The first rows, and the others folded away."""
    if rows:
        yield Section("", (Table(columns, tuple(rows[:most]), caption),))
    if len(rows) > most:
        title = f"{len(rows) - most} more {what}"
        yield Section(title, (Table(columns, tuple(rows[most:]), caption),), folded=True)
