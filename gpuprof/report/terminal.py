# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A document in the terminal: as many columns as fit, in ASCII where the stream can hold nothing else."""

import os
import re
import shutil
from collections.abc import Sequence
from itertools import groupby
from typing import TextIO

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.text import Text

from gpuprof.analysis.numbers import bound
from gpuprof.report.document import (
    AnswerTile,
    Cell,
    CodeBlock,
    Column,
    Content,
    Document,
    Legend,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from gpuprof.text import one_line, visible

_GAP = 2
#: Width of a pipe, which has none of its own: wide enough for every column.
_PIPE_COLUMNS = 140
_NARROWEST = 40
_SHORTEST_NAME = 8
#: Columns in which a clause can still be read.
_FEWEST_WORDS = 24
_ASCII = str.maketrans(
    {
        **{"µ": "u", "±": "+/-", "×": "x", "÷": "/", "→": "->", "≈": "~", "·": "|", "–": "-", "−": "-"},
        **{"…": "...", "’": "'", "≥": ">=", "≤": "<=", "★": "*", "▲": "^", "▼": "v"},
        **{"✓": "+", "≠": "!", "✗": "x", "◷": "t", "○": "o", "◇": "c"},
    }
)
_STYLES: dict[Tone, str] = {
    "": "",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "muted": "dim",
    "strong": "bold",
}


def print_document(
    document: Document, *, file: TextIO, width: int | None = None, color: bool | None = None
) -> None:
    """Print a document.

    Args:
        width: Columns to fill; the terminal's, or 140 in a pipe, when None.
        color: Whether to use colour; only on a terminal, and not under `NO_COLOR`, when None.
    """
    writer = _TerminalWriter(file, width, color)
    if document.title:
        writer.title(document.title)
    for label, text in document.facts:
        writer.paragraph(" ", f"{label}: {text}", "muted")
    _print_content(writer, document.content)


def _print_content(writer: "_TerminalWriter", content: Sequence[Content]) -> None:
    for kind, found in groupby(content, type):
        held = list(found)
        if kind is Table:
            _print_tables(writer, [item for item in held if isinstance(item, Table)])
        elif kind is AnswerTile:
            _print_tiles(writer, [item for item in held if isinstance(item, AnswerTile)])
        else:
            for item in held:
                _print_item(writer, item)


def _print_item(writer: "_TerminalWriter", item: Content) -> None:
    match item:
        case Section(folded=True):
            writer.paragraph("", item.title, "muted")
        case Section():
            writer.gap()
            if item.title:
                writer.title(item.title)
            _print_content(writer, item.content)
        case Sentence():
            writer.paragraph(item.mark, item.text, item.tone)
        case Legend():
            writer.legend()
        case CodeBlock():
            for line in item.text.splitlines():
                writer.line(Text(f"  {writer.text(line)}"))


def _print_tiles(writer: "_TerminalWriter", tiles: list[AnswerTile]) -> None:
    """Answers of several sizes below each other, their lead said once; what to do next about one kernel."""
    rows = []
    for number, tile in enumerate(tiles):
        lead = "" if number and tile.lead == tiles[number - 1].lead else tile.lead
        texts = (Cell(lead, tone="strong"), Cell(tile.size), Cell(tile.kernel, tone="strong"))
        rows.append(Row((*texts, Cell(tile.said))))
    left = Column("", right=False)
    table = Table((left, left, left, Column("", right=False, folds=_FEWEST_WORDS)), tuple(rows), headed=False)
    layout = _TableLayout(writer, [table])
    if layout.whole_width <= writer.width:
        _print_table(writer, layout, table)
    else:
        for tile in tiles:
            writer.paragraph(tile.lead, f"{tile.size}: {tile.kernel}, {tile.said}", "strong")
    first, *others = tiles
    if first.action and all(tile.kernel == first.kernel for tile in others):
        writer.paragraph(f"Next at {first.size}:" if others else "Next:", first.action, "strong")


class _TableLayout:
    """Tables that stand below each other, with the columns that fit and how wide they are."""

    def __init__(self, writer: "_TerminalWriter", tables: list[Table]) -> None:
        self.tables, self._room = tables, writer.width
        self.columns = columns = tables[0].columns
        texts: list[list[str]] = [[] for _ in columns]
        for table in tables:
            for number, column in enumerate(table.columns):
                texts[number].append(writer.cell(column.label) if table.headed else "")
                texts[number] += [writer.written(row.cells[number]) for row in table.rows]
        self.widths = [max(map(cell_len, held), default=0) for held in texts]
        words = [
            max((cell_len(word) for text in held for word in text.split(" ")), default=0) for held in texts
        ]
        #: Where columns that fold are narrowest: no word is parted that a line of prose would hold.
        self._folds = [
            column.folds and max(column.folds, min(word, _FEWEST_WORDS))
            for column, word in zip(columns, words, strict=True)
        ]
        #: How wide a terminal would show all columns.
        self.whole_width = sum(map(self._least, range(len(columns)))) + _GAP * (len(columns) - 1)
        self.shown = [number for number, column in enumerate(columns) if not column.rank]
        for number in sorted(range(len(columns)), key=lambda number: columns[number].rank):
            if columns[number].rank:
                kept = self.shown
                self.shown = sorted([*kept, number])
                if self._excess(least=True) > 0:
                    self.shown = kept
        for number in (number for number in self.shown if columns[number].folds):
            self.widths[number] = max(self._folds[number], self.widths[number] - max(0, self._excess()))
        while self._excess() > 0:  # what folds gives way, then names, then whatever is widest
            long = [n for n in self.shown if not columns[n].right and self.widths[n] > _SHORTEST_NAME]
            folding = [n for n in long if columns[n].folds]
            widest = max(folding or long or self.shown, key=lambda number: self.widths[number])
            self.widths[widest] -= 1

    def _least(self, number: int) -> int:
        folds = self._folds[number]
        return min(folds, self.widths[number]) if folds else self.widths[number]

    def _excess(self, *, least: bool = False) -> int:
        """By how much the table is too wide; where `least`, with each column that folds at its narrowest."""
        widths = [self._least(number) if least else self.widths[number] for number in self.shown]
        return sum(widths) + _GAP * (len(widths) - 1) - self._room


def _print_tables(writer: "_TerminalWriter", tables: list[Table]) -> None:
    for _, found in groupby(tables, lambda table: table.columns[1:]):
        layout = _TableLayout(writer, list(found))
        for table in layout.tables:
            if table is not tables[0]:
                writer.gap()
            _print_table(writer, layout, table)
        hidden = [column.label for at, column in enumerate(layout.columns) if at not in layout.shown]
        if hidden:
            text = f"hidden at this width: {', '.join(hidden)}; {layout.whole_width} columns show all"
            writer.paragraph("-", text, "muted")
        for at in layout.shown:
            writer.explain(layout.columns[at])


def _print_table(writer: "_TerminalWriter", layout: _TableLayout, table: Table) -> None:
    if table.headed:
        heads = tuple(Cell(column.label, tone="muted") for column in table.columns)
        _print_row(writer, layout, Row(heads))
    for number, row in enumerate(table.rows):
        if row.begins and number:
            writer.gap()
        _print_row(writer, layout, row)
        for sentence in row.details:
            writer.paragraph(sentence.mark or "   ", sentence.text, sentence.tone or "muted")


def _print_row(writer: "_TerminalWriter", layout: _TableLayout, row: Row) -> None:
    """Cells side by side, without blanks at the end; a text that folds goes on below itself."""
    lines: list[list[str]] = []
    for at in layout.shown:
        text, width = writer.written(row.cells[at]), layout.widths[at]
        if not layout.columns[at].folds and cell_len(text) > width:
            ellipsis = writer.text("…")
            text = set_cell_size(text, width - cell_len(ellipsis)) + ellipsis
        lines.append(writer.wrap(text, width))
    for depth in range(max(map(len, lines))):
        line = Text()
        for at, held in zip(layout.shown, lines, strict=True):
            text = held[depth] if depth < len(held) else ""
            blanks = " " * (layout.widths[at] - cell_len(text))
            right = layout.columns[at].right
            line.append(blanks if right else "")
            line.append(text, style=_STYLES[row.cells[at].tone or row.tone] or None)
            line.append(("" if right else blanks) + " " * _GAP)
        line.rstrip()
        writer.line(line)


class _TerminalWriter:
    """Prints styled text, in ASCII where the stream can hold nothing else."""

    def __init__(self, file: TextIO, width: int | None, color: bool | None) -> None:
        self.ascii = not _holds_unicode(file)
        fallback = 80 if file.isatty() else _PIPE_COLUMNS
        self.width = max(_NARROWEST, width or shutil.get_terminal_size((fallback, 24)).columns)
        self._in_text = False
        self._meanings: dict[str, str] = {}
        plain = os.environ.get("NO_COLOR")  # of which Rich would keep what is bold or dim
        self._console = Console(
            file=file,
            width=self.width,
            force_terminal=color,
            force_jupyter=False,  # which would show every line as an output of its own
            no_color=not color if color is not None else None,
            color_system="standard" if color else "auto" if color is None and not plain else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def text(self, text: str) -> str:
        """The text in what the stream can hold."""
        # Made safe first: Rich would drop some control characters instead of showing them.
        safe = visible(text)
        if not self.ascii:
            return safe
        return safe.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")

    def cell(self, text: str) -> str:
        """The same for a table's cell, which is one line."""
        return self.text(one_line(text))

    def written(self, cell: Cell) -> str:
        """What stands in a cell."""
        text = self.cell("–" if cell.text is None else cell.text)
        return f"{self.text(cell.mark)}\u00a0{text}" if cell.mark and text else text or self.text(cell.mark)

    def wrap(self, text: str, width: int) -> list[str]:
        """Lines of a text that is safe, no figure parted from its unit; blanks within a line stay."""
        lines = [""]
        for blanks, word in re.findall(r"([ \t\n]*)([^ \t\n]+)", bound(text)):
            gap = blanks if blanks.strip(" ") == "" else " "
            held = f"{lines[-1]}{gap}{word}" if lines[-1] else word
            if cell_len(held) > width and lines[-1]:
                lines.append("")
                held = word
            first, *others = chop_cells(held, width)
            lines[-1:] = [first, *others]
        return [line.replace("\u00a0", " ") for line in lines]

    def title(self, text: str) -> None:
        """A heading, in as many lines as it needs."""
        for number, line in enumerate(self.wrap(self.text(text), self.width - 2)):
            self.line(Text(f"{'  ' if number else ''}{line}", style="bold"))

    def paragraph(self, sign: str, text: str, tone: Tone) -> None:
        """A paragraph hanging behind its sign, which alone is coloured."""
        sign = self.text(sign)
        indent = " " * (cell_len(sign) + 1) if sign else ""
        first, *others = self.wrap(self.text(text), self.width - len(indent))
        style = _STYLES[tone]
        lead = Text().append(f"{sign} ", style=style).append(first) if sign else Text(first, style=style)
        self.line(lead)
        for line in others:
            self.line(Text(indent + line, style="" if sign else style))

    def gap(self) -> None:
        """One empty line between two others."""
        if self._in_text:
            self._console.print()
        self._in_text = False

    def line(self, line: Text) -> None:
        """One line that is safe and fits already."""
        self._in_text = True
        self._console.print(line, soft_wrap=True)

    def explain(self, column: Column) -> None:
        """Note what a column means, for the legend."""
        if column.label and column.meaning:
            self._meanings[column.label] = column.meaning

    def legend(self) -> None:
        """What each column means that was shown."""
        columns = (Column("", right=False), Column("", right=False, folds=20))
        rows = tuple(Row((Cell(label, tone="muted"), Cell(text))) for label, text in self._meanings.items())
        if rows:
            self.gap()
            _print_tables(self, [Table(columns, rows, headed=False)])


def _holds_unicode(file: TextIO) -> bool:
    encoding = getattr(file, "encoding", None) or "utf-8"
    try:
        "µ±×→·–✓✗≠◷○◇".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
