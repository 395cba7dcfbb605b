# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who touched each element of a buffer in one manner: by loads, by stores, or by atomic operations.

Two of those that are not ordered among themselves are remembered by name. More of them are folded into the
second, which then stands for several threads of a warp, of a block, of a cluster, or of several of these.
Where only some of these may be ordered, by releases or by barriers of some warps, all are also kept in full.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.memory.moments import (
    MOMENT_BITS,
    OF_BLOCK,
    OF_CLUSTER,
    OF_MANY,
    OF_WARP,
    ONE,
    Numbers,
    kind_of,
    thread_of,
    with_kind,
)
from gpuprof.executor.memory.thread_order import ThreadOrder
from gpuprof.executor.memory.warp_rows import changes

#: Accesses kept for `unordered` alone before those that others of the same thread follow are dropped.
_KEPT = 1 << 20
#: Of a place and a warp of the launch in one number, the bits of the warp.
_WARP_BITS = 27
_ALL_LANES = (1 << WARP) - 1


def unordered(
    held: Numbers, order: ThreadOrder, who: Numbers, lanes: Numbers | None = None
) -> NDArray[np.intp]:
    """Return which of the stamps in `held` tell of another thread, not ordered before the one beside it.

    Of those of a warp, which `lanes` they stand for may be given, as bits.
    """
    suspects = np.flatnonzero((held != 0) & ((held >> MOMENT_BITS) != who))
    if not suspects.size:
        return suspects
    told = None if lanes is None else lanes[suspects]
    return suspects[~order.ordered(held[suspects], who[suspects], told)]


#: Tells of which of some places, given with the stamps of who was there, a meeting counts.
Counts = Callable[[NDArray[np.intp], Numbers], Bools]


class Met(NamedTuple):
    """Which `row` of an instruction's accesses meets what a stamp tells.

    That is done `again`, where others had done the same before without order.
    """

    row: int
    stamp: int
    again: bool


class ConcurrentAccesses:
    """Stamps of the accesses of one sort to the elements of a buffer."""

    def __init__(self, elements: int) -> None:
        self._elements = elements
        self._first: Numbers | None = None
        self._second: Numbers | None = None
        #: Of what stands for several threads of a warp there, the lanes.
        self._lanes: Numbers | None = None
        self._all: list[tuple[Numbers, Numbers]] = []
        self._by_place = True

    def refine(self, times: int) -> None:
        """Divide every element in `times` smaller ones."""
        self._elements *= times
        self._first, self._second, self._lanes = (
            None if each is None else np.repeat(each, times)
            for each in (self._first, self._second, self._lanes)
        )
        parts = np.arange(times)
        self._all = [
            ((place[:, None] * times + parts).reshape(-1), np.repeat(stamps, times))
            for place, stamps in self._all
        ]
        self._by_place = False

    def unordered(
        self, order: ThreadOrder, place: Numbers, who: Numbers
    ) -> Iterator[tuple[NDArray[np.intp], Numbers]]:
        """Return accesses of other threads that are not ordered before those of `who` at `place`.

        Of many at one place two are told: twice which of the places, and the stamps of who else was there.
        Of those that are only kept, all are.
        """
        for stamps, lanes in ((self._first, None), (self._second, self._lanes)):
            if stamps is not None:
                held = stamps[place]
                found = unordered(held, order, who, None if lanes is None else lanes[place])
                yield found, held[found]
        if self._first is None and self._all:
            yield self._among_all(order, place, who, np.arange(len(place)))

    def conflict(
        self, order: ThreadOrder, place: Numbers, who: Numbers, counts: Counts | None = None
    ) -> Met | None:
        """Return the first access of another thread that is not ordered before those of `who` at `place`.

        And `counts`, if that is given.
        """
        for again, (found, held) in enumerate(self.unordered(order, place, who)):
            if not found.size:
                continue
            many = kind_of(held) >= order.apart_from
            told = [(found[~many], held[~many])]
            if many.any():
                told.insert(0, self._among_all(order, place, who, found[many]))
            for rows, stamps in told:
                counting = np.arange(len(rows)) if counts is None else np.flatnonzero(counts(rows, stamps))
                if counting.size:
                    return Met(int(rows[counting[0]]), int(stamps[counting[0]]), again > 0)
        return None

    def keep(self, place: Numbers, stamps: Numbers) -> None:
        """Remember accesses in full, for `unordered` alone."""
        self._all.append((place, stamps))
        self._by_place = False

    def _among_all(
        self, order: ThreadOrder, place: Numbers, who: Numbers, asked: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], Numbers]:
        """Return the accesses kept in full that are not ordered before one of `asked`, and which.

        Those of other warps are ordered before all threads of a warp alike: of these the first one is told.
        """
        if not self._all:
            return np.zeros(0, np.intp), np.zeros(0, np.int64)
        keys, stamps = self._compacted()
        of_warp, place = _by_warp(place[asked], who[asked]), place[asked] << _WARP_BITS
        _, firsts = np.unique(of_warp, return_index=True)
        row, member = _pairs(keys, place[firsts], place[firsts] + (1 << _WARP_BITS), firsts)
        apart = keys[member] != of_warp[row]
        own_row, own_member = _pairs(keys, of_warp, of_warp + 1, np.arange(len(asked)))
        row, member = np.append(row[apart], own_row), np.append(member[apart], own_member)
        found = unordered(stamps[member], order, who[asked[row]])
        found = found[np.lexsort((member[found], row[found]))]
        return asked[row[found]], stamps[member[found]]

    def _compacted(self) -> tuple[Numbers, Numbers]:
        """Return the accesses that are kept in full, by place and warp, which come first."""
        if not self._by_place:
            places, stamps = (np.concatenate(parts) for parts in zip(*self._all, strict=True))
            by_place = np.lexsort((stamps, _by_warp(places, thread_of(stamps))))
            places, stamps = places[by_place], stamps[by_place]
            if self._first is not None or len(places) > _KEPT:
                # The last access of a thread to a place stands for those before.
                last = np.ones(len(places), dtype=np.bool_)
                same = (stamps[1:] >> MOMENT_BITS) == (stamps[:-1] >> MOMENT_BITS)
                last[:-1] = ~(same & (places[1:] == places[:-1]))
                places, stamps = places[last], stamps[last]
            self._all, self._by_place = [(places, stamps)], True
        places, stamps = self._all[0]
        return _by_warp(places, thread_of(stamps)), stamps

    def add(self, order: ThreadOrder, place: Numbers, stamps: Numbers) -> bool:
        """Remember accesses of one instruction; return whether several of them may be at one place."""
        if self._first is None:
            self._first = np.zeros(self._elements, dtype=np.int64)
        who = thread_of(stamps)
        held = self._first[place]
        joins = np.zeros(len(place), dtype=np.bool_)
        joins[unordered(held, order, who)] = True
        taken = ~joins
        self._first[place[taken]] = stamps[taken]
        # Of those that took one place together, the last one has it.
        lost = taken & (self._first[place] != stamps)
        joins |= lost
        if np.count_nonzero(joins):
            if self._second is None or self._lanes is None:
                self._second, self._lanes = np.zeros_like(self._first), np.zeros_like(self._first)
            self._join(self._second, self._lanes, order, place[joins], stamps[joins])
        return bool(lost.any())

    def _join(
        self, second: Numbers, lanes: Numbers, order: ThreadOrder, place: Numbers, stamps: Numbers
    ) -> None:
        by_place = np.argsort(place, kind="stable")
        place, stamps = place[by_place], stamps[by_place]
        who = thread_of(stamps)
        held, before = second[place], lanes[place]
        stays = np.zeros(len(place), dtype=np.bool_)
        stays[unordered(held, order, who, before)] = True
        wider = np.where(stays, _widened(held, who, order), ONE)
        begins = changes(place)
        start = np.flatnonzero(begins)
        if len(start) < len(place):  # several threads at one place, in this very instruction
            first = np.repeat(start, np.diff(np.append(start, len(place))))
            wider = np.maximum(wider, _widened(stamps[first], who, order))
        widest = np.maximum.reduceat(wider, start)
        last = np.append(start[1:], len(place)) - 1
        second[place[last]] = with_kind(stamps[last], widest)
        together = np.where(stays, before, 0) | np.int64(1) << who % WARP
        lanes[place[last]] = np.bitwise_or.reduceat(together, start)
        many = np.repeat(widest >= order.apart_from, last - start + 1)
        if many.any():
            self._by_place = False
            old = many & stays & begins & (kind_of(held) < order.apart_from)
            self._all.append((place[many], stamps[many]))
            if old.any():
                self._all.append((place[old], held[old]))


