# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Documents as one HTML file, which needs no script and fetches nothing."""

import json
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from gpuprof.analysis.glossary import Glossary
from gpuprof.analysis.numbers import bound
from gpuprof.report.document import Content, Document, Section, Sentence
from gpuprof.report.filling import assets, templates
from gpuprof.report.pieces import Pieces
from gpuprof.results import Tool
from gpuprof.text import visible


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
        self._pieces = Pieces(Glossary())

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
            f'<h2 id="{anchor}-title">{_text(title)}</h2>\n{held}</section>'
        )


def _is_block(item: Content) -> bool:
    return isinstance(item, Section) and bool(item.title) and not item.folded


def _text(text: str) -> Markup:
    return escape(bound(visible(text)))
