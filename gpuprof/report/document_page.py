# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Documents as one HTML file, which needs no script and fetches nothing."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from gpuprof.analysis.glossary import Glossary
from gpuprof.report.document import CodeBlock, Content, Document, Drawing, Inline, Section, Sentence, Table
from gpuprof.report.filling import assets, templates
from gpuprof.report.pieces import TONES, Pieces, class_of
from gpuprof.report.text import bound
from gpuprof.results import Tool
from gpuprof.text import visible


def render_page(
    product: str, title: str, documents: Sequence[Document], tool: Tool, data: object = None
) -> str:
    """Documents below each other.

    Args:
        product: What made them.
        title: What all of them say.
        documents: Each titled section of them that is not folded is a block, with its place in the contents.
        tool: What wrote them.
        data: JSON that the page holds; None for none.

    Returns:
        The page's text.
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
        self._table = Pieces(Glossary()).table

    def blocks(self, document: Document) -> Iterator[Markup]:
        """The document's title with what stands before its first block, then each of its blocks."""
        facts = [Sentence.of(f"{label}: {text}", tone="muted") for label, text in document.facts]
        ahead = [item for item in document.content if not _is_block(item)]
        yield self._block("Overview" if document.title == self._title else document.title, [*facts, *ahead])
        for item in document.content:
            if isinstance(item, Section) and _is_block(item):
                yield self._block(item.title, item.content)

    def _block(self, title: str, content: Sequence[Content]) -> Markup:
        anchor = f"part-{len(self.contents)}"
        self.contents.append((anchor, title))
        held = "\n".join(self._parts(content, 3))
        return Markup(
            f'<section class="block" id="{anchor}" aria-labelledby="{anchor}-title">'
            f'<h2 id="{anchor}-title">{_text(title)}</h2>\n{held}</section>'
        )

    def _parts(self, content: Sequence[Content], level: int) -> Iterator[str]:
        for is_list, held in groupby(content, lambda item: isinstance(item, Sentence) and bool(item.mark)):
            if is_list:
                yield f'<ul class="plain">{"".join(self._part(item, level) for item in held)}</ul>'
            else:
                yield from (self._part(item, level) for item in held)

    def _part(self, item: Content, level: int) -> str:
        match item:
            case Section():
                inner = "\n".join(self._parts(item.content, level + bool(item.title)))
                # The target of a link stands inside: then a browser opens what holds it.
                inner = f'<div id="{item.anchor}" tabindex="-1">{inner}</div>' if item.anchor else inner
                if item.folded:
                    return f"<details><summary>{_text(item.title)}</summary>{inner}</details>"
                return f"<h{level}>{_text(item.title)}</h{level}>{inner}" if item.title else inner
            case Sentence(mark=None):
                return f"<p{class_of(TONES[item.tone])}>{_sentence(item)}</p>"
            case Sentence(mark=mark):
                sign = (
                    f"<span{class_of('sign', TONES[item.tone])}>{_text(mark.symbol if mark else '')}</span>"
                )
                return f"<li>{sign}{_sentence(item)}</li>"
            case Table():
                return self._table(item, "told")
            case CodeBlock():
                return f'<pre tabindex="0" role="region" aria-label="Text">\n{_text(item.text)}</pre>'
            case Drawing():
                return item.html
        return ""


def _is_block(item: Content) -> bool:
    return isinstance(item, Section) and bool(item.title) and not item.folded


def _sentence(sentence: Sentence) -> str:
    return "".join(map(_inline, sentence.parts))


def _inline(part: Inline) -> str:
    if isinstance(part, str):
        return _text(part)
    text = f'<bdi class="mono">{_text(part.text)}</bdi>' if part.code else _text(part.text)
    return f'<a href="#{part.anchor}">{text}</a>' if part.anchor else text


def _text(text: str) -> Markup:
    return escape(bound(visible(text)))
