# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Documents as HTML: one file that needs no script and fetches nothing, or a part of a notebook.

Every page is filled here: one way to escape, one place for style sheets and scripts.
"""

import functools
import json
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gpuprof.analysis.glossary import Glossary
from gpuprof.report.document import Content, Document, Section, Sentence
from gpuprof.report.pieces import ReportPieces, text_of
from gpuprof.results import Tool
from gpuprof.text import visible

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
    writer = _Writer(title)
    blocks = [block for document in documents for block in writer.blocks(document)]
    return (
        templates()
        .get_template("document.html.j2")
        .render(
            product=product,
            title=title,
            contents=writer.contents,
            blocks=blocks,
            data="" if data is None else _data_block(data),
            version=tool.version,
            style=assets("style.css"),
            dark=assets("dark.css"),
        )
    )


def _data_block(found: object) -> Markup:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    text = json.dumps(found, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


class _Writer:
    """Writes the blocks of a page, and notes their titles for its contents."""

    def __init__(self, title: str) -> None:
        self._title = title
        self.contents: list[tuple[str, str]] = []
        self._pieces = ReportPieces(Glossary())

    def blocks(self, document: Document) -> Iterator[Markup]:
        """The document's title with what stands before its first block, then each of its blocks."""
        facts = [Sentence(f"{label}: {text}", tone="muted") for label, text in document.facts]
        ahead = [item for item in document.content if not _is_block(item)]
        yield self._block("Overview" if document.title == self._title else document.title, [*facts, *ahead])
        for item in document.content:
            if isinstance(item, Section) and _is_block(item):
                yield self._block(item.title, item.content)

    def _block(self, title: str, content: Sequence[Content]) -> Markup:
        anchor = f"part-{len(self.contents)}"
        self.contents.append((anchor, title))
        held = self._pieces.content(content, 3, "told")
        return Markup(
            f'<section class="block" id="{anchor}" aria-labelledby="{anchor}-title">'
            f'<h2 id="{anchor}-title">{text_of(title)}</h2>\n{held}</section>'
        )


def _is_block(item: Content) -> bool:
    return isinstance(item, Section) and bool(item.title) and not item.folded