def of_others(who: Numbers, threads: int, kind: int) -> Counts:
    """Return what tells whether stamps tell of threads of other groups of `threads` than those of `who`.

    Stamps of this kind or a wider one stand for threads of several groups.
    """

    def apart(rows: NDArray[np.intp], stamps: Numbers) -> Bools:
        different = thread_of(stamps) // threads != who[rows] // threads
        return np.asarray(different | (kind_of(stamps) >= kind))

    return apart


def _widened(stamps: Numbers, who: Numbers, order: ThreadOrder) -> Numbers:
    """Return the kind of stamp that stands for those given and for the threads beside them."""
    threads = thread_of(stamps)
    kind = np.where(threads == who, ONE, OF_WARP)
    kind = np.where(threads // WARP != who // WARP, OF_BLOCK, kind)
    kind = np.where(threads // order.block_threads != who // order.block_threads, OF_CLUSTER, kind)
    cluster = order.warps * WARP
    kind = np.where(threads // cluster != who // cluster, OF_MANY, kind)
    return np.maximum(kind, kind_of(stamps))


def _by_warp(place: Numbers, threads: Numbers) -> Numbers:
    """Return numbers by which accesses are sorted by place, and there by warp."""
    return place << _WARP_BITS | threads // WARP


def _pairs(
    keys: Numbers, begin: Numbers, end: Numbers, rows: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return each of `rows` with each of the sorted `keys` from its `begin` to before its `end`."""
    start = np.searchsorted(keys, begin)
    count = np.searchsorted(keys, end) - start
    member = np.arange(count.sum()) + np.repeat(start - np.cumsum(count) + count, count)
    return np.repeat(rows, count), member


class LaneStores:
    """The strong stores that the elements of a batch's shared memory hold the values of.

    Lanes run in lockstep here and need not on a card: a strong load may find by luck what another lane of its
    warp stored. It is decided all the same where the store that brought the value is ordered before it, or
    where its own thread has stored that value too.
    """

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
        self._lanes[place] = warp << WARP | lanes | np.where(stays_too, known & _ALL_LANES, 0)
        self._changes[place[changed]] = (who << MOMENT_BITS | moment)[changed]

    def by_luck(self, order: ThreadOrder, place: Numbers, who: Numbers) -> tuple[NDArray[np.intp], Numbers]:
        """Return which loads find what another lane of their warp may as well store later, and the stores."""
        held, known = self._changes[place], self._lanes[place]
        warp, lane = np.divmod(who, WARP)
        found = unordered(held, order, who)
        beside = (thread_of(held) // WARP == warp) & (known >> WARP == warp) & (known >> lane & 1 == 0)
        found = found[beside[found]]
        return found, held[found]
