# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which lane's strong store to shared memory a strong load of the same warp finds by luck.

Lanes run in lockstep here and need not on a card. What such a load finds is decided all the same where the
store that brought the value is ordered before it, or where its own thread has stored that value too.
"""

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.memory.moments import MOMENT_BITS, Numbers, thread_of
from gpuprof.executor.memory.thread_order import ThreadOrder
from gpuprof.executor.observers.concurrent_accesses import unordered

_LANES = (1 << WARP) - 1


class LaneStores:
    """The strong stores that the elements of a batch's shared memory hold the values of."""

    def __init__(self, elements: int) -> None:
        #: Of each element the store that changed it last; and of one warp, above, the lanes that have stored
        #: that value since.
        self._changes: Numbers = np.zeros(elements, dtype=np.int64)
        self._lanes: Numbers = np.zeros(elements, dtype=np.int64)

    def refine(self, times: int) -> None:
        """Divide every element in `times` smaller ones."""
        self._changes, self._lanes = (np.repeat(each, times) for each in (self._changes, self._lanes))

    def forget(self, place: Numbers) -> None:
        """Threads have changed elements by atomic operations, which count on no order."""
        self._changes[place] = 0

    def store(
        self,
        order: ThreadOrder,
        place: Numbers,
        who: Numbers,
        moment: int,
        same: tuple[Bools, NDArray[np.uint8]],
    ) -> None:
        """Threads store to elements in one instruction, of those at one place the last one last.

        `same` tells which store what is there, and has the bytes that each stores.
        """
        by_place = np.argsort(place, kind="stable")
        place, who, kept, values = place[by_place], who[by_place], same[0][by_place], same[1][by_place]
        ends = np.flatnonzero(np.append(place[1:] != place[:-1], True))
        starts = np.append(0, ends[:-1] + 1)
        stays = np.repeat(ends, ends - starts + 1)
        # A value that another lane may replace by the one before is nobody's.
        contested, held = np.zeros(len(place), dtype=np.bool_), self._changes[place]
        contested[unordered(held, order, who)] = True
        contested &= ~kept & (thread_of(held) // WARP == who // WARP)
        alike = (values == values[stays]).all(axis=1) & (who // WARP == who[stays] // WARP)
        lanes = np.bitwise_or.reduceat(np.where(alike, np.int64(1) << who % WARP, 0), starts)
        lanes[np.logical_or.reduceat(contested, starts)] = 0
        place, who, changed = place[ends], who[ends], ~kept[ends] | (self._changes[place[ends]] == 0)
        warp, known = who // WARP, self._lanes[place]
        stays_too = ~changed & (known >> WARP == warp)
        self._lanes[place] = warp << WARP | lanes | np.where(stays_too, known & _LANES, 0)
        self._changes[place[changed]] = (who << MOMENT_BITS | moment)[changed]

    def by_luck(self, order: ThreadOrder, place: Numbers, who: Numbers) -> tuple[NDArray[np.intp], Numbers]:
        """Return which loads find what another lane of their warp may as well store later, and the stores."""
        held, known = self._changes[place], self._lanes[place]
        warp, lane = np.divmod(who, WARP)
        found = unordered(held, order, who)
        beside = (thread_of(held) // WARP == warp) & (known >> WARP == warp) & (known >> lane & 1 == 0)
        found = found[beside[found]]
        return found, held[found]
