# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What threads release to others through global memory, and who has acquired it: order between blocks.

A fence followed by a strong write (volatile, relaxed or atomic, or one that is itself a release) releases: it
publishes what its thread did before the fence, and what other threads of the block did that was fenced and is
ordered before it. A strong read that observes the write acquires all that. By the PTX model a fence should
follow such a read too; here that is asked of `ld.relaxed` alone, because hardware loads nothing ahead of a
value that decides whether it is loaded. An atomic operation hands on what was released to its variable
before.

What is released is a *release*, numbered from 0; what a warp has acquired is a set of them, as the bits of an
integer, so that joining two sets is one operation and sharing one costs nothing.
"""

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.warp_clocks import Times, WarpClocks
from gpuprof.executor.memory.warp_rows import changes

_Numbers = NDArray[np.int64]
#: Moments of sets of releases that are kept in tables.
_KEPT_MOMENTS = 1 << 22
#: Sets whose moments for one block are kept.
_KEPT_SETS = 256


class _Latest:
    """Until when a set of releases of one block publishes what each thread, warp, block and all of it did."""

    def __init__(self, releases: list[_Numbers], block_threads: int) -> None:
        upto = np.array(releases)
        self.by_kind = [
            upto.reshape(len(upto), -1, size).min(axis=2).max(axis=0)
            for size in (1, WARP, block_threads, upto.shape[1])
        ]
        self._sizes = (1, WARP, block_threads, upto.shape[1])

    def of(self, threads: _Numbers, kinds: _Numbers) -> _Numbers:
        """Return the moment for each thread, or for its warp, block or all, as its kind says."""
        found = np.empty(len(threads), dtype=np.int64)
        for kind, (moments, size) in enumerate(zip(self.by_kind, self._sizes, strict=True)):
            chosen = kinds == kind
            if chosen.any():
                found[chosen] = moments[threads[chosen] // size]
        return found


class AcquiredPlace(Struct, frozen=True, eq=False):
    """What those acquire who read a place in memory: all, and threads of `block` what is `near` too.

    Places that were used alike share one.
    """

    far: int = 0
    near: int = 0
    block: int = -1


class _Published(Struct, frozen=True, eq=False):
    """What a warp's strong write published, to everybody and to its own block."""

    threads: bytes
    times: Times
    lanes: Times | None
    fences: int
    content: tuple[int, int]


