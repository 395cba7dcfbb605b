# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Pieces of HTML that occur by the thousand: cells, and links to definitions and reasons.

A template would spend most of its time on them. What they hold is escaped here, as a template would.
"""

import functools
from collections.abc import Iterable
from dataclasses import replace

from markupsafe import Markup, escape

from gpuprof.analysis.glossary import Glossary
from gpuprof.report.document import Cell, Row, Table, Tone
from gpuprof.report.text import bound
from gpuprof.text import visible


class Pieces:
    """Writes the pieces of one report, and tells its glossary what they mention."""

    def __init__(self, glossary: Glossary) -> None:
        self.glossary = glossary

    def term(self, key: str, label: str, metric: str | None = None) -> Markup:
        """A word as a link to its definition.

        Args:
            key: As `Glossary.anchor` takes it.
            label: The word as it is written here.
            metric: Nsight Compute's names for it.
        """
        return Markup(f'<a class="term" href="#{self.glossary.anchor(key, metric)}">{_text(label)}</a>')

    def not_measured(self, reason: str | None) -> Markup:
        """What stands where there is no figure: a link to the reason."""
        return Markup(f'<a class="missing" href="#{self.glossary.reason(reason)}">not measured</a>')

    def cell(self, cell: Cell) -> Markup:
        """What stands in a cell."""
        return self.not_measured(cell.reason) if cell.text is None else _text(cell.text)

    def cells(self, row: Iterable[Cell]) -> Markup:
        """Cells of numbers, one element each."""
        return Markup("".join(f'<td class="num">{self.cell(cell)}</td>' for cell in row))

    def sortable_cells(self, row: Iterable[tuple[Cell, bool]]) -> Markup:
        """Cells that carry the raw value that they sort by, each with whether it is a number."""
        found = []
        for cell, numeric in row:
            kind = ' class="num"' if numeric else ""
            sort = "" if cell.text is None or cell.sort is None else f' data-sort="{_text(str(cell.sort))}"'
            found.append(f"<td{kind}{sort}>{self.cell(cell)}</td>")
        return Markup("".join(found))

    def table(self, table: Table, kind: str = "fit", *, is_named: bool = True) -> Markup:
        """A table of a document, which scrolls where it is wider than the page.

        Args:
            table: Its first column heads the rows.
            kind: Classes for the style sheet.
            is_named: Whether its caption can be seen.
        """
        hidden = "" if is_named else ' class="visually-hidden"'
        caption = _text(table.caption)
        heads = "".join(
            f'<th scope="col"{class_of("num" if column.right else "")}>'
            f"{self.term(column.term, column.label) if column.term else _text(column.label)}</th>"
            for column in table.columns
        )
        detailed = any(row.details for row in table.rows)
        heads += '<th scope="col">Details</th>' * detailed
        rows = "".join(self._row(row, table, detailed) for row in table.rows)
        return Markup(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}, as a table">'
            f'<table class="{kind}"><caption{hidden}>{caption}</caption>'
            f"{f'<thead><tr>{heads}</tr></thead>' if table.headed else ''}<tbody>{rows}</tbody></table></div>"
        )

    def _row(self, row: Row, table: Table, detailed: bool) -> str:
        """A row; its head is the first cell under a heading, and what stands under it elsewhere its last."""
        cells = []
        head = next((place for place, column in enumerate(table.columns) if column.label), 0)
        for place, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            classes = ["num" if column.right else "", TONES[cell.tone], "why" if column.folds else ""]
            classes.append("sign" if cell.mark else "")
            sort = "" if cell.sort is None else f' data-sort="{_text(str(cell.sort))}"'
            name, scope = ("th", ' scope="row"') if place == head else ("td", "")
            held = f"{name}{scope}{class_of(*classes)}{sort}"
            cells.append(f"<{held}>{self._content(cell)}</{name}>")
        if detailed:
            cells.append(
                f'<td class="why">{"; ".join(_text(sentence.text) for sentence in row.details)}</td>'
            )
        return f"<tr{class_of(TONES[row.tone])}>{''.join(cells)}</tr>"

    def _content(self, cell: Cell) -> str:
        if cell.mark or cell.drawing:
            sign = f"{_text(cell.mark.symbol)} " if cell.mark else ""
            text = self._content(replace(cell, mark=None, drawing=""))
            return f"{sign}{text}{cell.drawing}"
        if cell.text is None:
            return self.not_measured(cell.reason)
        text = f"<bdi>{_text(cell.text)}</bdi>" if cell.code else _text(cell.text)
        kind = class_of("mono" if cell.code else "")
        if cell.anchor:
            return f'<a{kind} href="#{_text(cell.anchor)}">{text}</a>'
        return f"<bdi{kind}>{_text(cell.text)}</bdi>" if cell.code else text


TONES: dict[Tone, str] = {
    "": "",
    "good": "good",
    "bad": "bad-text",
    "warning": "mark uncertain",
    "muted": "muted",
    "strong": "fastest",
}


def class_of(*names: str) -> str:
    """An attribute with these classes; empty without any."""
    held = " ".join(filter(None, names))
    return f' class="{held}"' if held else ""


@functools.lru_cache(maxsize=8192)
def _text(text: str) -> Markup:
    """Escaped, made visible, and each figure kept on one line with its unit."""
    return escape(bound(visible(text)))
