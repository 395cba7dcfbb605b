# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet as one HTML file: which cards are not like the others, how each kernel's time is spread, by label.

It needs no script: everything is drawn here. A thousand cards take a drawing a case, not an element a card.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from jinja2 import Environment
from markupsafe import Markup

from gpuprof.comparison.fleet import Finding, Fleet, Kind, LabelGroup
from gpuprof.comparison.outliers import Deviation
from gpuprof.report.filling import assets, templates
from gpuprof.report.fleet_text import (
    FleetRow,
    case_rows,
    cautions,
    deviations,
    far,
    kind_facts,
    labels,
    where,
    why,
)
from gpuprof.report.svg.card_strip import card_strip, end_of_axis
from gpuprof.report.text import bound
from gpuprof.results import Tool

#: Cards that a page describes one by one: of more unlike the others, something else is wrong.
_MOST_FINDINGS = 200
#: Failures that it names.
_MOST_FAILURES = 200
#: Deviations that it lists of one card.
_MOST_DEVIATIONS = 40


@dataclass(frozen=True, slots=True)
class FindingView:
    """A card that is not like the others.

    Args:
        finding: Which, and how.
        labels: Its labels on one line.
        where: How far it lies off, and in what.
        why: What else of it differs.
        deviations: Everything in which it lies off.
        left_out: How many more there are.
    """

    finding: Finding
    labels: str
    where: str
    why: str
    deviations: tuple[Deviation, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case, with its drawing."""

    row: FleetRow
    strip: Markup


@dataclass(frozen=True, slots=True)
class KindView:
    """All cards of one model as the template shows them.

    Args:
        kind: The kind.
        facts: How well its cards can be told apart.
        strip: How far all cards lie from the middle over all cases; empty where that cannot be told.
        end: Where the axis of that drawing ends, in percent.
        findings: Its outliers.
        left_out: How many more there are.
        cases: Its cases.
        cases_end: Where the axes of their drawings end, in percent.
        labels: By the key, its values.
    """

    kind: Kind
    facts: str
    strip: Markup
    end: float
    findings: tuple[FindingView, ...]
    left_out: int
    cases: tuple[CaseView, ...]
    cases_end: float
    labels: Mapping[str, tuple[LabelGroup, ...]]


def render_fleet_html(fleet: Fleet, tool: Tool) -> str:
    """A fleet as one HTML document, which allows no script and no network.

    Args:
        fleet: What to show.
        tool: What judges.

    Returns:
        The document's text.
    """
    return (
        _environment()
        .get_template("fleet.html.j2")
        .render(
            fleet=fleet,
            kinds=[_kind(kind) for kind in fleet.kinds],
            cautions=list(cautions(fleet)),
            failures=fleet.failures[:_MOST_FAILURES],
            more_failures=max(0, len(fleet.failures) - _MOST_FAILURES),
            version=tool.version,
            style=assets("style.css"),
            dark=assets("dark.css"),
        )
    )


@functools.cache
def _environment() -> Environment:
    environment = templates()
    environment.globals.update(bound=bound, far=far)
    return environment


def _kind(kind: Kind) -> KindView:
    judged = kind.judged
    marked = {finding.outlier.card: finding.outlier.confirmed for finding in kind.findings}
    of_card = {finding.outlier.card: finding for finding in kind.findings}
    whole = {card: confirmed for card, confirmed in marked.items() if card in judged.changes}
    end = end_of_axis(list(judged.changes.values()), [judged.changes[card] for card in whole])
    rows = case_rows(kind)
    beyond = {
        row.series.name: {
            card: confirmed
            for card, confirmed in marked.items()
            if card in row.changes
            and any(item.of in ("", row.series.part, row.series.name) for item in deviations(of_card[card]))
        }
        for row in rows
    }
    told = [row.changes[card] for row in rows for card in beyond[row.series.name]]
    cases_end = end_of_axis([change for row in rows for change in row.changes.values()], told)
    return KindView(
        kind,
        kind_facts(kind),
        card_strip(judged.changes, whole, end) if judged.changes else Markup(""),
        end,
        tuple(map(_finding, kind.findings[:_MOST_FINDINGS])),
        max(0, len(kind.findings) - _MOST_FINDINGS),
        tuple(CaseView(row, card_strip(row.changes, beyond[row.series.name], cases_end)) for row in rows),
        cases_end,
        kind.labels,
    )


def _finding(finding: Finding) -> FindingView:
    found = deviations(finding)
    return FindingView(
        finding,
        labels(finding),
        where(finding),
        why(finding),
        found[:_MOST_DEVIATIONS],
        max(0, len(found) - _MOST_DEVIATIONS),
    )
