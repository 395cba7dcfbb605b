# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel's source as HTML: a column for the code, and one for each count of its lines.

A listing is a few elements, whatever its length: each column is one text of as many lines as the code. Only
the line that is marked, and those that other sizes' bounds name, have elements of their own.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import groupby

from markupsafe import Markup, escape
from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.counts import BANK_CONFLICTS, GLOBAL_REQUESTS, GLOBAL_SECTORS, SHARED_WAVEFRONTS
from gpuprof.results import Measurement
from gpuprof.text import visible


class LineCounts:
    """What each line of a source did, by sums of counters."""

    def __init__(self, case: Measurement | None) -> None:
        held = case.lines or () if case else ()
        self.lines = {line.line: line.counters for line in held}
        bound = case.bounds.get(case.bound_by or "") if case else None
        #: Counters of the work of the part that binds the case.
        self.binding = bound.counters if bound else ()
        self._whole = cache(lambda names: sum(self.of(line, *names) for line in self.lines))
        self._most = cache(lambda names: max((self.of(line, *names) for line in self.lines), default=0.0))

    def of(self, line: int, *names: str) -> float:
        return sum(self.lines[line].get(name, 0) for name in names)

    def share_pct(self, line: int, *names: str) -> float | None:
        """That as a share of all lines; None where it is nothing."""
        counted = self.of(line, *names)
        return 100.0 * counted / self._whole(names) if counted else None

    def is_most(self, line: int, *names: str) -> bool:
        """Whether no line counted more."""
        counted = self.of(line, *names)
        return bool(counted) and counted == self._most(names)


_HEADER_BEGIN = re.compile(r"/\*gpuprof\b")
_HEADER_END = re.compile(r"\*/[ \t]*\n*")
#: Lines of a source up to which it is compared with another: comparing takes the square of that.
_MOST_COMPARED = 2000


class Listing(Struct, frozen=True):
    """Consecutive lines of a source from number `first` on, with the counts that any of them has.

    A count is its label, its term, and a text as long as the listing, a line empty where it did none of that.
    """

    first: int
    numbers: Markup
    counts: tuple[tuple[str, str, Markup], ...]
    code: Markup


_Read = Callable[[LineCounts, int], str]


def _sum(*names: str) -> _Read:
    return lambda counts, line: numbers.count(done) if (done := counts.of(line, *names)) else ""


def _share(*names: str) -> _Read:
    return lambda counts, line: (
        "" if (pct := counts.share_pct(line, *names)) is None else numbers.percent(pct)
    )


def _per_request(counts: LineCounts, line: int) -> str:
    requests = counts.of(line, *GLOBAL_REQUESTS)
    return numbers.significant(counts.of(line, *GLOBAL_SECTORS) / requests) if requests else ""


def _conflicts(counts: LineCounts, line: int) -> str:
    return numbers.count(counts.of(line, *BANK_CONFLICTS)) if counts.of(line, *SHARED_WAVEFRONTS) else ""


#: Heading, term and text of each count, in the order shown.
_COUNTS: tuple[tuple[str, str, _Read], ...] = (
    ("Sectors / request", "sectors_per_request", _per_request),
    ("Share of sectors", "share_of_sectors", _share(*GLOBAL_SECTORS)),
    ("Wavefronts", "wavefront", _sum(*SHARED_WAVEFRONTS)),
    ("Bank conflicts", "bank_conflict", _conflicts),
    ("FMAs", "fma", _sum("ffma_thread_instructions", "dfma_thread_instructions")),
    ("Barriers", "barrier", _sum("barriers")),
    ("Async copies", "async_copy", _sum("async_copy_requests")),
)


def listing(
    source: str,
    anchor: str,
    span: tuple[int, int],
    case: Measurement | None = None,
    binding: str = "",
    named: frozenset[int] = frozenset(),
    wrong: Mapping[int, str] = {},
) -> Listing:
    """Lines of a source, `span` from 0 on, with the counts of one case.

    `binding` is the part that binds it, where a line is known to work for that; `named` are further lines
    that a link may lead to, and `wrong` those where a case went wrong, each with how.
    """
    first, last = span
    texts = visible(source).removesuffix("\n").split("\n")[first:last]
    lines = range(first + 1, first + 1 + len(texts))
    held = LineCounts(case)
    counted = [number for number in lines if number in held.lines]
    marks = {number: mark for number in counted if (mark := _mark(held, number, binding))} | dict(wrong)
    of_binding = (f"Share of {binding}", "share_of_binding", _share(*held.binding))
    columns = (
        (label, term, _column(lines, {line: read(held, line) for line in counted}, marks))
        for label, term, read in ((of_binding, *_COUNTS) if binding else _COUNTS if case else ())
    )
    return Listing(
        first + 1,
        _column(lines, {number: str(number) for number in lines}, marks),
        tuple(column for column in columns if column[2].striptags()),
        _code(lines, texts, anchor, marks, named),
    )


def _mark(counts: LineCounts, line: int, binding: str) -> str:
    """Why a line stands out; empty for most. Where a part binds, only its line does."""
    if binding:
        return f"most of {binding}" if counts.is_most(line, *counts.binding) else ""
    told = (
        (GLOBAL_SECTORS, "most global sectors"),
        (BANK_CONFLICTS, "most bank conflicts"),
    )
    return ", ".join(text for names, text in told if counts.is_most(line, *names))


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
