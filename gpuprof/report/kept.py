# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Parts of a page that weigh much and are opened seldom: kept compressed, built where they are opened."""

import json
from itertools import zip_longest

from markupsafe import Markup

from gpuprof import page_data

#: The element that holds all parts, compressed: for each kind of piece a list with every part's.
PARTS_BLOCK = "gpuprof-parts"
#: Stands between the pieces of a part. Those of one kind are compressed beside each other, in half the bytes.
_BETWEEN = "<!--kind-->"


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
        kinds = list(zip_longest(*(part.split(_BETWEEN) for part in self._held), fillvalue=""))
        return Markup(page_data.packed(json.dumps(kinds, separators=(",", ":"), ensure_ascii=False)))
