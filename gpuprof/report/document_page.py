# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Documents as HTML: one file that needs no script and fetches nothing, pieces of one, or a notebook's part.

Every page is filled here: one way to escape, one place for style sheets and scripts. Cells occur by the
thousand, and a template would spend most of its time on them: what they hold is escaped as it would.
"""

import functools
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gpuprof.analysis.glossary import Glossary
from gpuprof.analysis.numbers import bound
from gpuprof.records import replace
from gpuprof.report.document import (
    Cell,
    CodeBlock,
    Column,
    Content,
    Document,
    Drawing,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from gpuprof.results import Tool
from gpuprof.text import visible


class ReportPieces:
    """Writes the pieces of one report, and tells its glossary what they mention."""

    def __init__(self, glossary: Glossary) -> None:
        self.glossary = glossary

    def term(self, key: str, label: str) -> Markup:
        """A word, by its key of `Glossary.anchor`, as a link to its definition."""
        return Markup(f'<a class="term" href="#{self.glossary.anchor(key)}">{text_of(label)}</a>')

    def content(self, content: Iterable[Content], level: int = 4, kind: str = "fit") -> Markup:
        """Items of a document one after the other; sentences that have a sign are points of a list.

        `level` is that of titles of sections among them, `kind` the classes of their tables.
        """
        found = []
        for is_list, held in groupby(content, lambda item: isinstance(item, Sentence) and bool(item.mark)):
            inner = "\n".join(self._item(item, level, kind) for item in held)
            found.append(f'<ul class="plain">{inner}</ul>' if is_list else inner)
        return Markup("\n".join(found))

    def _item(self, item: Content, level: int, kind: str) -> str:
        match item:
            case Section():
                inner: str = self.content(item.content, level + bool(item.title), kind)
                # The target of a link stands inside: then a browser opens what holds it.
                inner = f'<div id="{item.anchor}" tabindex="-1">{inner}</div>' if item.anchor else inner
                if item.folded:
                    return f"<details><summary>{text_of(item.title)}</summary>{inner}</details>"
                return f"<h{level}>{text_of(item.title)}</h{level}>{inner}" if item.title else inner
            case Sentence(mark=""):
                return f"<p{class_of(TONES[item.tone])}>{text_of(item.text)}</p>"
            case Sentence(mark=mark):
                sign = text_of(mark)
                return f"<li><span{class_of('sign', TONES[item.tone])}>{sign}</span>{text_of(item.text)}</li>"
            case Table():
                return self.table(item, f"{kind} tinted" if item.tinted else kind)
            case CodeBlock():
                return f'<pre tabindex="0" role="region" aria-label="Text">\n{text_of(item.text)}</pre>'
            case Drawing():
                return item.html
        return ""

    def table(self, table: Table, kind: str = "fit", *, is_named: bool = True) -> Markup:
        """A table of a document, which scrolls where it is wider than the page; a named one has a caption."""
        hidden = "" if is_named else ' class="visually-hidden"'
        caption = text_of(table.caption)
        heads = "".join(
            f'<th scope="col"{class_of(*_classes(column))}>'
            f"{self.term(column.term, column.label) if column.term else text_of(column.label)}</th>"
            if column.label
            else "<td></td>"  # a header cell owes a reader a text
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
            classes = [*_classes(column), TONES[cell.tone], "why" if column.folds else ""]
            classes.append("sign" if cell.mark else "")
            sort = "" if cell.sort is None else f' data-sort="{text_of(str(cell.sort))}"'
            bar = "" if cell.share is None else f' style="--share:{100 * cell.share:.1f}%"'
            name, scope = ("th", ' scope="row"') if place == head else ("td", "")
            held = f"{name}{scope}{class_of(*classes, 'bar' if bar else '')}{sort}{bar}"
            cells.append(f"<{held}>{self._content(cell)}</{name}>")
        if detailed:
            cells.append(
                f'<td class="why">{"; ".join(text_of(sentence.text) for sentence in row.details)}</td>'
            )
        return f"<tr{class_of(TONES[row.tone])}>{''.join(cells)}</tr>"

    def _content(self, cell: Cell) -> str:
        if cell.mark or cell.drawing:
            sign = f"{text_of(cell.mark)} " if cell.mark else ""
            text = self._content(replace(cell, mark="", drawing=""))
            return f"{sign}{cell.drawing}{text}"
        if cell.text is None:
            reason = self.glossary.reason(cell.reason)
            return f'<a class="missing" href="#{reason}">not measured</a>'
        text = f'<bdi class="mono">{text_of(cell.text)}</bdi>' if cell.code else text_of(cell.text)
        if cell.term:
            return self.term(cell.term, cell.text)
        return f'<a href="#{text_of(cell.anchor)}">{text}</a>' if cell.anchor else text


TONES: dict[Tone, str] = {
    "": "",
    "good": "good",
    "bad": "bad-text",
    "warning": "mark uncertain",
    "muted": "muted",
    "strong": "fastest",
}


def _classes(column: Column) -> tuple[str, str]:
    """Of its head and cells: how they are set, and whether there is room for them on a phone."""
    return "num" if column.right else "", "spare" if column.rank else ""


def class_of(*names: str) -> str:
    """An attribute with these classes; empty without any."""
    held = " ".join(filter(None, names))
    return f' class="{held}"' if held else ""


@functools.lru_cache(maxsize=8192)
def text_of(text: str) -> Markup:
    """Escaped, made visible, and each figure kept on one line with its unit."""
    return escape(bound(visible(text)))


#: Rows that a table of a notebook shows; a whole report shows all of them.
_MOST_ROWS = 100
#: An address as far as it can be told from the text around it.
_ADDRESS = re.compile(r"https?://[^\s<>\"'()\[\]{}]+[^\s<>\"'()\[\]{}.,;:]")


def linked(text: str) -> Markup:
    """The text, escaped and made visible, with the web addresses in it as links."""
    pieces, end = [], 0
    shown = visible(text)
    for match in _ADDRESS.finditer(shown):
        address = escape(match[0])
        pieces += [escape(shown[end : match.start()]), f'<a href="{address}">{address}</a>']
        end = match.end()
    return Markup("".join([*pieces, escape(shown[end:])]))


def _finalize(value: Any) -> Any:
    """What a template shows for a value: text made visible, None as nothing."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def templates() -> Environment:
    """The templates: every text is escaped and made visible, and a misspelt name is an error."""
    return Environment(
        loader=PackageLoader("gpuprof.report"),
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


@functools.cache
def asset(name: str) -> str:
    """The text of a style sheet or a script."""
    return (files("gpuprof.report") / "templates" / name).read_text(encoding="utf-8")


def assets(*names: str) -> Markup:
    """Several of them, one after the other, as they stand in an element of a page."""
    return Markup("\n".join(map(asset, names)))


def render_notebook(document: Document) -> str:
    """A document as a fragment of HTML for a notebook: no script, no style sheet, every text escaped."""
    template = templates().get_template("notebook.html.j2")
    return template.render(document=document, kind_of=lambda item: type(item).__name__, most=_MOST_ROWS)


def render_page(
    product: str, title: str, documents: Sequence[Document], tool: Tool, data: object = None
) -> str:
    """Documents below each other, each titled section that is not folded a block of the contents.

    The title is what all of them say; the page holds the data as JSON.
    """
    pieces = ReportPieces(Glossary())
    contents: list[tuple[str, str]] = []
    blocks: list[Markup] = []

    def add(name: str, content: Sequence[Content]) -> None:
        anchor = f"part-{len(contents)}"
        held = pieces.content(content, 3, "told")
        contents.append((anchor, name))
        blocks.append(
            Markup(
                f'<section class="block" id="{anchor}" aria-labelledby="{anchor}-title">'
                f'<h2 id="{anchor}-title">{text_of(name)}</h2>\n{held}</section>'
            )
        )

    for document in documents:
        facts = [Sentence(f"{label}: {text}", tone="muted") for label, text in document.facts]
        ahead = [item for item in document.content if not _is_block(item)]
        if facts or ahead:
            add("Overview" if document.title == title else document.title, [*facts, *ahead])
        for item in document.content:
            if isinstance(item, Section) and _is_block(item):
                add(item.title, item.content)
    page = templates().get_template("document.html.j2")
    block = ""
    if data is not None:  # JSON that cannot end the script element it stands in, whatever its strings hold
        text = json.dumps(data, allow_nan=False, separators=(",", ":"))
        block = Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
    return page.render(
        product=product,
        title=title,
        contents=contents,
        blocks=blocks,
        data=block,
        version=tool.version,
        style=assets("style.css"),
        dark=assets("dark.css"),
    )


def _is_block(item: Content) -> bool:
    return isinstance(item, Section) and bool(item.title) and not item.folded
