# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report says, apart from where: HTML, terminal and Markdown render the same document.

It is pure data. Whoever builds one chooses words, order and importance; a renderer chooses widths, signs and
what a narrow place leaves out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup

from gpuprof.analysis.banner import Level

Tone = Literal["", "good", "bad", "warning", "muted", "strong"]


@dataclass(frozen=True, slots=True)
class Ref:
    """Words within a sentence that stand out or lead somewhere.

    Args:
        text: The words.
        anchor: Id of the section or row that they lead to; empty for none.
        code: Whether they are an identifier.
        term: Key of their definition in the glossary; empty for none.
    """

    text: str
    anchor: str = ""
    code: bool = False
    term: str = ""


Inline = str | Ref


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign before a sentence or a row, so that no reader depends on colour.

    Args:
        symbol: One character.
        ascii: The same where only ASCII can be written.
    """

    symbol: str
    ascii: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph of one or more sentences."""

    parts: tuple[Inline, ...]
    mark: Mark | None = None
    tone: Tone = ""

    @classmethod
    def of(cls, *parts: Inline, mark: Mark | None = None, tone: Tone = "") -> "Sentence":
        """A sentence of these parts."""
        return cls(parts, mark, tone)

    @property
    def text(self) -> str:
        """Its words alone."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Note:
    """A caution.

    Args:
        level: How grave it is.
        title: What is the matter, in a few words.
        detail: Measured against threshold, and which cases.
        fix: What to do; empty where there is nothing to do.
        code: Stable name of its kind.
    """

    level: Level
    title: str
    detail: str = ""
    fix: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        label: Heading.
        right: Whether its cells align right, as numbers do.
        rank: How soon it goes where not all fit: the highest first, 0 never.
        meaning: One sentence for a legend or a tooltip.
        term: Key of its definition in the glossary; empty for none.
        folds: Least width at which its text goes on in the next line; 0 for a column that never does.
        group: Heading that it shares with its neighbours.
    """

    label: str
    right: bool = True
    rank: int = 0
    meaning: str = ""
    term: str = ""
    folds: int = 0
    group: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Args:
        text: What is shown; None when it was not measured.
        sort: Raw value, for sorting.
        reason: Why `text` is None.
        tone: What supports the text.
        anchor: Id that it leads to; empty for none.
        code: Whether the text is an identifier.
        term: Key of its definition in the glossary; empty for none.
        share: Part of a whole, 0 to 1, that a small bar shows; None for none.
        mark: Sign before the text.
        drawing: SVG that a page shows below the text.
    """

    text: str | None
    sort: float | str | None = None
    reason: str = ""
    tone: Tone = ""
    anchor: str = ""
    code: bool = False
    term: str = ""
    share: float | None = None
    mark: Mark | None = None
    drawing: Markup | str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Args:
        cells: One for each column.
        tone: What supports the whole row.
        details: Sentences that stand under it.
        folded: Whether a page shows those only when asked.
        anchor: Id of the row.
        begins: Whether a gap stands before it.
    """

    cells: tuple[Cell, ...]
    tone: Tone = ""
    details: tuple[Sentence, ...] = ()
    folded: bool = False
    anchor: str = ""
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; tables that follow each other with the same columns but the first are aligned.

    Args:
        columns: What its cells are.
        rows: Its rows.
        caption: What it shows, for a page.
        headed: Whether its headings are shown.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    headed: bool = True


@dataclass(frozen=True, slots=True)
class Legend:
    """Where the meanings stand of all columns that were shown before."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, described once: drawn as SVG, and by Plotly where a reader looks closer.

    Args:
        data: What `report.charts` says of it: its `kind`, `title` and figures.
        anchor: Id of its element.
        reading: How to read it, and what it does not mean.
    """

    data: Mapping[str, Any]
    anchor: str = ""
    reading: str = ""


@dataclass(frozen=True, slots=True)
class AnswerTile:
    """The answer at one size.

    Args:
        lead: What it answers: `Fastest`, `Lowest bound`.
        size: The size as a user types it.
        kernel: The kernel that ran.
        facts: Labels with their texts.
        said: The same in a few words: `2.50 ms, 1.06x cuBLAS, issue-bound`.
        action: What to do next; empty for nothing.
    """

    lead: str
    size: str
    kernel: Ref
    facts: tuple[tuple[str, str], ...] = ()
    said: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines of a program or a command."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What only a page can show."""

    html: Markup


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a document under a title of its own.

    Args:
        title: Its title; empty where it only holds together what belongs together.
        content: What stands in it.
        anchor: Its id.
        folded: Whether a page shows it only when asked.
    """

    title: str
    content: tuple["Content", ...]
    anchor: str = ""
    folded: bool = False


Content = Sentence | Note | Table | Legend | Chart | AnswerTile | CodeBlock | Drawing | Section


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report.

    Args:
        title: Its first line.
        facts: What it depends on: labels with their texts.
        content: What stands in it, in order.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    content: tuple[Content, ...] = ()
