# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report says, apart from where: HTML, terminal and Markdown render the same document.

It is pure data. Whoever builds one chooses words, order and importance; a renderer chooses widths, signs and
what a narrow place leaves out.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from markupsafe import Markup
from msgspec import Struct

from gpuprof.analysis import numbers

#: Before what to know before believing the rest.
CAUTION = "!"
Tone = Literal["", "good", "bad", "warning", "muted", "strong"]


class Sentence(Struct, frozen=True):
    """A paragraph of one or more sentences; with a sign before it, it is a point of a list."""

    text: str
    mark: str = ""
    tone: Tone = ""


class Column(Struct, frozen=True):
    """A column of a table.

    Args:
        rank: How soon it goes where not all fit: the highest first, 0 never.
        folds: Least width at which its text goes on in the next line; 0 for a column that never does.
    """

    label: str
    right: bool = True
    rank: int = 0
    meaning: str = ""
    term: str = ""
    folds: int = 0


class Cell(Struct, frozen=True):
    """A cell of a table.

    Args:
        text: What is shown; None when it was not measured.
        reason: Why `text` is None.
        term: Key of its definition in the glossary; empty for none.
        share: Part of a whole, 0 to 1, that a small bar shows; None for none.
    """

    text: str | None
    sort: float | str | None = None
    reason: str = ""
    tone: Tone = ""
    anchor: str = ""
    code: bool = False
    term: str = ""
    share: float | None = None
    mark: str = ""
    drawing: Markup | str = ""


class Row(Struct, frozen=True):
    """A row of a table: a cell for each column, and sentences that stand under it.

    `tone` supports the whole row; where it `begins` something, a gap stands before it.
    """

    cells: tuple[Cell, ...]
    tone: Tone = ""
    details: tuple[Sentence, ...] = ()
    begins: bool = False


class Table(Struct, frozen=True):
    """A table; tables that follow each other with the same columns but the first are aligned.

    In a tinted one a cell's colour shows its share, not a bar.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    headed: bool = True
    tinted: bool = False


class Legend(Struct, frozen=True):
    """Where the meanings stand of all columns that were shown before."""


class AnswerTile(Struct, frozen=True):
    """The answer at one size: its kernel, labelled facts, the same in a few words, and what to do next.

    The lead says what it answers: `Fastest`, `Lowest bound`.
    """

    lead: str
    size: str
    kernel: str
    facts: tuple[tuple[str, str], ...] = ()
    said: str = ""
    action: str = ""

    @property
    def text(self) -> str:
        """For a place where it stands alone."""
        return f"{self.lead} {self.size}: {self.kernel}, {self.said}"


class CodeBlock(Struct, frozen=True):
    """Lines of text in columns of one width: many of them weigh less than a table."""

    text: str


class Drawing(Struct, frozen=True):
    """What only a page can show."""

    html: Markup


class Section(Struct, frozen=True):
    """Part of a document, under a title or only together; a page shows a folded one when asked."""

    title: str
    content: tuple["Content", ...]
    anchor: str = ""
    folded: bool = False


Content = Sentence | Table | Legend | AnswerTile | CodeBlock | Drawing | Section


class Document(Struct, frozen=True):
    """A whole report: its first line, what it depends on, and what stands in it."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    content: tuple[Content, ...] = ()


def folded_table(
    columns: tuple[Column, ...], rows: Sequence[Row], most: int, what: str, caption: str
) -> Iterator[Section]:
    """The first rows, and the others folded away as so many more of what they are."""
    if rows:
        yield Section("", (Table(columns, tuple(rows[:most]), caption),))
    if len(rows) > most:
        more = Table(columns, tuple(rows[most:]), caption)
        yield Section(numbers.plural(len(rows) - most, f"more {what}"), (more,), folded=True)
