# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Elements as text: whatever a text or an attribute holds, it stays text.

Places are shares of the drawing's width and height in percent, so that a drawing follows the page's width
while its text and its marks keep their size.
"""

from collections.abc import Iterable
from functools import lru_cache

from markupsafe import Markup, escape

from gpuprof.text import visible


def element(name: str, *content: Markup | str, **attributes: object) -> Markup:
    """One element.

    Args:
        name: Its name.
        content: Markup stays as it is; text is escaped and made visible.
        attributes: By name; `_` stands for `-`, and one at the end for nothing. None leaves one out.
    """
    written = "".join(
        [f' {_name(key)}="{text(value)}"' for key, value in attributes.items() if value is not None]
    )
    inner = "".join(map(text, content))
    return Markup(f"<{name}{written}>{inner}</{name}>" if content else f"<{name}{written}/>")


def text(value: object) -> str:
    """A value as it may stand in an element or an attribute."""
    return value if isinstance(value, Markup) else _escaped(str(value))


@lru_cache(4096)
def _name(key: str) -> str:
    return key.strip("_").replace("_", "-")


# Names of kernels, classes and places recur in every drawing of a ladder.
@lru_cache(4096)
def _escaped(value: str) -> str:
    return str(escape(visible(value)))


def joined(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("".join(parts))


def place(share: float) -> str:
    """A share of 1 as a percentage that a hundredth of a pixel cannot tell from it."""
    return f"{number(100 * share)}%"


def number(value: float) -> str:
    """A length with at most two decimals."""
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written in ("-0", "") else written
