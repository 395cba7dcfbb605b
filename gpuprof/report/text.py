# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Words and typography that every renderer shares."""

import re
from typing import Any

from markupsafe import Markup, escape

from gpuprof.text import visible

#: The space before a unit or an SI letter.
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTPE]|%|[KMGT]iB|B|[nµm]?s|[MGT]B/s|[MGTP]FLOP/s|SMs)(?![\w-]))")


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


def finalize(value: Any) -> Any:
    """What a template shows for a value: text made visible, None as nothing."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def bound(text: str) -> str:
    """The text with each figure kept on one line with its unit."""
    return _UNIT.sub("\u00a0", text)
