# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Parts of a page that weigh much and are opened seldom: kept compressed, built where they are opened."""

import json

from markupsafe import Markup

from gpuprof import page_data

#: The element that holds all parts, compressed: a list of HTML texts.
PARTS_BLOCK = "gpuprof-parts"


class Parts:
    """Collects the parts of one page while its template is filled."""

    def __init__(self) -> None:
        self._held: list[str] = []

    def keep(self, content: str) -> Markup:
        """Put a part aside; what stands in its place names it.

        Args:
            content: HTML, without parts of its own.
        """
        self._held.append(str(content))
        return Markup(f'<div class="kept" data-kept="{len(self._held) - 1}"></div>')

    def packed(self) -> Markup:
        """All parts kept so far, for the element `PARTS_BLOCK`."""
        return Markup(page_data.packed(json.dumps(self._held, separators=(",", ":"), ensure_ascii=False)))
