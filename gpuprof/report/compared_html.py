# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison as one HTML file: the answer, both ladders, and each changed case with its distributions.

It needs no script at all: the pictures are drawn here, details open by themselves.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment
from markupsafe import Markup

from gpuprof.analysis.groups import groups
from gpuprof.comparison.compared import ATTENTION, Comparison, Moved, case_name
from gpuprof.comparison.comparison_document import document
from gpuprof.comparison.gates import GateResult
from gpuprof.report.change_pictures import axis_end, change_picture, range_texts, rounds_picture
from gpuprof.report.compared_text import (
    GATE_MARKS,
    MARKS,
    ComparedRow,
    bound_shift,
    facts_of,
    rows_of,
    surroundings,
)
from gpuprof.report.filling import assets, templates
from gpuprof.report.source import difference
from gpuprof.report.text import bound
from gpuprof.results import Measurement, Tool
from gpuprof.schema import to_json
from gpuprof.text import cut

#: Characters of one source that is compared, and cards, that a page holds.
_LONGEST_SOURCE = 400_000
_MOST_CARDS = 100


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a ladder.

    Args:
        row: Its texts.
        anchor: Where the case's card stands; empty where there is none.
        picture: The change and its interval; empty where there are none.
    """

    row: ComparedRow
    anchor: str
    picture: Markup


@dataclass(frozen=True, slots=True)
class Ladders:
    """Both ladders of one operation at one size.

    Args:
        title: What is computed, and the size.
        anchor: Where it stands.
        rows: In the new run's order.
        axis: Change at the end of the axis, in percent; 0 where nothing was timed.
        counts: How many have each verdict, in words.
    """

    title: str
    anchor: str
    rows: tuple[TableRow, ...]
    axis: float
    counts: str


@dataclass(frozen=True, slots=True)
class Card:
    """One case in full.

    Args:
        row: Its texts.
        anchor: Where it stands.
        pictures: Its rounds; empty where it was not timed.
        ends: The lowest and the highest time of the picture.
        bound: What binds it, before and after.
        moved: Its figures that changed, a line each.
        opened: Whether it is shown at once.
    """

    row: ComparedRow
    anchor: str
    pictures: Markup
    ends: tuple[str, str]
    bound: str
    moved: str
    opened: bool


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A kernel whose source is another one, and the lines that differ."""

    kernel: str
    lines: Markup


@dataclass(frozen=True, slots=True)
class View:
    """One comparison as the template shows it."""

    comparison: Comparison
    gates: tuple[GateResult, ...]
    facts: tuple[str, ...]
    cautions: tuple[str, ...]
    ladders: tuple[Ladders, ...]
    cards: tuple[Card, ...]
    sources: tuple[SourceChange, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]


def render_comparison_html(pairs: Sequence[tuple[Comparison, Sequence[GateResult]]], tool: Tool) -> str:
    """Comparisons of new runs with one base as one HTML document.

    The document holds every verdict as one JSON block, and allows no script and no network.

    Args:
        pairs: Each comparison with what became of its gates.
        tool: What compares.

    Returns:
        The document's text.
    """
    views = [_view(number, *pair) for number, pair in enumerate(pairs)]
    data = document([pair[0] for pair in pairs], [pair[1] for pair in pairs], tool)
    return (
        _environment()
        .get_template("compare.html.j2")
        .render(
            views=views,
            base_name=pairs[0][0].base_name,
            version=tool.version,
            style=assets("style.css"),
            dark=assets("dark.css"),
            data=_data_block(to_json(data)),
        )
    )


@functools.cache
def _environment() -> Environment:
    environment = templates()
    environment.globals.update(marks=MARKS, gate_marks=GATE_MARKS, attention=ATTENTION, bound=bound)
    return environment


