# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Words of others in Markdown, where nothing of them may be read as markup."""

import re

from gpuprof.text import visible

_SPECIAL = re.compile(r"([\\`*_\[\]|~])")


def text(words: str) -> str:
    """Text that Markdown shows as it is, on one line, with nothing of it read as HTML."""
    flat = " ".join(visible(words).split())
    return _SPECIAL.sub(r"\\\1", flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def code(words: str) -> str:
    """A kernel's id as code; one that code cannot hold is shown as text."""
    return f"`{words}`" if re.fullmatch(r"[A-Za-z0-9_.:/-]+", words) else text(words)
