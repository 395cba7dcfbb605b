# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison in the terminal: the answer first, then what changed, what did not, and the gates."""

from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from gpuprof.comparison.compared import ATTENTION, Comparison, case_name
from gpuprof.comparison.document import most_rounds
from gpuprof.comparison.gates import GateResult
from gpuprof.report.compared_text import GATE_MARKS, MARKS, Row, facts, rows_of, surroundings
from gpuprof.report.terminal import _Writer as Writer

_TONES = {"good": "green", "bad": "red", "warning": "yellow", "muted": "dim"}
#: Rows of unchanged cases that are shown: the rest is counted.
_MOST_UNCHANGED = 12
_GAP = 2


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
    for sentence in surroundings(comparison):
        writer.wrapped("!", sentence, "yellow")
    rows = sorted(rows_of(comparison), key=lambda row: ATTENTION.index(row.case.verdict))
    shown = [row for row in rows if row.case.verdict != "same"]
    unchanged = [row for row in rows if row.case.verdict == "same"]
    shown += unchanged[:_MOST_UNCHANGED]
    if shown:
        writer.gap()
        _print_table(writer, shown)
    if len(unchanged) > _MOST_UNCHANGED:
        writer.wrapped("=", f"{len(unchanged) - _MOST_UNCHANGED} more are the same.", "dim")
    for word, cases in (("missing", comparison.missing), ("new", comparison.added)):
        for case in cases:
            writer.wrapped("-" if word == "missing" else "+", f"{word}: {case_name(case)}", "dim")
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
        writer.wrapped(mark, f"{result.gate.text}: {result.sentence}", _TONES[tone])


def _print_table(writer: Writer, rows: list[Row]) -> None:
    """One line a case, and below it why, hanging under its name."""
    heads = ("", "kernel", "size", "before", "after", "change")
    table = [
        [
            MARKS[row.case.verdict][1 if writer.ascii else 0],
            row.kernel,
            row.size,
            row.before,
            row.after,
            row.change or row.case.verdict,
        ]
        for row in rows
    ]
    cells = [[writer.cell(text) for text in line] for line in (heads, *table)]
    widths = [max(cell_len(line[column]) for line in cells) for column in range(len(heads))]
    excess = sum(widths) + _GAP * (len(widths) - 1) - writer.width
    widths[1] = max(8, widths[1] - max(0, excess))
    writer.styled(_line(cells[0], widths, "dim"))
    for row, line in zip(rows, cells[1:], strict=True):
        tone = _TONES[MARKS[row.case.verdict][2]]
        writer.styled(_line(line, widths, "" if row.case.verdict == "same" else tone))
        if row.case.verdict != "same" or row.moved:
            why = [row.case.sentence, *row.moved]
            writer.wrapped("   ", "; ".join(filter(None, why)), "dim")


def _line(cells: list[str], widths: list[int], style: str) -> Text:
    line = Text()
    for column, (text, width) in enumerate(zip(cells, widths, strict=True)):
        shown = text if cell_len(text) <= width else f"{text[: width - 1]}…"
        blanks = " " * max(0, width - cell_len(shown))
        line.append(f"{blanks}{shown}" if column > 2 else f"{shown}{blanks}", style=style or None)
        line.append(" " * _GAP)
    line.rstrip()
    return line
