# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who watches a case that is counted, beside what the executor counts itself.

What follows L1 tells what one block of each batch finds there: a cache that drops the least recently used
sector.
"""

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import repeat
from typing import Any

import numpy as np
from msgspec import Struct, field

from gpuprof.backends.base import Functions
from gpuprof.backends.compiling import occupancy_of
from gpuprof.devices.device import Device
from gpuprof.executor import Buffer, Cache, Kept, MemoryOperation, Observer
from gpuprof.kernels.shape import ConfiguredCase

_L1_BYTES, _SECTOR_BYTES, _LINE_BYTES = 256 << 10, 32, 128
_SECTOR, _LINE_SECTORS, _WORD = 5, 2, 2
#: Where a number stands beside an address, or its word; a sector without one.
_HIGH, _LOW = 45, (1 << 42) - 1
#: Sectors that are looked at, of a whole launch.
_WATCHED = 400_000
#: Accesses of a line that are looked at, each of which costs some forty microseconds.
_MOST_LOOKS = 1500
#: Sectors of an instruction that are looked at.
_MOST_SECTORS = 12_000
#: Accesses of blocks that may tell each other something are by few threads.
_FEW = 4096
#: So many of a batch's first blocks, of its last ones and of those in the middle tell how blocks move.
_TELLING = 16
#: Bytes that a place moves along an axis that no two blocks differ along.
_UNSEEN = 1 << 40
#: Banks of L1's data, of a word each.
_BANKS = 32
#: L1 finds four lines in a pass, one in each of four parts. The part that has a line, by the last bits of its
#: number: from an H200, where lanes of a warp read an element each, 4 to 16,384 bytes from one to the next.
_PARTS = np.zeros(1, np.int64)
for _part in (1, 2, 1, 2, 3, 1, 2, 3, 2, 1, 2, 1, 3, 1):
    _PARTS = np.append(_PARTS, _PARTS ^ _part)
#: Bytes from a multiple of two megabytes to where an array begins on a card: poison stands before it.
_BEGINS = 4096
#: Its multiples, without their whole parts, are evenly spread.
_GOLDEN = 0.6180339887498949
#: Patterns of accesses that are kept.
_MOST_PATTERNS = 4096


class _Request(Struct, frozen=True, eq=False):
    """What a block asks for that accesses places which lie so to each other, and to the lines of memory.

    Its `sectors` are in order, once for each of so many `warps`, which stand above them; `lines` are how many
    they touch, by how blocks move; `banks` the passes that all words take; or each warp's, and `parts`
    its lines, if these may take more.
    """

    sectors: Any
    warps: int
    banks: Any
    parts: Any
    lines: dict[tuple[int, ...] | None, list[int]] = field(default_factory=dict)


class CacheWatch(Observer):
    """Watches loads and stores of global memory.

    Attributes:
        seen: By number of the launch, counting site, or source line of a bulk copy, and whether it reads:
            sectors, and lines, that warps ask for, and lines beginning where other blocks do, `placed_lines`;
            how many `warps` ask; of loads the `passes` of L1's data path, warps that wait for more than L1,
            `waiting`, those sectors that it did not hold, `missed`, those that another warp missed at the
            same time, `shared`, and those that the block asks L2 for first, `fresh`, and of these those that
            DRAM has brought with the other half of 64 bytes, `brought`; of stores the lines of all warps
            together, `own_lines`, those that the store before wrote to as well, `again`, and the sectors that
            it did not, `own_sectors`; how many `runs` these make, or the fresh ones, with what was asked for
            before; of bulk copies how many `copies`, and lines as often as each asks for them, of atomic
            operations how many `updates`.
        handed_on: By number of the launch, how many blocks at most have, one after the other, read what the
            one before had written, as volatile or atomic.
        moving: By the same key as `seen`, by how many bytes the place that blocks first access moves along
            each axis of the grid, where it moves by as much from each block to the next; else None.
        turns: By the same key, sectors and how often each passes, of atomic operations that are looked at.
    """

    def __init__(self, sectors: int) -> None:
        self._room, self._left = sectors, _WATCHED
        self._held: OrderedDict[int, None] = OrderedDict()
        self._launch = -1
        #: What the followed block of a batch has asked L2 for, and where in the batch it stands, which begins
        #: with a block of this number.
        self._asked: set[int] = set()
        self._place, self._first = 0.5, 0
        #: Where that would be if all were alike.
        self._turn = self._place
        #: Whether it is one of those that most are like.
        self._usual = False
        #: Sectors that the followed block stored to last.
        self._stored: set[int] = set()
        #: Sectors that went by unseen since L1 was last known.
        self._unseen = 0.0
        self._patterns: Kept[_Request] = Kept(_MOST_PATTERNS)
        self.seen: dict[tuple[int, int, bool], Counter[str]] = defaultdict(Counter)
        #: After how many others a block comes; who wrote to an address, and after how many that was.
        self._after: dict[int, int] = {}
        self._written: dict[int, tuple[int, int]] = {}
        self.handed_on: Counter[int] = Counter()
        self.moving: dict[tuple[int, int, bool], tuple[int, ...] | None] = {}
        self.turns: dict[tuple[int, int, bool], list[Any]] = defaultdict(list)

    def begin(self, named: Any) -> None:
        self._launch, self._index_of = self._launch + 1, cache(lambda thread: named(thread)[1])
        self._after, self._written = {}, {}
        self._held.clear()  # a launch finds nothing in L1

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        """As an observer: only a load that is not strong may find its data in L1."""
        strong = one.strong
        if strong:
            self._receive(buffer, one)
        seen, sectors = self._look(buffer, one, reads=True)
        if not sectors:
            return
        held, asked = self._held, self._asked
        misses, shared, missed, waiting = 0, 0, set[int](), set[int]()
        for each in sectors:
            sector = each & _LOW
            if sector in held and not strong:
                held.move_to_end(sector)
                if sector in missed:
                    shared += 1
                    waiting.add(each - sector)
                continue
            misses += 1
            missed.add(sector)
            waiting.add(each - sector)
            if not strong:
                held[sector] = None
                if len(held) > self._room:
                    held.popitem(last=False)
        fresh = missed - asked
        seen["missed"] += misses
        seen["waiting"] += len(waiting)
        seen["shared"] += shared
        seen["fresh"] += len(fresh)
        seen["brought"] += len(asked.intersection([sector ^ 1 for sector in fresh]))
        seen["runs"] += _runs(fresh, asked) if fresh else 0
        asked |= missed

    def _hold(self, sector: int) -> None:
        """Keep a sector in L1, in place of the one that was used longest ago."""
        self._held[sector] = None
        self._held.move_to_end(sector)
        if len(self._held) > self._room:
            self._held.popitem(last=False)

    def write(self, buffer: Buffer, one: MemoryOperation, values: Any) -> None:
        if one.strong:
            self._hand_on(buffer, one)
        seen, sectors = self._look(buffer, one, reads=False)
        own = {each & _LOW for each in sectors}
        for sector in own:
            self._hold(sector)
        lines, before = ({sector >> _LINE_SECTORS for sector in each} for each in (own, self._stored))
        seen["own_lines"] += len(lines)
        seen["own_sectors"] += len(own - self._stored)
        seen["again"] += len(lines & before)
        seen["runs"] += _runs(own - self._stored, self._stored)
        self._stored = own

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Any = None) -> None:
        self._hand_on(buffer, one)
        self._look(buffer, one, reads=False)
        if one.site is not None and (key := (self._launch, one.site, False)) in self.seen:
            self.seen[key]["updates"] += 1
            if self.seen[key]["updates"] <= _MOST_LOOKS:
                self._take_turns(self.turns[key], buffer, one)

    def _take_turns(self, turns: list[Any], buffer: Buffer, one: MemoryOperation) -> None:
        """Note how often sectors pass: for each warp as often as their busiest word has lanes."""
        some = slice(None, None, math.ceil(len(one.who) / _FEW) or 1)
        words = buffer.address + one.place[some].astype(np.int64) * one.size >> _WORD
        each, lanes = np.unique(one.who[some].astype(np.int64) // 32 << _HIGH | words, return_counts=True)
        sectors, first = np.unique(each >> _SECTOR - _WORD, return_index=True)
        if len(first):
            turns.append((sectors & _LOW, np.maximum.reduceat(lanes, first)))

    def _hand_on(self, buffer: Buffer, one: MemoryOperation) -> None:
        addresses, blocks = self._blocks_at(buffer, one)
        after = map(self._after.get, blocks, repeat(0))
        self._written.update(zip(addresses, zip(blocks, after, strict=True), strict=True))

    def _receive(self, buffer: Buffer, one: MemoryOperation) -> None:
        for address, block in set(zip(*self._blocks_at(buffer, one), strict=True)):
            writer, before = self._written.get(address, (block, 0))
            if writer != block:
                self._after[block] = after = max(self._after.get(block, 0), before + 1)
                self.handed_on[self._launch] = max(self.handed_on[self._launch], after)

    def _blocks_at(self, buffer: Buffer, one: MemoryOperation) -> tuple[list[int], list[int]]:
        """Where threads access memory, and the block of each, of those accesses that are few."""
        if len(one.who) > _FEW:
            return [], []
        addresses = buffer.address + one.place.astype(np.int64) * one.size
        return addresses.tolist(), (one.who // one.order.block_threads).tolist()

    def _look(self, buffer: Buffer, one: MemoryOperation, *, reads: bool) -> tuple[Counter[str], list[int]]:
        """Note an access of the followed block; return what was seen and its sectors, once for each warp."""
        if (one.site is None and one.by is None) or one.cache is Cache.CONSTANT:  # caches not followed
            return Counter(), []
        key = self._launch, one.line if one.site is None else one.site, reads
        seen = self.seen[key]
        if one.order.first != self._first:
            # Evenly spread, so that whatever period the grid has is met in turn.
            self._first, self._turn, self._asked = one.order.first, (self._turn + _GOLDEN) % 1, set()
            self._place, self._usual = self._turn, False
        if key not in self.moving and len(one.who):
            self.moving[key] = self._movement(buffer, one)
        if one.mask is None and one.by is not None:  # the copy engine passes L1 by
            # What a thread asks for stands together.
            others = int(np.count_nonzero(one.by[1:] != one.by[:-1]))
            copies, nbytes = len(one.by) and 1 + others, one.pieces * one.size
            seen["copies"] += copies
            seen["sectors"] += len(one.by) * nbytes >> _SECTOR
            one_copy = one.by[int(self._place * len(one.by)) :][:1]  # there may be none
            chosen = one.by == one_copy
            start = buffer.address + one.place[chosen].astype(np.int64) * one.size
            if one.rows is not None and len(start):
                width = int(one.rows[0][chosen][0])
                start, nbytes = start + one.rows[1][: nbytes // width], width
            start = start - (start[:1] & -_LINE_BYTES)
            seen["lines"] += copies * _touched(start.tobytes(), nbytes)
            return seen, []
        if one.mask is None or self._left <= 0:
            return seen, []
        if not self._usual:
            self._place, self._usual = _usual(one.mask.lanes, self._turn), True
        lanes = _of_block(one.mask.lanes, self._place)
        if not (one.mask.whole or lanes.any()):
            return seen, []
        if seen["looks"] and (seen["looks"] >= _MOST_LOOKS or seen["sectors"] >= _MOST_SECTORS):
            self._unseen += seen["sectors"] / seen["looks"]
            return seen, []
        if self._unseen > self._room:
            self._held.clear()
            self._unseen = 0.0
        seen["looks"] += 1
        where = buffer.address + _of_block(one.index, self._place).astype(np.int64) * one.size
        line, how = int(where.item(0)) & -_LINE_BYTES, (one.size, one.mask.warps)
        some = None if one.mask.whole else lanes
        content = (where - line).tobytes(), where.shape, *how, some is None or (some.tobytes(), some.shape)
        known = self._patterns.of(content, lambda: _pattern(where, line, *how, some))
        found = known.sectors + (line >> _SECTOR)
        if reads:
            seen["passes"] += _passes(known, line - buffer.address + _BEGINS)
        seen["sectors"] += len(found)
        moves = self.moving.get(key)
        if moves not in known.lines:
            known.lines[moves] = _lines(found, moves)
        seen["lines"] += known.lines[moves][0]
        seen["placed_lines"] += sum(known.lines[moves])
        seen["warps"] += known.warps
        self._left -= len(found)
        sectors: list[int] = found.tolist()
        return seen, sectors

    def _movement(self, buffer: Buffer, one: MemoryOperation) -> tuple[int, ...] | None:
        """By how many bytes the lowest place that each block of the batch accesses moves, if evenly.

        Where no two blocks of the batch differ along an axis, it counts as moving far.
        """
        who, place = one.who // one.order.block_threads, one.place.astype(np.int64) * one.size
        runs = np.append(0, 1 + np.flatnonzero(who[1:] != who[:-1]))  # of threads of one block
        blocks, inverse = np.unique(who[runs], return_inverse=True)
        lowest = np.full(len(blocks), np.iinfo(np.int64).max)
        np.minimum.at(lowest, inverse, buffer.address + np.minimum.reduceat(place, runs))
        if len(blocks) > 3 * _TELLING:
            middle = len(blocks) // 2
            told = np.r_[:_TELLING, middle : middle + _TELLING, -_TELLING:0]
            blocks, lowest = blocks[told], lowest[told]
        indices = np.array([self._index_of(block * one.order.block_threads) for block in blocks.tolist()])
        steps, moved = indices - indices[:1], lowest - lowest[:1]
        found, _, rank, _ = np.linalg.lstsq(steps, moved.astype(np.float64), rcond=None)
        unseen = ~steps.any(axis=0)
        if rank + unseen.sum() < steps.shape[1] or (steps @ np.rint(found) != moved).any():
            return None
        return tuple(np.where(unseen, _UNSEEN, found.round()).astype(np.int64).tolist())


@lru_cache
def _touched(starts: bytes, nbytes: int) -> int:
    """How many lines stretches of so many bytes touch, from where each begins."""
    each = np.minimum(np.arange(0, nbytes + _LINE_BYTES, _LINE_BYTES), nbytes - 1)
    return len(np.unique(np.frombuffer(starts, np.int64)[:, None] + each >> _SECTOR + _LINE_SECTORS))


def _distinct(numbers: Any) -> Any:
    """Return each number once, in order: `np.unique` takes three times as long."""
    return _once(np.sort(numbers, axis=None))


def _once(ordered: Any) -> Any:
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def _of_block(each: Any, place: float) -> Any:
    """What the block at a place of the batch has of what all have alike, or each its own."""
    return each[int(place * len(each))]


def _usual(lanes: Any, place: float) -> float:
    """The place of a block of which as many threads act as of most that do: where arrays end fewer do."""
    acting, kinds, blocks = np.unique(lanes.sum(axis=(1, 2)), return_inverse=True, return_counts=True)
    blocks *= acting > 0
    most = len(blocks) - 1 - int(np.argmax(blocks[::-1]))  # and the most threads, of two that are as many
    alike = np.flatnonzero(kinds == most)
    if len(alike) == len(lanes):  # one row may stand for all
        return place
    return float(alike[int(place * len(alike))] + 0.5) / len(lanes)


def _pattern(where: Any, line: int, size: int, warps: int, lanes: Any) -> _Request:
    """What a block's lanes, or some of them, ask for at addresses: as it is from that of a line on."""
    each = np.arange(warps, dtype=np.int64)[:, None] << _HIGH | where >> _WORD
    if lanes is not None:
        shape = (warps, 32)
        each = np.broadcast_to(each, shape)[np.broadcast_to(lanes, shape)]
    found = _distinct(each >> _SECTOR - _WORD)
    if size > 1 << _WORD:
        each = each[..., None] + np.arange(size >> _WORD)
    words, lines = _distinct(each), _once(found >> _LINE_SECTORS)
    of = lines >> _HIGH + _WORD - _SECTOR - _LINE_SECTORS
    banks = _most(words >> _HIGH, words % _BANKS, _BANKS)
    more = (np.bincount(of) > banks).any()
    return _Request(
        found - (line >> _SECTOR),
        len(_once(found >> _HIGH + _WORD - _SECTOR)),
        banks if more else int(banks.sum()),
        (of, lines - (line >> _SECTOR + _LINE_SECTORS)) if more else None,
    )


