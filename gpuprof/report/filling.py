# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How every page is filled: one way to escape, one place for style sheets and scripts."""

import functools
import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gpuprof.text import visible

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
