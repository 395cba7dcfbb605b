# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet as a document: its outliers, what its labels tell, and what failed."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from gpuprof.comparison.fleet import CARD_LABEL, FleetRuns
from gpuprof.comparison.outliers import FleetKind, Outlier, far
from gpuprof.records import replace
from gpuprof.report.document import (
    CAUTION,
    Cell,
    Column,
    Content,
    Document,
    Row,
    Section,
    Sentence,
    folded_table,
)
from gpuprof.report.document_page import render_page
from gpuprof.text import listed

#: Items that a sentence names before it counts the rest.
_MOST_NAMED = 6
#: Cards up to which each is named, also one that is no outlier.
_FEW_CARDS = 16
#: Outliers and failures that are named before the rest is folded away.
_MOST_CARDS = 30
_FAILED, _ONCE = "✗", "?"
_OUTLIERS = (
    Column("", right=False),
    Column("card", right=False),
    Column("labels", right=False, rank=1),
    Column("off by", right=False, folds=24),
)
_READING = (
    "Every case is compared with the fleet median, that of all cards of one model. A card is an outlier "
    "where it differs from it by more than such cards spread (Qn, a robust standard deviation): over all "
    "its cases, over those that one part of the GPU binds, or in single cases that several processes or "
    "several cases confirm. Of a thousand healthy cards at most one is named. What else differs on a card "
    "stands beside it: it may be the cause, and proves nothing."
)


def fleet_page(fleet: FleetRuns) -> str:
    """A fleet as one HTML file."""
    report, reading = fleet_report(fleet), Section("How to read this", (Sentence(_READING),))
    whole = replace(report, content=(*report.content, reading))
    return render_page("gpuprof fleet", fleet.headline, [whole], fleet.found.tool)


def fleet_report(fleet: FleetRuns) -> Document:
    """A fleet: the cards of each kind that differ from its median, its labels, and what failed."""
    content: list[Content] = [Sentence(text, mark=CAUTION, tone="warning") for text in cautions(fleet)]
    content += [Section(kind.name, tuple(kind_of_cards(fleet, kind))) for kind in fleet.found.kinds]
    failures = [
        Sentence(f"{item.card}: {item.case} failed: {item.reason}", mark=_FAILED, tone="bad")
        for item in fleet.found.failures
    ]
    if len(failures) > _MOST_CARDS:
        failures[_MOST_CARDS:] = [Sentence(f"{len(failures) - _MOST_CARDS} more failed.", tone="muted")]
    content += [Section("", tuple(failures))] if failures else []
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
        yield f"several versions of {what}: {listed(held, _MOST_NAMED)}"
    if fleet.sources:
        yield f"several sources of {listed(fleet.sources, _MOST_NAMED)}: each is judged separately"
    left_out = list(fleet.found.left_out.items())
    for file, reason in left_out[:_MOST_NAMED]:
        yield f"left out: {reason}" if file in reason else f"left out: {file}: {reason}"
    if len(left_out) > _MOST_NAMED:
        yield f"{len(left_out) - _MOST_NAMED} more files are left out"


def kind_of_cards(fleet: FleetRuns, kind: FleetKind) -> Iterator[Content]:
    """The cards of one model: outliers, or all where they are few; labels."""
    yield Sentence(f"{kind.facts}.", tone="muted")
    rows, caption = list(map(_outlier, kind.outliers)), "Cards that differ from the fleet median"
    if kind.cards <= _FEW_CARDS:
        named = {outlier.card for outlier in kind.outliers}
        within = ((card, change) for card, change in kind.changes.items() if card not in named)
        rows += [Row(tuple(map(Cell, ("", card, "–", far(change))))) for card, change in within]
        caption = "Cards, by how far they are from the fleet median"
    yield from folded_table(_OUTLIERS, rows, _MOST_CARDS, "card", caption)
    yield from _labels(fleet, kind)


def _outlier(found: Outlier) -> Row:
    labels = ", ".join(f"{key} {value}" for key, value in found.labels.items() if value != found.card)
    cells = (
        Cell("", mark=_FAILED if found.confirmed else _ONCE),
        *map(Cell, (found.card, labels or "–", found.where)),
    )
    return Row(cells, "bad" if found.confirmed else "warning", (Sentence(found.why),))


def _labels(fleet: FleetRuns, kind: FleetKind) -> Iterator[Sentence]:
    """Values of a label whose cards lie as far off as an outlier: a rack, a host, a batch."""
    cards = {title: card for title, card in fleet.cards.items() if card.model == kind.name}
    for key in dict.fromkeys(key for card in cards.values() for key in card.labels):
        groups: dict[str, list[float]] = defaultdict(list)
        for title, card in cards.items():
            if title in kind.changes:
                groups[card.labels.get(key, "")].append(kind.changes[title])
        if key == CARD_LABEL or not 1 < len(groups) < len(cards):
            continue  # it tells no cards apart, or each from every other
        changes = {value: median(held) for value, held in groups.items()}
        off = [value for value in changes if abs(changes[value]) >= (kind.threshold or 1.0)]
        if off:
            order = sorted(off, key=lambda value: -changes[value])
            told = [f"{value or 'without'} {far(changes[value])} ({len(groups[value])})" for value in order]
            text = f"by {key}: {', '.join(told)} (median of its cards, and their number)"
            yield Sentence(text, mark=CAUTION, tone="warning")