def _lines(sectors: Any, moves: tuple[int, ...] | None) -> list[int]:
    """Lines of sectors in order, and of where blocks begin a sector, two or three further on, of theirs."""
    apart = max(1, math.gcd(_LINE_BYTES, *(moves or ())) // _SECTOR_BYTES)
    lines = [sectors + shift >> _LINE_SECTORS for shift in range(0, 1 << _LINE_SECTORS, apart)]
    return [1 + int(np.count_nonzero(each[1:] != each[:-1])) for each in lines] * apart


def _passes(known: _Request, begin: int) -> int:
    """Passes of L1's data path: of each warp, words of its busiest bank, or lines of its busiest part."""
    if known.parts is None:
        return int(known.banks)
    of, lines = known.parts
    parts = _PARTS[(lines + (begin >> _SECTOR + _LINE_SECTORS)) % len(_PARTS)]
    return int(np.maximum(known.banks, _most(of, parts, 4)).sum())


def _most(warps: Any, parts: Any, count: int) -> Any:
    """How many places the part that has most of them has, of each warp in order, from those of each place."""
    found = np.bincount(warps * count + parts, minlength=(int(warps[-1]) + 1) * count)
    return found.reshape(-1, count).max(axis=1)


def _runs(sectors: set[int], before: set[int]) -> int:
    """How many more runs of neighbouring sectors there are with these than without, beside those before."""
    below, above = {one - 1 for one in sectors}, {one + 1 for one in sectors}
    return len(below - sectors - before) - len(above & before)


#: Whatever else watches a case that is counted, each made for it anew: an observer that counts what a row of
#: the table of counters names, or looks for something else.
COUNTING: list[Callable[[], Observer]] = []


def watching(device: Device, case: ConfiguredCase, compiled: Functions) -> tuple[CacheWatch, list[Observer]]:
    """Return what watches the part of L1 that one block has beside its shared memory, and all that watch."""
    one = case.largest
    function = compiled[one.entry]
    held = occupancy_of(device, one, function).blocks_per_sm
    resident = min(held, math.ceil(math.prod(one.grid) / device.sm_count))
    shared = function.static_shared_bytes + one.dynamic_shared_bytes
    kept = shared + device.reserved_shared_bytes_per_block
    watch = CacheWatch((_L1_BYTES // max(1, resident) - kept) // _SECTOR_BYTES)
    return watch, [watch, *(observer() for observer in COUNTING)]
