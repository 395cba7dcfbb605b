# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet as Markdown: the outliers as a table, the cases behind a line that opens."""

from collections.abc import Iterator, Sequence

from gpuprof.comparison.fleet import Fleet, Kind
from gpuprof.report.fleet_text import CaseRow, case_rows, cautions, far, kind_facts, labels, where, why
from gpuprof.report.markdown_text import text


def render_fleet_markdown(fleet: Fleet) -> str:
    """A fleet.

    Args:
        fleet: What to show.

    Returns:
        Markdown text, ending in a newline.
    """
    parts = [f"### {text(fleet.headline)}"]
    if notes := [f"- ⚠ {text(caution)}" for caution in cautions(fleet)]:
        parts.append("\n".join(notes))
    for kind in fleet.kinds:
        parts += [f"#### {text(kind.name)}", text(kind_facts(kind)) + "."]
        if kind.findings:
            parts.append("\n".join(_findings(kind)))
        for key, groups in kind.labels.items():
            rows = [f"| {text(key)} | Cards | Outliers | Median |", "|:--|--:|--:|--:|"]
            for group in groups:
                change = "–" if group.change is None else far(group.change)
                rows.append(f"| {text(group.value or '–')} | {group.cards} | {group.outliers} | {change} |")
            parts.append("\n".join(rows))
        if cases := case_rows(kind):
            parts.append("\n".join(_cases(cases)))
    if fleet.failures:
        parts.append(
            "\n".join(f"- ✗ {text(card)}: {text(case)}: {text(why)}" for card, case, why in fleet.failures)
        )
    return "\n\n".join(parts) + "\n"


def _findings(kind: Kind) -> Iterator[str]:
    yield "| | Card | Labels | What | What else differs |"
    yield "|:--|:--|:--|:--|:--|"
    for finding in kind.findings:
        mark = "✗ outlier" if finding.outlier.confirmed else "? once"
        cells = (finding.card.title, labels(finding) or "–", where(finding), why(finding))
        yield f"| {mark} | {' | '.join(map(text, cells))} |"


def _cases(rows: Sequence[CaseRow]) -> Iterator[str]:
    yield f"<details><summary>{len(rows)} cases</summary>"
    yield ""
    yield "| Case | Cards | Median | Spread | Slowest |"
    yield "|:--|--:|--:|--:|:--|"
    for row in rows:
        cells = (row.series.name, str(len(row.changes)), row.time, row.spread, row.slowest)
        yield f"| {' | '.join(map(text, cells))} |"
    yield ""
    yield "</details>"
