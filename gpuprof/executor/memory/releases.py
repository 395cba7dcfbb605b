# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What threads release to others through global memory, and who has acquired it: order between blocks.

A fence followed by a strong write (volatile, relaxed or atomic, or one that is itself a release) releases:
it publishes what its thread did before the fence, and what other threads of the block did that was fenced
and is ordered before it. A strong read that observes the write acquires all that. By the PTX model a fence
should follow such a read too; here none is asked for, because hardware loads nothing ahead of a value that
decides whether it is loaded. An atomic operation hands on what was released to its variable before.

What is released is a *release*, numbered from 0; what a warp has acquired is a set of them, as the bits of an
integer, so that joining two sets is one operation and sharing one costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools

_Numbers = NDArray[np.int64]
#: Returns until when the threads of a block, of shape (warps, 32), are ordered before what some lanes do now.
Limits = Callable[[int, Bools, int], _Numbers]
#: Sets of releases whose moments are kept as a table.
_REMEMBERED_SETS = 256


@dataclass
class _Release:
    """What one warp publishes between two fences.

    Attributes:
        upto: What each thread of the block did before this moment: shape (threads,).
        floor: The least of these.
        signals: When the warp made strong writes that publish it, and which threads did.
    """

    upto: _Numbers
    floor: int
    signals: dict[int, _Numbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Variable:
    """What those acquire who read a place in memory: all, and threads of `block` what is `near` too.

    Places that were used alike share one.
    """

    far: int = 0
    near: int = 0
    block: int = -1


class Releases:
    """All releases of one launch.

    Attributes:
        of_block: Those of each block, by their number.
    """

    def __init__(self) -> None:
        self.of_block: dict[int, dict[int, _Release]] = {}
        self._count = 0
        # The block of each release, and its floor; the arrays have room for more.
        self._blocks = np.zeros(64, dtype=np.int64)
        self._floors = np.zeros(64, dtype=np.int64)
        self._tables: dict[int, _Numbers] = {}

    def add(self, block: int, release: _Release) -> int:
        """Add a release of a block, and return the set that holds it alone."""
        number = self._count
        if number == len(self._blocks):
            self._blocks, self._floors = (np.concatenate([a, a]) for a in (self._blocks, self._floors))
        self.of_block.setdefault(block, {})[number] = release
        self._blocks[number], self._floors[number] = block, release.floor
        self._count += 1
        return 1 << number

    def floors(self, chosen: int, blocks: _Numbers) -> _Numbers:
        """Return until when everything that each of some blocks did is part of a set of releases."""
        table = self._tables.get(chosen)
        if table is None:
            if len(self._tables) >= _REMEMBERED_SETS:
                self._tables.clear()
            content = chosen.to_bytes(-(-chosen.bit_length() // 8), "little")
            bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), bitorder="little")
            numbers = np.flatnonzero(bits)
            # One more, for all blocks that have released nothing of the set.
            table = np.zeros(int(self._blocks[numbers].max()) + 2, dtype=np.int64)
            np.maximum.at(table, self._blocks[numbers], self._floors[numbers])
            self._tables[chosen] = table
        return np.asarray(table[np.minimum(blocks, len(table) - 1)])


class Knowledge:
    """What the threads of one batch have fenced, and what its warps have acquired.

    Args:
        releases: Those of the launch.
        first: How many blocks of the launch ran in batches before.
        blocks: Clusters of the batch, which a block by itself also is. What is released is released of a
            cluster: the numbers of blocks in `Releases` are those of clusters then.
        warps: Warps of a cluster.
        of_cluster: Blocks of a cluster.
    """

    def __init__(self, releases: Releases, first: int, blocks: int, warps: int, of_cluster: int = 1) -> None:
        self.releases = releases
        self.first = first // of_cluster
        self.shape = (blocks, warps, WARP)
        self._first_block, self._block_warps = first, warps // of_cluster
        self._held = [0] * (blocks * warps)
        #: Blocks, and clusters, whose warps may have acquired different releases.
        self._unshared: set[int] = set()
        self._unshared_clusters: set[int] = set()
        #: Until when what each thread did is fenced for everybody, and for its own block if that is more.
        self._fenced: list[_Numbers] = [np.zeros(self.shape, dtype=np.int64)] * 2
        #: The last release of each warp, and the set that holds it alone: for everybody, for its block.
        self._last: list[dict[int, tuple[_Release, int]]] = [{}, {}]

    def fence(self, lanes: Bools, now: int, limits: Limits, near: bool) -> None:
        """Some threads execute a fence, for their own block alone if it is `near`."""
        if near and self._fenced[0] is self._fenced[1]:
            self._fenced[1] = self._fenced[0].copy()
        levels = [self._fenced[1]] if near else self._fenced[: 1 + self._apart]
        for block in np.flatnonzero(lanes.any(axis=(1, 2))).tolist():
            before = limits(block, lanes[block], now)
            for fenced in levels:
                np.maximum(fenced[block], before, out=fenced[block])

    @property
    def fenced(self) -> _Numbers:
        """Until when what each thread did is fenced for everybody: shape (clusters, warps, 32)."""
        return self._fenced[0]

    @property
    def _apart(self) -> bool:
        """Whether some fences reached only their own block."""
        return self._fenced[0] is not self._fenced[1]

    def share(self, complete: Bools | None) -> None:
        """At a barrier of all their threads, the warps of a block tell each other what they acquired."""
        for block in [b for b in self._unshared if complete is None or complete[b]]:
            self._unshared.discard(block)
            self._share(range(block * self._block_warps, (block + 1) * self._block_warps))

    def share_in_clusters(self, complete: Bools) -> None:
        """At a barrier of their clusters, the warps of each tell each other what they acquired."""
        for cluster in [c for c in self._unshared_clusters if complete[c]]:
            self._unshared_clusters.discard(cluster)
            self._share(range(cluster * self.shape[1], (cluster + 1) * self.shape[1]))

    def _share(self, warps: range) -> None:
        together = self._union(warps)
        for warp in warps:
            self._held[warp] = together

    def share_some(self, sources: Bools, targets: Bools) -> None:
        """At a barrier of some warps, the `targets` learn what the `sources` acquired: (clusters, warps)."""
        sources, targets = (warps.reshape(-1, self._block_warps) for warps in (sources, targets))
        for block in self._unshared:
            start = block * self._block_warps
            together = self._union(start + int(w) for w in np.flatnonzero(sources[block]))
            for warp in np.flatnonzero(targets[block]).tolist():
                self._held[start + warp] |= together

    def _union(self, warps: Any) -> int:
        together = 0
        for warp in warps:
            together |= self._held[warp]
        return together

    def signal(
        self,
        variables: dict[int, Variable],
        place: _Numbers,
        threads: _Numbers,
        moment: int,
        limits: Limits,
        *,
        reads: bool,
        writes: bool,
    ) -> None:
        """Threads of this batch use variables, in this order; see `ThreadOrder.signal`."""
        fenced = np.asarray(self._fenced[1].any(axis=(1, 2))) if writes else None
        if not variables and (fenced is None or not fenced.any()):
            return
        stored: set[int] = set()
        for warp, (places, lanes) in self._by_warp(place, threads):
            block = warp // self.shape[1]
            published = (0, 0)
            if fenced is not None and fenced[block]:
                published = self._publish(warp, lanes, moment, limits)
            # Neighbours are mostly used alike: what is true of one is true of the next.
            before: Variable | None = None
            after: Variable | None = None
            held = -1
            for where in places:
                variable = variables.get(where)
                if variable is not None and reads:
                    if variable is not before:
                        self._acquire(warp, variable)
                elif variable is not None and where not in stored:
                    del variables[where]
                    variable = None
                if published[1]:
                    if after is None or variable is not before or self._held[warp] is not held:
                        held = self._held[warp]
                        after = self._published(warp, variable, published)
                    variables[where] = after
                before = variable
            stored.update(places)

    def _published(self, warp: int, variable: Variable | None, published: tuple[int, int]) -> Variable:
        """Return what a variable hands on after a warp's strong write, which publishes two sets."""
        held, home = self._held[warp], self._home(warp)
        far, near = (variable.far, variable.near) if variable is not None else (0, 0)
        if variable is None or variable.block != home:
            near = 0
        if published[0]:
            far |= published[0] | held
        return Variable(far, near | published[1] | held, home)

    def _by_warp(self, place: _Numbers, threads: _Numbers) -> list[tuple[int, tuple[list[int], _Numbers]]]:
        """Return the places that each warp uses and its threads, warps in the order in which they come."""
        warps = threads // WARP
        starts = np.flatnonzero(np.append(True, warps[1:] != warps[:-1]))
        ends = np.append(starts[1:], len(warps))
        return [
            (int(warps[a]), (list(dict.fromkeys(place[a:b].tolist())), threads[a:b]))
            for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def _home(self, warp: int) -> int:
        """Return the number, in the launch, of a warp's block."""
        return self._first_block + warp // self._block_warps

    def _acquire(self, warp: int, variable: Variable) -> None:
        new = variable.far
        if variable.block == self._home(warp):
            new |= variable.near
        held = self._held[warp]
        if held | new != held:
            # Equal sets are one object, so that their tables are found.
            self._held[warp] = new if held | new == new else held | new
            self._unshared.add(warp // self._block_warps)
            self._unshared_clusters.add(warp // self.shape[1])

    def _publish(self, warp: int, threads: _Numbers, moment: int, limits: Limits) -> tuple[int, int]:
        """Return what a warp's strong write publishes now, to everybody and to its own block, as sets."""
        block, inside = divmod(warp, self.shape[1])
        members = threads - block * self.shape[1] * WARP
        lanes = np.zeros(self.shape[1:], dtype=np.bool_)
        lanes[inside, members % WARP] = True
        ordered = limits(block, lanes, moment)
        far = self._new(0, warp, np.minimum(self._fenced[0][block], ordered), moment, members)
        if not self._apart:
            return far, far
        return far, self._new(1, warp, np.minimum(self._fenced[1][block], ordered), moment, members)

    def _new(self, level: int, warp: int, upto: _Numbers, moment: int, members: _Numbers) -> int:
        upto = upto.reshape(-1)
        if not upto.any():
            return 0
        last = self._last[level].get(warp)
        if last is None or not np.array_equal(last[0].upto, upto):
            release = _Release(upto, int(upto.min()))
            block = self.first + warp // self.shape[1]
            last = self._last[level][warp] = release, self.releases.add(block, release)
        last[0].signals[moment] = members
        return last[1]

    def covers(
        self, warps: _Numbers, blocks: _Numbers, threads: _Numbers, kinds: _Numbers, moments: _Numbers
    ) -> Bools:
        """Return whether warps of the batch have acquired what threads of any block did at these moments.

        Args:
            warps: Who asks: the number of each warp in the batch.
            blocks: The block that did something, by its number in the launch.
            threads: Which thread of it.
            kinds: 0 if it was that thread alone, 1 if others of its warp too, 2 if others of its block, 3 if
                others of its cluster.
            moments: When.
        """
        known = np.zeros(len(warps), dtype=np.bool_)
        asking, rows = np.unique(warps, return_inverse=True)
        sets: dict[int, int] = {}
        numbers = [sets.setdefault(self._held[warp], len(sets)) for warp in asking.tolist()]
        of_set = np.array(numbers, dtype=np.int64)[rows]
        by_set = np.argsort(of_set, kind="stable")
        ends = np.cumsum(np.bincount(of_set, minlength=len(sets)))
        for (held, number), end in zip(sets.items(), ends.tolist(), strict=True):
            if not held:
                continue
            asked = by_set[ends[number - 1] if number else 0 : end]
            sure = moments[asked] < self.releases.floors(held, blocks[asked])
            known[asked[sure]] = True
            rest = asked[~sure]
            for block in np.unique(blocks[rest]).tolist():
                part = rest[blocks[rest] == block]
                known[part] = self._released(held, block, threads[part], kinds[part], moments[part])
        return known

    def _released(
        self, held: int, block: int, threads: _Numbers, kinds: _Numbers, moments: _Numbers
    ) -> Bools:
        known = np.zeros(len(threads), dtype=np.bool_)
        releases = self.releases.of_block.get(block, {})
        for number in reversed(releases):
            if not held >> number & 1:
                continue
            release, alone = releases[number], kinds == 0
            upto = release.upto[threads]
            if not alone.all():
                of_warp = release.upto.reshape(-1, WARP).min(axis=1)[threads // WARP]
                size = self._block_warps * WARP
                of_block = release.upto.reshape(-1, size).min(axis=1)[threads // size]
                upto = np.select([alone, kinds == 1, kinds == 2], [upto, of_warp, of_block], release.floor)
            known |= moments < upto
            for when in set(release.signals).intersection(moments[~known].tolist()):
                known |= alone & (moments == when) & np.isin(threads, release.signals[when])
            if known.all():
                break
        return known
