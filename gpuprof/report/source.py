# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel's source as HTML: a column for the code, and one for each count of its lines.

A listing is a few elements, whatever its length: each column is one text of as many lines as the code. Only
the line that is marked, and those that other sizes' bounds name, have elements of their own.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape

from gpuprof.analysis import numbers
from gpuprof.analysis.lines import LineFigures, line_figures
from gpuprof.results import Measurement
from gpuprof.text import visible

_HEADER_BEGIN = re.compile(r"/\*gpuprof\b")
_HEADER_END = re.compile(r"\*/[ \t]*\n*")
#: Lines of a source up to which it is compared with another: comparing takes the square of that.
_MOST_COMPARED = 2000


@dataclass(frozen=True, slots=True)
class CountColumn:
    """One count of every line: a text as long as the listing, a line empty where it did none of that."""

    label: str
    term: str
    text: Markup


@dataclass(frozen=True, slots=True)
class Listing:
    """Consecutive lines of a source from number `first` on, with the counts that any of them has."""

    first: int
    numbers: Markup
    counts: tuple[CountColumn, ...]
    code: Markup


_Read = Callable[[LineFigures], str]


def _count(value: float) -> str:
    return numbers.count(value) if value else ""


def _percent(value: float | None) -> str:
    return "" if value is None else numbers.percent(value)


#: Heading, term and text of each count, in the order shown.
_COUNTS: tuple[tuple[str, str, _Read], ...] = (
    (
        "Sectors / request",
        "sectors_per_request",
        lambda line: (
            "" if line.sectors_per_request is None else numbers.significant(line.sectors_per_request)
        ),
    ),
    ("Share of sectors", "share_of_sectors", lambda line: _percent(line.traffic_pct)),
    ("Wavefronts", "wavefront", lambda line: _count(line.wavefronts)),
    (
        "Bank conflicts",
        "bank_conflict",
        lambda line: numbers.count(line.bank_conflicts) if line.wavefronts else "",
    ),
    ("FMAs", "fma", lambda line: _count(line.ffma)),
    ("Barriers", "barrier", lambda line: _count(line.barriers)),
    ("Async copies", "async_copy", lambda line: _count(line.async_copies)),
)


def listing(
    source: str,
    anchor: str,
    span: tuple[int, int],
    case: Measurement | None = None,
    binding: str = "",
    named: frozenset[int] = frozenset(),
) -> Listing:
    """Lines of a source, `span` from 0 on, with the counts of one case.

    `binding` is the part that binds it, where a line is known to work for that; `named` are further lines
    that a link may lead to.
    """
    first, last = span
    texts = visible(source).removesuffix("\n").split("\n")[first:last]
    lines = range(first + 1, first + 1 + len(texts))
    figures = line_figures(case) if case else {}
    marks = {number: mark for number in lines if (mark := _mark(figures.get(number), binding))}
    reads = (("Share of " + binding, "share_of_binding", _binding_share), *_COUNTS) if binding else _COUNTS
    columns = (
        CountColumn(label, term, _column(lines, {n: read(figures[n]) for n in lines if n in figures}, marks))
        for label, term, read in (reads if case else ())
    )
    return Listing(
        first + 1,
        _column(lines, {number: str(number) for number in lines}, marks),
        tuple(column for column in columns if column.text.striptags()),
        _code(lines, texts, anchor, marks, named),
    )


def _binding_share(line: LineFigures) -> str:
    return _percent(line.binding_pct)


def _mark(figures: LineFigures | None, binding: str) -> str:
    """Why a line stands out; empty for most. Where a part binds, only its line does."""
    if figures is None:
        return ""
    if binding:
        return f"binds: most of {binding}" if figures.binds else ""
    told = (
        (figures.most_traffic, "most global sectors"),
        (figures.most_conflicts, "most bank conflicts"),
    )
    return ", ".join(text for holds, text in told if holds)


def _column(lines: range, texts: Mapping[int, str], marks: Mapping[int, str]) -> Markup:
    """One text a line; that of a marked line in an element that fills it."""
    return Markup(
        "\n".join(
            f"<b>{escape(texts.get(number, '')) or ' '}</b>"
            if number in marks
            else escape(texts.get(number, ""))
            for number in lines
        )
    )


def _code(
    lines: range, texts: list[str], anchor: str, marks: Mapping[int, str], named: frozenset[int]
) -> Markup:
    found = []
    for number, text in zip(lines, texts, strict=True):
        code = str(escape(text))
        if number in marks:
            code = f'<b id="{anchor}-L{number}">{code}<i> ◂ {escape(marks[number])}</i></b>'
        elif number in named:
            code = f'<span id="{anchor}-L{number}">{code}</span>'
        found.append(code)
    return Markup("\n".join(found))


def header_lines(source: str) -> int:
    """How many lines the licence and the TOML header take; the kernel starts after them."""
    begin = _HEADER_BEGIN.search(source)
    end = _HEADER_END.search(source, begin.end()) if begin else None
    return source.count("\n", 0, end.end()) if end else 0


def line_count(source: str) -> int:
    """Lines of a source as they are listed."""
    return visible(source).removesuffix("\n").count("\n") + 1


def difference(before: str, after: str) -> Markup:
    """How two kernels differ, headers aside: lines marked with + or -, those that stay with a blank."""
    old, new = (visible(text).splitlines()[header_lines(text) :] for text in (before, after))
    if max(len(old), len(new)) > _MOST_COMPARED:
        return escape(f"not compared: more than {_MOST_COMPARED:,} lines")
    found = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    elements = {"+": "ins", "-": "del", "@": "i"}
    pieces = []
    for mark, run in groupby(found, key=lambda line: line[0]):
        text = escape("\n".join(run))
        element = elements.get(mark)
        pieces.append(f"<{element}>{text}</{element}>" if element else text)
    return Markup("\n".join(pieces))
