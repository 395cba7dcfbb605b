# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run in the terminal: one table per problem, as many columns as fit, reasons and cautions below."""

import shutil
import textwrap
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.banners import banners
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import Ladder, build_ladder
from gpuprof.analysis.modes import MODES
from gpuprof.analysis.status import status_of
from gpuprof.report.case_columns import CaseColumn, CaseRow, case_columns, says_anything
from gpuprof.report.cells import format_block
from gpuprof.report.device_facts import devices_text
from gpuprof.report.parameters_text import parameter_lines
from gpuprof.report.shortened import shortened
from gpuprof.report.text import bound
from gpuprof.results import Run
from gpuprof.text import one_line, visible

_GAP = 2
#: Width of a pipe, which has none of its own: wide enough for every column.
_PIPE_COLUMNS = 140
_NARROWEST = 40
_SHORTEST_NAME = 8
_ASCII = str.maketrans(
    {"µ": "u", "±": "+/-", "×": "x", "÷": "/", "→": "->", "≈": "~", "·": "|", "–": "-", "…": "...", "’": "'"}
)
_TONES = {"good": "green", "bad": "red", "muted": "dim"}
_LEVELS = {"bad": ("✗", "x", "red"), "warning": ("!", "!", "yellow"), "note": ("i", "i", "dim")}
#: Said below the table in any case, with each row's reason.
_SAID_BY_ROWS = {"incorrect", "failed", "over_limit"}