class Releases:
    """All releases of one launch; they are `used` when a warp relies on any."""

    def __init__(self) -> None:
        #: Those of each block, by their number: what a warp published between two fences, of each thread of
        #: the block what it did before a moment.
        self.of_block: dict[int, dict[int, _Numbers]] = {}
        self.used = False
        self._count = 0
        # The block of each release, and its floor, the least moment; the arrays have room for more.
        self._blocks = np.zeros(64, dtype=np.int64)
        self._floors = np.zeros(64, dtype=np.int64)
        self._tables: Kept[_Numbers] = Kept(_KEPT_MOMENTS, len)
        self._latest: Kept[_Latest | None] = Kept(_KEPT_SETS)
        #: By block and moment the strong writes that published something: the set of it, and their threads.
        self.signals: dict[tuple[int, int], list[tuple[int, _Numbers]]] = {}

    def add(self, block: int, upto: _Numbers) -> int:
        """Add a release of a block, and return the set that holds it alone."""
        number = self._count
        if number == len(self._blocks):
            self._blocks, self._floors = (np.concatenate([a, a]) for a in (self._blocks, self._floors))
        self.of_block.setdefault(block, {})[number] = upto
        self._blocks[number], self._floors[number] = block, upto.min()
        self._count += 1
        return 1 << number

    def signal(self, block: int, one: int, moment: int, threads: _Numbers) -> None:
        """A strong write by these threads publishes the one release of a set."""
        self.signals.setdefault((block, moment), []).append((one, threads))

    def latest(self, chosen: int, block: int, block_threads: int) -> _Latest | None:
        """Return what a set of releases holds of a block, or of a cluster of blocks; None for nothing."""

        def make() -> _Latest | None:
            released = self.of_block.get(block, {})
            held = [release for number, release in released.items() if chosen >> number & 1]
            return _Latest(held, block_threads) if held else None

        return self._latest.of((chosen, block), make)

    def floors(self, sets: list[int], which: _Numbers, blocks: _Numbers) -> _Numbers:
        """Return until when everything that blocks did is part of sets of releases.

        `which` is the number of a set, for each block.
        """
        tables = [self._tables.of(chosen, partial(self._table, chosen)) for chosen in sets]
        lengths = np.array([len(table) for table in tables], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        return np.asarray(np.concatenate(tables)[starts[which] + np.minimum(blocks, lengths[which] - 1)])

    def _table(self, chosen: int) -> _Numbers:
        """Return the floor of each block in a set, and one more for all that released nothing of it."""
        content = chosen.to_bytes(-(-chosen.bit_length() // 8), "little")
        bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), bitorder="little")
        numbers = np.flatnonzero(bits)
        table = np.zeros(int(self._blocks[numbers].max(initial=-1)) + 2, dtype=np.int64)
        np.maximum.at(table, self._blocks[numbers], self._floors[numbers])
        return table


class Knowledge:
    """What the threads of one batch have fenced, and what its warps have acquired.

    What is released is released of a cluster, which a block by itself also is: the numbers of blocks in
    `Releases` are those of clusters then.
    """

    def __init__(self, releases: Releases, clocks: WarpClocks, first: int, blocks: int) -> None:
        warps = int(clocks.times.shape[1])
        self.releases = releases
        self.first = first // clocks.blocks
        self.shape = (blocks, warps, WARP)
        self._first_block, self._block_warps = first, warps // clocks.blocks
        self._clocks = clocks
        clocks.held = np.zeros((blocks, warps), dtype=object)
        #: What warps have found by relaxed loads, which they acquire with their next fence.
        self._observed: dict[int, int] = {}
        #: Until when what each thread did is fenced for everybody, and for its own block if that is more.
        self._fenced: list[_Numbers] = [np.zeros(self.shape, dtype=np.int64)] * 2
        #: The last release of each warp, and the set that holds it alone: for everybody, for its block.
        self._last: list[dict[int, tuple[_Numbers, int]]] = [{}, {}]
        #: What each warp published last, and how many fences there have been.
        self._latest: dict[int, _Published] = {}
        self._fences = 0

    def fence(self, lanes: Bools, now: int, near: bool) -> None:
        """Some threads execute a fence, for their own block alone if it is `near`."""
        self._fences += 1
        if near and self._fenced[0] is self._fenced[1]:
            self._fenced[1] = self._fenced[0].copy()
        for warp in [one for one in self._observed if lanes.reshape(-1, WARP)[one].any()]:
            self._hold(warp, self._observed.pop(warp))
        levels = [self._fenced[1]] if near else self._fenced[: 1 + self._apart]
        for block in np.flatnonzero(lanes.any(axis=(1, 2))).tolist():
            before = self._clocks.limits(block, lanes[block], now)
            for fenced in levels:
                np.maximum(fenced[block], before, out=fenced[block])

    @property
    def _apart(self) -> bool:
        """Whether some fences reached only their own block."""
        return self._fenced[0] is not self._fenced[1]

    @property
    def _held(self) -> Any:
        """What each warp of the batch has acquired."""
        assert self._clocks.held is not None
        return self._clocks.held.reshape(-1)

    def signal(
        self,
        variables: dict[int, AcquiredPlace],
        place: _Numbers,
        threads: _Numbers,
        moment: int,
        *,
        reads: bool,
        writes: bool,
        near: bool,
        relaxed: bool,
    ) -> None:
        """Threads of this batch use variables by strong operations, and may so release and acquire.

        They take effect in the order of `place`, where in the buffer each one goes. One that reads and writes
        continues what was released there before. `near` ones are signals for their own block alone; `relaxed`
        ones acquire what they find only with their next fence.
        """
        fenced = np.asarray(self._fenced[1].any(axis=(1, 2))) if writes else None
        if not variables and (fenced is None or not fenced.any()):
            return
        stored: set[int] = set()
        for warp, (places, lanes) in self._by_warp(place, threads):
            block = warp // self.shape[1]
            published = (0, 0)
            if fenced is not None and fenced[block]:
                published = self._publish(warp, lanes, moment)
                if near:
                    published = (0, published[1])
            for where in () if reads else places:
                if where not in stored:
                    variables.pop(where, None)
            # What one place tells and is told, its neighbours mostly do too.
            found = [*map(variables.get, places)]
            alike = {found[0]: places}
            if found.count(found[0]) < len(found):
                alike = defaultdict(list)
                for where, variable in zip(places, found, strict=True):
                    alike[variable].append(where)
            for variable, those in alike.items():
                if variable is not None and reads:
                    self._acquire(warp, variable, near=near, relaxed=relaxed)
                if published[1]:
                    variables.update(dict.fromkeys(those, self._published(warp, variable, published)))
            stored.update(places)

    def _published(
        self, warp: int, variable: AcquiredPlace | None, published: tuple[int, int]
    ) -> AcquiredPlace:
        """Return what a variable hands on after a warp's strong write, which publishes two sets."""
        held, home = self._held[warp], self._home(warp)
        far, near = (variable.far, variable.near) if variable is not None else (0, 0)
        if variable is None or variable.block != home:
            near = 0
        if published[0]:
            far |= published[0] | held
        return AcquiredPlace(far, near | published[1] | held, home)

    def _by_warp(self, place: _Numbers, threads: _Numbers) -> list[tuple[int, tuple[list[int], _Numbers]]]:
        """Return the places that each warp uses and its threads, warps in the order in which they come."""
        warps = threads // WARP
        starts = np.flatnonzero(changes(warps))
        ends = np.append(starts[1:], len(warps))
        return [
            (int(warps[a]), (list(dict.fromkeys(place[a:b].tolist())), threads[a:b]))
            for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def _home(self, warp: int) -> int:
        """Return the number, in the launch, of a warp's block."""
        return self._first_block + warp // self._block_warps

    def _acquire(self, warp: int, variable: AcquiredPlace, *, near: bool, relaxed: bool) -> None:
        of_block = variable.block == self._home(warp)
        new = (0 if near and not of_block else variable.far) | (variable.near if of_block else 0)
        self.releases.used |= bool(new)
        if relaxed:
            self._observed[warp] = self._observed.get(warp, 0) | new
        else:
            self._hold(warp, new)

    def _hold(self, warp: int, new: int) -> None:
        held = self._held[warp]
        if held | new != held:
            # Equal sets are one object, so that their tables are found.
            self._held[warp] = new if held | new == new else held | new
            self._clocks.uneven = True

    def _publish(self, warp: int, threads: _Numbers, moment: int) -> tuple[int, int]:
        """Return what a warp's strong write publishes now, to everybody and to its own block, as sets."""
        block, inside = divmod(warp, self.shape[1])
        members = threads - block * self.shape[1] * WARP
        latest, clocks = self._latest.get(warp), self._clocks
        # While these are the same objects, limits change only by what the threads themselves do.
        same = latest is not None and latest.times is clocks.times and latest.lanes is clocks.lanes
        if latest and same and latest.fences == self._fences and latest.threads == threads.tobytes():
            # What the threads did since then is not fenced yet.
            for level, content in enumerate(latest.content[: 1 + self._apart]):
                if content:
                    self.releases.signal(self.first + block, self._last[level][warp][1], moment, members)
            return latest.content
        lanes = np.zeros(self.shape[1:], dtype=np.bool_)
        lanes[inside, members % WARP] = True
        ordered = clocks.limits(block, lanes, moment)
        far = near = self._new(0, warp, np.minimum(self._fenced[0][block], ordered), moment, members)
        if self._apart:
            near = self._new(1, warp, np.minimum(self._fenced[1][block], ordered), moment, members)
        state = threads.tobytes(), clocks.times, clocks.lanes, self._fences
        self._latest[warp] = _Published(*state, (far, near))
        return far, near

    def _new(self, level: int, warp: int, upto: _Numbers, moment: int, members: _Numbers) -> int:
        upto = upto.reshape(-1)
        if not upto.any():
            return 0
        last, block = self._last[level].get(warp), self.first + warp // self.shape[1]
        if last is None or not np.array_equal(last[0], upto):
            last = self._last[level][warp] = upto, self.releases.add(block, upto)
        self.releases.signal(block, last[1], moment, members)
        return last[1]

    def covers(
        self, warps: _Numbers, blocks: _Numbers, threads: _Numbers, kinds: _Numbers, moments: _Numbers
    ) -> Bools:
        """Return whether `warps` of the batch have acquired what threads of any block did at these moments.

        Blocks are numbered in the launch, and threads in their block; kinds are those of stamps.
        """
        if not warps.size:
            return np.zeros(0, dtype=np.bool_)
        asking, rows = np.unique(warps, return_inverse=True)
        sets: dict[int, int] = {}
        numbers = [sets.setdefault(self._held[warp], len(sets)) for warp in asking.tolist()]
        of_set = np.array(numbers, dtype=np.int64)[rows]
        known = moments < self.releases.floors(list(sets), of_set, blocks)
        rest = np.flatnonzero(~known)
        for held, number in sets.items():
            if not held or not rest.size:
                continue
            asked = rest[of_set[rest] == number]
            for block in np.unique(blocks[asked]).tolist():
                part = asked[blocks[asked] == block]
                known[part] = self._released(held, block, threads[part], kinds[part], moments[part])
        return np.asarray(known)

    def _released(
        self, held: int, block: int, threads: _Numbers, kinds: _Numbers, moments: _Numbers
    ) -> Bools:
        latest = self.releases.latest(held, block, self._block_warps * WARP)
        if latest is None:
            return np.zeros(len(threads), dtype=np.bool_)
        known = moments < latest.of(threads, kinds)
        asked = ~known & (kinds == 0)
        for when in set(moments[asked].tolist()):
            for one, signalling in self.releases.signals.get((block, when), ()):
                if held & one:
                    known |= asked & (moments == when) & np.isin(threads, signalling)
        return known
