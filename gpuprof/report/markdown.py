# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A document as Markdown, for the summary of a CI job or a page of documentation."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from gpuprof.report.document import (
    AnswerTile,
    Cell,
    CodeBlock,
    Content,
    Document,
    Section,
    Sentence,
    Table,
)
from gpuprof.text import visible

_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
_NOT_MEASURED = "not measured"
#: Columns of a higher rank would make a table wider than a page of a repository shows.
_HIGHEST_RANK = 8


def markdown_of(document: Document) -> str:
    """A document as Markdown, which shows every word of it as it is, and none as markup."""
    parts = [f"### {_text(document.title)}"] if document.title else []
    if document.facts:
        parts.append("\n".join(f"- {_text(label)}: {_text(fact)}" for label, fact in document.facts))
    return "\n\n".join([*parts, *_parts(document.content, "####")]) + "\n"


def _parts(content: Sequence[Content], heading: str) -> Iterator[str]:
    """Paragraphs, lists and tables; what is a point of a list follows the point before it."""
    for is_list, held in groupby(content, _is_point):
        parts = [part for item in held for part in _part(item, heading)]
        yield from ["\n".join(parts)] if is_list else parts


def _part(item: Content, heading: str) -> Iterator[str]:
    match item:
        case Section():
            inner = list(_parts(item.content, f"{heading}#" if item.title else heading))
            if item.folded and inner:
                yield f"<details><summary>{_text(item.title)}</summary>"
                yield from (*inner, "</details>")
            else:
                yield from [f"{heading} {_text(item.title)}"] if item.title else []
                yield from inner
        case Sentence():
            yield f"- {item.mark} {_text(item.text)}" if item.mark else _text(item.text)
        case AnswerTile():
            said = f"{item.said}. Next: {item.action}" if item.action else item.said
            yield f"- **{_text(item.lead)}** {_text(item.size)}: {_code(item.kernel)}, {_text(said)}"
        case Table():
            yield "\n".join(_table(item))
        case CodeBlock():
            yield f"```\n{item.text.rstrip()}\n```"


def _is_point(item: Content) -> bool:
    return isinstance(item, AnswerTile) or (isinstance(item, Sentence) and bool(item.mark))


def _table(table: Table) -> Iterator[str]:
    """Rows of cells; the sentences that stand under a row elsewhere are its last cell here."""
    detailed = any(row.details for row in table.rows)
    kept = [at for at, column in enumerate(table.columns) if column.rank <= _HIGHEST_RANK]
    columns = [table.columns[at] for at in kept]
    heads = [_text(column.label) if table.headed else "" for column in columns]
    sides = ["--:" if column.right else ":--" for column in columns]
    yield f"| {' | '.join(heads + [''] * detailed)} |"
    yield f"|{'|'.join(sides + [':--'] * detailed)}|"
    for row in table.rows:
        cells = [_cell(row.cells[at], is_strong=row.tone == "strong" and not at) for at in kept]
        details = "; ".join(_text(sentence.text) for sentence in row.details)
        yield f"| {' | '.join([*cells, *([details] if detailed else [])])} |"


def _cell(cell: Cell, *, is_strong: bool) -> str:
    if cell.text is None:
        return _NOT_MEASURED
    text = _code(cell.text) if cell.code else _text(cell.text)
    text = f"**{text}**" if text and (is_strong or cell.tone == "strong") else text
    return f"{cell.mark} {text}".rstrip() if cell.mark else text


def _text(words: str) -> str:
    """Text that Markdown shows as it is, on one line, with nothing of it read as HTML."""
    flat = " ".join(visible(words).split())
    return _SPECIAL.sub(r"\\\1", flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _code(words: str) -> str:
    """A kernel's id as code; one that code cannot hold is shown as text."""
    return f"`{words}`" if re.fullmatch(r"[A-Za-z0-9_.:/-]+", words) else _text(words)