class Writer:
    """Prints styled text, in ASCII where the stream can hold nothing else.

    Args:
        file: Where to.
        width: Columns, None for the terminal's.
        color: None for colours on a terminal only.
    """

    def __init__(self, file: TextIO, width: int | None, color: bool | None) -> None:
        self.ascii = not _holds_unicode(file)
        self.width = max(_NARROWEST, width or _columns_of(file))
        plain = not color if color is not None else None
        self._console = Console(
            file=file,
            width=self.width,
            force_terminal=color,
            no_color=plain,
            color_system="standard" if color else "auto" if color is None else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def text(self, text: str) -> str:
        """The text in what the stream can hold."""
        safe = visible(text)
        if not self.ascii:
            return safe
        return safe.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")

    def cell(self, text: str) -> str:
        """The same for a table's cell, which is one line."""
        return self.text(one_line(text))

    def title(self, text: str) -> None:
        """A heading, in as many lines as it needs."""
        for line in textwrap.wrap(self.text(text), self.width, subsequent_indent="  "):
            self._console.print(Text(line, style="bold"), soft_wrap=True)

    def gap(self) -> None:
        """An empty line."""
        self._console.print()

    def wrapped(self, mark: str, text: str, style: str) -> None:
        """A paragraph hanging behind its mark."""
        indent = " " * (cell_len(mark) + 1)
        whole = bound(self.text(text))
        wrapped = textwrap.wrap(whole, self.width - len(indent), break_on_hyphens=False)
        lines = [line.replace("\u00a0", " ") for line in wrapped] or [""]
        first = Text().append(f"{mark} ", style=style).append(lines[0])
        self._console.print(first, soft_wrap=True)
        for line in lines[1:]:
            self._console.print(Text(indent + line), soft_wrap=True)

    def styled(self, line: Text) -> None:
        """One line that is safe and fits already."""
        self._console.print(line, soft_wrap=True)


def print_run(run: Run, *, file: TextIO, width: int | None = None, color: bool | None = None) -> None:
    """Print a run's tables.

    Args:
        run: What to show.
        file: Where to.
        width: Columns to fill; the terminal's, or 140 in a pipe, when None.
        color: Whether to use colour; only on a terminal when None.
    """
    run = shortened(run)
    writer = Writer(file, width, color)
    writer.title(f"{devices_text(run)} · {MODES[run.backend].ran}")
    shown: dict[str, str] = {}
    for group in groups(run):
        ladders = [build_ladder(run, size) for size in group.sizes]
        writer.gap()
        shown |= _print_group(writer, run, group, ladders)
    _print_legend(writer, shown)
    _print_cautions(writer, run)


def _print_group(writer: Writer, run: Run, group: Group, ladders: list[Ladder]) -> dict[str, str]:
    """Answers, table and reasons of one group; the columns that were shown, each with its meaning."""
    title = group.title
    if len(ladders) == 1:
        title += f", {ladders[0].size.label}"
    writer.title(title)
    for ladder in ladders:
        answer = answer_of(run, ladder)
        fastest = "fastest is " if ladder.fastest is not None else ""
        writer.wrapped("=", f"{answer.size}: {fastest}{answer.text}", "bold")
    rows = [[CaseRow(run, rung, case) for rung in ladder.rungs for case in rung.cases] for ladder in ladders]
    everything = [row for held in rows for row in held]
    columns = [
        column
        for column in case_columns(run, ladders, ascii_only=writer.ascii)
        if says_anything(column, everything)
    ]
    kept = _fitting(writer, columns, everything)
    _print_table(writer, kept, rows)
    _print_hidden(writer, columns, kept, everything)
    for row in everything:
        status = status_of(run, row.case)
        if not status.usable:
            mark = status.ascii_symbol if writer.ascii else status.symbol
            what = f"{row.case.kernel} {row.case.problem.label} {format_block(row.case, brief=True)}"
            writer.wrapped(
                mark,
                f"{what} {status.word}: {row.case.reason or 'no reason was recorded'}",
                _TONES[status.tone],
            )
        for remark in row.case.remarks:
            writer.wrapped("!", f"{row.case.kernel} {row.case.problem.label}: {remark}", "yellow")
    for ladder in ladders:
        for sentence in parameter_lines(run, group, ladder.size.label):
            writer.wrapped("=", f"{ladder.size.label}: {sentence}", "bold")
    return {column.label: column.meaning for column in kept}


def _print_hidden(
    writer: Writer, columns: list[CaseColumn], kept: list[CaseColumn], rows: list[CaseRow]
) -> None:
    """Name the columns that did not fit, and the width at which all of them do."""
    hidden = [column.label for column in columns if column not in kept]
    if hidden:
        needed = _needed(writer, columns, rows)
        writer.wrapped("-", f"hidden at this width: {', '.join(hidden)}; {needed} columns show all", "dim")


def _print_legend(writer: Writer, shown: dict[str, str]) -> None:
    """What each column means that was shown."""
    if not shown:
        return
    writer.gap()
    indent = max(cell_len(writer.cell(label)) for label in shown)
    for label, meaning in shown.items():
        text = writer.cell(label)
        writer.wrapped(text + " " * (indent - cell_len(text) + 1), meaning, "dim")


def _print_cautions(writer: Writer, run: Run) -> None:
    found = [banner for banner in banners(run) if banner.code not in _SAID_BY_ROWS]
    if found:
        writer.gap()
    for banner in found:
        symbol, ascii_symbol, style = _LEVELS[banner.level]
        detail = "" if banner.level == "note" else f" {banner.detail}"
        text = f"{banner.title}.{detail} {banner.fix}".strip()
        writer.wrapped(ascii_symbol if writer.ascii else symbol, text, style)


def _print_table(writer: Writer, columns: list[CaseColumn], slices: list[list[CaseRow]]) -> None:
    widths = {
        column.label: _width(writer, column, [row for rows in slices for row in rows]) for column in columns
    }
    # Two columns stay whatever the width: then the kernel's name gives way.
    excess = sum(widths.values()) + _GAP * (len(columns) - 1) - writer.width
    if excess > 0:
        widths[columns[0].label] = max(_SHORTEST_NAME, widths[columns[0].label] - excess)
    writer.styled(
        _line(writer, columns, widths, [Text(writer.cell(column.label), style="dim") for column in columns])
    )
    for index, rows in enumerate(slices):
        if index:
            writer.gap()
        for row in rows:
            # Made safe first: Rich would drop some control characters instead of showing them.
            cells = [Text(writer.cell(column.read(row))) for column in columns]
            for column, cell in zip(columns, cells, strict=True):
                if column.label == "outcome":
                    cell.stylize(_TONES[status_of(row.run, row.case).tone])
                elif row.shown and row.rung.is_fastest:
                    cell.stylize("bold")
            writer.styled(_line(writer, columns, widths, cells))


def _line(writer: Writer, columns: list[CaseColumn], widths: dict[str, int], cells: list[Text]) -> Text:
    """Cells side by side, without blanks at the end."""
    line = Text()
    for column, cell in zip(columns, cells, strict=True):
        text = cell.plain
        width = widths[column.label]
        if cell_len(text) > width:
            ellipsis = writer.text("…")
            text = set_cell_size(text, width - cell_len(ellipsis)) + ellipsis
        blanks = " " * (width - cell_len(text))
        line.append(blanks if column.right else "")
        line.append(text, style=cell.spans[0].style if cell.spans else cell.style)
        line.append(("" if column.right else blanks) + " " * _GAP)
    line.rstrip()
    return line


def _width(writer: Writer, column: CaseColumn, rows: list[CaseRow]) -> int:
    return max(cell_len(writer.cell(text)) for text in (column.label, *(column.read(row) for row in rows)))


def _fitting(writer: Writer, columns: list[CaseColumn], rows: list[CaseRow]) -> list[CaseColumn]:
    """Drop the least important columns until the rest fit."""
    kept = list(columns)
    while len(kept) > 2 and _needed(writer, kept, rows) > writer.width:
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept


def _needed(writer: Writer, columns: list[CaseColumn], rows: list[CaseRow]) -> int:
    """How wide a table of these columns is."""
    return sum(_width(writer, column, rows) + _GAP for column in columns) - _GAP


def _holds_unicode(file: TextIO) -> bool:
    encoding = getattr(file, "encoding", None) or "utf-8"
    try:
        "µ±×→·–✓✗≠◷○◇".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns_of(file: TextIO) -> int:
    fallback = 80 if file.isatty() else _PIPE_COLUMNS
    return shutil.get_terminal_size((fallback, 24)).columns
