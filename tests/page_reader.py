# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reads a report the way somebody does who opens every part of it: text, links and attributes, no layout."""

import json
import re
from html.parser import HTMLParser
from typing import Any

from gpuprof import page_data

_SILENT = {"style", "script", "svg"}
_BREAKS = {
    *("tr", "p", "li", "h1", "h2", "h3", "h4", "caption", "summary", "dt", "div", "section", "header", "pre")
}


_PART = re.compile(r'<div class="kept" data-kept="(\d+)"></div>')


def expanded(page: str) -> str:
    """The page as it is when a reader has opened all of it: its compressed parts stand where they belong."""
    block = re.search(r'id="gpuprof-parts">([^<]*)<', page)
    kinds = json.loads(page_data.unpacked(block[1])) if block else []
    parts = ["".join(pieces) for pieces in zip(*kinds, strict=True)]
    return _PART.sub(lambda found: parts[int(found[1])], page)


class PageReader(HTMLParser):
    """Collects what a report says and what it points at.

    Attributes:
        tags: Every element with its attributes.
        scripts: Content of each script element.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self._pieces: list[str] = []
        page = expanded(page)
        self._silent = 0
        self._verbatim = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag == "script":
            self.scripts.append((attributes, ""))
        if tag in _SILENT:
            self._silent += 1
        elif tag in _BREAKS:
            self._verbatim += tag == "pre"
            self._pieces.append("\n")
        elif tag in ("td", "th", "dd", "span"):
            self._pieces.append(" | " if tag in ("td", "th") else " ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent -= 1
        elif tag in _BREAKS:
            self._verbatim -= tag == "pre"
            self._pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self.scripts and self.lasttag == "script" and self._silent:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        if self._verbatim:
            self._pieces.append(data)
        elif not self._silent:
            self._pieces.append(" ".join(data.split()) if data.strip() else " ")

    @property
    def text(self) -> str:
        """The page's words, one line per row, paragraph or item."""
        lines = (" ".join(line.split()) for line in "".join(self._pieces).splitlines())
        return "\n".join(line for line in lines if line.strip(" |")) + "\n"

    def attributes(self, name: str) -> list[str]:
        """The values of one attribute throughout the page."""
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def block(self, name: str) -> str:
        """The text that a block of the page holds compressed."""
        (found,) = [text for attributes, text in self.scripts if attributes.get("id") == name]
        return page_data.unpacked(found)

    def data_block(self) -> str:
        """The run's data as JSON."""
        return self.block(page_data.RUN_BLOCK)

    def charts(self) -> dict[str, dict[str, Any]]:
        """What the page's script can draw, by the chart's id; nothing in a page without charts."""
        held = any(attributes.get("id") == "gpuprof-charts" for attributes, _ in self.scripts)
        return dict(json.loads(self.block("gpuprof-charts"))) if held else {}
