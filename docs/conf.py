# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site, made by Sphinx of the same Markdown files: sphinx-build docs site."""

import re
from pathlib import Path
from typing import Any

from gpuprof import __version__

project = "gpuprof"
copyright = "The gpuprof developers"
release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "gpuprof"
highlight_language = "none"  # of blocks that name none: command lines and what they print
root_doc = "index"
exclude_patterns = ["*.py", "__pycache__", "data", "screens"]
html_extra_path = ["results.schema.json", "compare.schema.json", "fleet.schema.json"]
#: Headings down to this level can be linked, by the names that a hosting site gives them too.
myst_heading_anchors = 4

_DOCS = Path(__file__).parent
#: An entry of the index's lists: a page of the table of contents.
_LINK = re.compile(r"^- \[([^\]]*)\]\(([\w-]+)\.md\)", re.MULTILINE)
#: A link to a file of the repository that is no page.
_OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./([^)]*)\)")


def _prepare(app: Any, page: str, content: list[str]) -> None:
    """Give the index its table of contents, and name files of the repository instead of linking to them."""
    if page == root_doc:
        content[0] += "".join(map(_contents, content[0].split("\n## ")[1:]))
    content[0] = _OUTSIDE.sub(r"\1 (`\2` of the repository)", content[0])


def _contents(section: str) -> str:
    """A section of the index as a part of the table of contents."""
    pages = "\n".join(name for _, name in _LINK.findall(section))
    if not pages:
        return ""
    return f"\n```{{toctree}}\n:hidden:\n:caption: {section.splitlines()[0]}\n\n{pages}\n```\n"


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("source-read", _prepare)
