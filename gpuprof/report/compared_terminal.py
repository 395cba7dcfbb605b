# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison in the terminal: the answer first, then what changed, what did not, and the gates."""

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from gpuprof.comparison.compared import ATTENTION, Comparison, case_name
from gpuprof.comparison.comparison_document import most_rounds
from gpuprof.comparison.gates import GateResult
from gpuprof.report.compared_text import (
    GATE_MARKS,
    MARKS,
    Row,
    facts,
    rows_of,
    sources,
    surroundings,
)
from gpuprof.report.terminal import Writer

_TONES = {"good": "green", "bad": "red", "warning": "yellow", "muted": "dim"}
#: Rows of unchanged cases that are shown: the rest is counted.
_MOST_UNCHANGED = 12
_GAP = 2
#: Columns of the table: its kernel's name, which gives way first, and then a figure that may be left out.
_NAME, _FIRST_FIGURE, _BEFORE = 1, 2, 3
_SHORTEST_NAME = 8
#: What the terminal's own table of ASCII stand-ins has no need of.
_ASCII = str.maketrans({"−": "-", "≥": ">=", "⚠": "!"})


def print_comparison(
    comparison: Comparison,
    gates: Sequence[GateResult],
    *,
    file: TextIO,
    width: int | None = None,
    color: bool | None = None,
) -> None:
    """Print a comparison.

    Args:
        comparison: What to show.
        gates: What became of the gates.
        file: Where to.
        width: Columns to fill; the terminal's, or 140 in a pipe, when None.
        color: Whether to use colour; only on a terminal when None.
    """
    writer = Writer(file, width, color)
    writer.title(f"{comparison.new_name} against {comparison.base_name}: {comparison.headline}")
    for name, run in ((comparison.base_name, comparison.base), (comparison.new_name, comparison.new)):
        writer.wrapped(" ", facts(name, run, most_rounds(run)), "dim")
    if changed := sources(comparison):
        writer.wrapped(" ", changed, "dim")
    for sentence in surroundings(comparison):
        writer.wrapped("!", sentence, "yellow")
    rows = sorted(rows_of(comparison), key=lambda row: ATTENTION.index(row.case.verdict))
    shown = [row for row in rows if row.case.verdict != "same"]
    unchanged = [row for row in rows if row.case.verdict == "same"]
    shown += unchanged[:_MOST_UNCHANGED]
    if comparison.advice:
        writer.wrapped("!", f"uncertain: {comparison.advice}", "yellow")
    if shown:
        writer.gap()
        _print_table(writer, shown)
    if len(unchanged) > _MOST_UNCHANGED:
        writer.wrapped("=", f"{len(unchanged) - _MOST_UNCHANGED} more are the same.", "dim")
    for word, run, cases in (
        ("missing", comparison.base, comparison.missing),
        ("new", comparison.new, comparison.added),
    ):
        for case in cases:
            writer.wrapped("-" if word == "missing" else "+", f"{word}: {case_name(run, case)}", "dim")
    if gates:
        writer.gap()
        _print_gates(writer, gates)


def print_gates(
    gates: Sequence[GateResult], *, file: TextIO, width: int | None = None, color: bool | None = None
) -> None:
    """Print what became of the gates of one run.

    Args:
        gates: In the order written.
        file: Where to.
        width: As `print_comparison`.
        color: As `print_comparison`.
    """
    _print_gates(Writer(file, width, color), gates)


def _print_gates(writer: Writer, gates: Sequence[GateResult]) -> None:
    for result in gates:
        symbol, plain, tone = GATE_MARKS[result.outcome]
        mark = plain if writer.ascii else symbol
        writer.wrapped(mark, _held(writer, f"{result.gate.text}: {result.sentence}"), _TONES[tone])


def _print_table(writer: Writer, rows: list[Row]) -> None:
    """One line a case, and below it why, hanging under its name."""
    heads = ("", "kernel", "size", "before", "after", "change")
    shapes = Counter((row.kernel, row.size) for row in rows)
    table = [
        [
            MARKS[row.case.verdict][1 if writer.ascii else 0],
            row.kernel if shapes[row.kernel, row.size] == 1 else f"{row.kernel} {row.shape}",
            row.size,
            row.before,
            row.after,
            row.change or row.case.verdict,
        ]
        for row in rows
    ]
    cells = [[writer.cell(_held(writer, text)) for text in line] for line in (heads, *table)]
    widths = [max(cell_len(line[column]) for line in cells) for column in range(len(heads))]
    columns = list(range(len(heads)))
    if _excess(writer, widths, columns) > widths[_NAME] - _SHORTEST_NAME:
        columns.remove(_BEFORE)  # change and after tell it
    widths[_NAME] = max(_SHORTEST_NAME, widths[_NAME] - max(0, _excess(writer, widths, columns)))
    writer.styled(_line(writer, cells[0], widths, columns, "dim"))
    for row, line in zip(rows, cells[1:], strict=True):
        tone = _TONES[MARKS[row.case.verdict][2]]
        writer.styled(_line(writer, line, widths, columns, "" if row.case.verdict == "same" else tone))
        if row.case.verdict != "same" or row.moved:
            why = [row.case.sentence, *row.moved]
            writer.wrapped("   ", _held(writer, "; ".join(filter(None, why))), "dim")


def _excess(writer: Writer, widths: list[int], columns: list[int]) -> int:
    """By how much a table of these columns is too wide."""
    return sum(widths[column] + _GAP for column in columns) - _GAP - writer.width


def _held(writer: Writer, text: str) -> str:
    """The text in signs that the stream can hold."""
    return text.translate(_ASCII) if writer.ascii else text


def _line(writer: Writer, cells: list[str], widths: list[int], columns: list[int], style: str) -> Text:
    line = Text()
    for column in columns:
        text, width = cells[column], widths[column]
        if cell_len(text) > width:
            ellipsis = writer.text("…")
            text = set_cell_size(text, width - cell_len(ellipsis)) + ellipsis
        blanks = " " * (width - cell_len(text))
        line.append(f"{blanks}{text}" if column >= _FIRST_FIGURE else f"{text}{blanks}", style=style or None)
        line.append(" " * _GAP)
    line.rstrip()
    return line
