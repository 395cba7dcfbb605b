# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search in the terminal: the answer at each size, the points in front, and what went wrong."""

from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from gpuprof.analysis import numbers
from gpuprof.analysis.modes import MODES
from gpuprof.analysis.status import status_of
from gpuprof.analysis.tuned import (
    TunedRow,
    TunedSize,
    answer_sentence,
    space_sentence,
    tie_sentence,
    tuned_sizes,
    typed,
)
from gpuprof.report.device_facts import devices_text
from gpuprof.report.shortened import shortened
from gpuprof.report.terminal import Writer
from gpuprof.results import Run

#: Points that a table shows of each size; the report has all of them.
_MOST_SHOWN = 10
_GAP = 2


def print_search(run: Run, *, file: TextIO, width: int | None = None, color: bool | None = None) -> None:
    """Print what a search found.

    Args:
        run: The search.
        file: Where to.
        width: Columns to fill; the terminal's, or 140 in a pipe, when None.
        color: Whether to use colour; only on a terminal when None.
    """
    run = shortened(run)
    writer = Writer(file, width, color)
    writer.title(f"{devices_text(run)} · {MODES[run.backend].ran}")
    sizes = tuned_sizes(run)
    if sizes and not sizes[0].by_time:
        writer.wrapped(
            "!",
            "Ranked by bounds, nothing was timed: the point with the lower bound may still be the slower.",
            "yellow",
        )
    for size in sizes:
        writer.gap()
        _print_size(writer, run, size)


def _print_size(writer: Writer, run: Run, size: TunedSize) -> None:
    answer = f"{size.title}: {answer_sentence(size)}."
    writer.wrapped("=", f"{answer} {ties}." if (ties := tie_sentence(size)) else answer, "bold")
    writer.wrapped("-", f"{space_sentence(size)}.", "dim")
    shown = size.rows[:_MOST_SHOWN]
    if shown:
        rows = [_cells(size, row, size.rows[0].value_us or 1.0) for row in shown]
        _print_table(writer, [("", "time" if size.by_time else "bound", "of the best", "point"), *rows])
        if len(size.rows) > len(shown):
            more = len(size.rows) - len(shown)
            told = "1 more point stands" if more == 1 else f"{more:,} more points stand"
            writer.wrapped("-", f"{told} in the report.", "dim")
    for row in size.wrong:
        status = status_of(run, row.case)
        mark = status.ascii_symbol if writer.ascii else status.symbol
        reason = row.case.reason or row.case.bounds_reason or "no reason was recorded"
        writer.wrapped(mark, f"{typed(row, several=size.several)} {status.word}: {reason}", "red")


def _cells(size: TunedSize, row: TunedRow, best: float) -> tuple[str, ...]:
    value = row.value_us or best
    return (
        "★" if row.is_tied else "◇" if row.is_default else "",
        numbers.time_us(value),
        numbers.ratio(best / value),
        typed(row, several=size.several) + (" (the header's)" if row.is_default else ""),
    )


def _print_table(writer: Writer, rows: list[tuple[str, ...]]) -> None:
    cells = [
        [writer.cell(text.replace("★", "*").replace("◇", "o") if writer.ascii else text) for text in row]
        for row in rows
    ]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(3)]
    for number, row in enumerate(cells):
        lead = [
            row[0] + " " * (widths[0] - cell_len(row[0])),
            *(" " * (widths[column] - cell_len(row[column])) + row[column] for column in (1, 2)),
        ]
        line = (" " * _GAP).join(lead) + " " * _GAP
        words = row[3].split(" ")
        # A point of many parameters goes on below itself.
        held = line
        indent = " " * cell_len(line)
        for word in words:
            if cell_len(held) + cell_len(word) > writer.width and held.strip():
                writer.styled(Text(held.rstrip(), style="dim" if not number else ""))
                held = indent
            held += word + " "
        writer.styled(Text(held.rstrip(), style="dim" if not number else ""))
