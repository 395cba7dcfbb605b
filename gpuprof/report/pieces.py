# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Pieces of HTML that occur by the thousand: cells, and links to definitions and reasons.

A template would spend most of its time on them. What they hold is escaped here, as a template would.
"""

import functools
from collections.abc import Iterable

from markupsafe import Markup, escape

from gpuprof.analysis.glossary import Glossary
from gpuprof.report.document import Cell
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


@functools.lru_cache(maxsize=8192)
def _text(text: str) -> Markup:
    """Escaped, made visible, and each figure kept on one line with its unit."""
    return escape(bound(visible(text)))