def _data_block(found: object) -> Markup:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    text = json.dumps(found, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _view(number: int, comparison: Comparison, gates: Sequence[GateResult]) -> View:
    rows = rows_of(comparison)
    cards = _cards(number, rows)
    anchors = {id(card.row.case.new.case): card.anchor for card in cards}
    return View(
        comparison,
        tuple(gates),
        tuple(f"{label}: {text}" for label, text in facts_of(comparison)),
        surroundings(comparison),
        tuple(_ladders(number, comparison, rows, anchors)),
        cards,
        tuple(_sources(comparison)),
        tuple(case_name(comparison.base, case) for case in comparison.missing),
        tuple(case_name(comparison.new, case) for case in comparison.added),
    )


def _ladders(
    number: int, comparison: Comparison, rows: list[ComparedRow], anchors: dict[int, str]
) -> list[Ladders]:
    by_case = {id(row.case.new.case): row for row in rows}
    found: list[Ladders] = []
    for group in groups(comparison.new):
        for size in group.sizes:
            held = [by_case[id(case)] for case in size.cases if id(case) in by_case]
            if held:
                title = f"{group.title}, {size.label}" + (f", {group.scalars}" if group.scalars else "")
                found.append(_table(f"ladder-{number}-{len(found)}", title, held, anchors))
    return found


def _table(anchor: str, title: str, rows: list[ComparedRow], anchors: dict[int, str]) -> Ladders:
    judged = [row.case.judgement for row in rows if row.case.judgement is not None]
    end = axis_end(judged)
    table = []
    for row in rows:
        found = row.case.judgement
        picture = Markup("") if found is None else change_picture(found, row.case.verdict, end)
        table.append(TableRow(row, anchors.get(id(row.case.new.case), ""), picture))
    verdicts = [row.case.verdict for row in rows]
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in ATTENTION if kind in verdicts)
    return Ladders(title, anchor, tuple(table), end if judged else 0.0, counts)


def _cards(number: int, rows: list[ComparedRow]) -> tuple[Card, ...]:
    """Cases of which there is more to say than their row does, those that ask for attention first."""
    found: list[Card] = []
    for row in sorted(rows, key=lambda row: ATTENTION.index(row.case.verdict)):
        case = row.case
        base, new = (
            subject.case.timing.cold if subject.case.timing else None for subject in (case.base, case.new)
        )
        pictures, ends = Markup(""), ("", "")
        if case.judgement is not None and case.verdict != "same" and base is not None and new is not None:
            pictures, ends = rounds_picture(base, new), range_texts(base, new)
        moved = _moved_lines(case.moved)
        bound_by = bound_shift(case) if moved or case.verdict != "same" else ""
        if (pictures or moved or bound_by) and len(found) < _MOST_CARDS:
            opened = len(found) < 3 and case.verdict in ("regressed", "improved")
            found.append(Card(row, f"case-{number}-{len(found)}", pictures, ends, bound_by, moved, opened))
    return tuple(found)


def _moved_lines(moved: Sequence[Moved]) -> str:
    """Label, before, after and factor of each, in columns of a monospaced text."""
    rows = [(one.figure.label, *one.texts, f"× {one.ratio:.3g}" if one.ratio else "–") for one in moved]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(label: str, *texts: str) -> str:
        held = (text.rjust(width) for text, width in zip(texts, widths[1:], strict=True))
        return "  ".join([label.ljust(widths[0]), *held])

    return "\n".join(line(*row) for row in rows)


def _sources(comparison: Comparison) -> list[SourceChange]:
    """How the sources of kernels differ, each kernel once."""
    found: dict[str, SourceChange] = {}
    for case in comparison.cases:
        if case.same_source is not False or case.new.case.kernel in found:
            continue
        before, after = (
            _source(comparison, subject.run is comparison.base, subject.case)
            for subject in (case.base, case.new)
        )
        lines = difference(before, after)
        found[case.new.case.kernel] = SourceChange(
            case.new.case.kernel,
            lines or Markup("Its code is the same; header or included files differ."),
        )
    return list(found.values())


def _source(comparison: Comparison, of_base: bool, case: Measurement) -> str:
    run = comparison.base if of_base else comparison.new
    try:
        return cut(run.kernel(case.ran).source, _LONGEST_SOURCE)
    except KeyError:
        return ""
