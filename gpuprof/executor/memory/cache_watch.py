# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the first block of each batch finds in L1: a cache that drops the least recently used sector."""

from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np

_SECTOR, _LINE_SECTORS = 5, 2
#: Sectors that are looked at, of a whole launch.
_WATCHED = 400_000
#: Accesses of a line that are looked at, each of which costs some forty microseconds.
_MOST_LOOKS = 1500


class CacheWatch:
    """Watches loads and stores of global memory.

    Attributes:
        seen: By source line and family of accesses: sectors, lines, and sectors that L1 held.
    """

    def __init__(self, sectors: int) -> None:
        self._room, self._left = sectors, _WATCHED
        self._held: OrderedDict[int, None] = OrderedDict()
        self.seen: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)

    def look(self, line: int, places: Any, lanes: Any, *, loads: bool) -> None:
        """Note an access of one block: addresses and lanes, each of shape (warps, 32)."""
        seen = self.seen[line, "global_load" if loads else "global_store"]
        if self._left <= 0 or seen["looks"] >= _MOST_LOOKS or not lanes.any():
            return
        seen["looks"] += 1
        row = np.nonzero(lanes)[0].astype(np.int64) << 42
        found = np.unique(row | (places[lanes].astype(np.int64) >> _SECTOR))
        seen["sectors"] += len(found)
        seen["lines"] += len(np.unique(found >> _LINE_SECTORS))
        self._left -= len(found)
        if loads:
            held = self._held
            for sector in (found & ((1 << 42) - 1)).tolist():
                seen["hits"] += sector in held
                held[sector] = None
                held.move_to_end(sector)
            while len(held) > self._room:
                held.popitem(last=False)
