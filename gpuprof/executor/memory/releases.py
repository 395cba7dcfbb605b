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


@dataclass(frozen=True)
class _Release:
    """One release.

    Attributes:
        floor: Everything that the block did before this moment is released.
        limits: The same for each thread, of shape (threads,), where that is more.
        moment: When the strong write itself happened, and `writers`, the threads that did it.
    """

    floor: int
    limits: NDArray[np.int32] | None
    moment: int
    writers: NDArray[np.int64]


@dataclass
class Variable:
    """What those acquire who read a place in memory: anybody, and threads of block `near` besides."""

    far: int = 0
    near: int = 0
    block: int = -1


@dataclass
class Releases:
    """All releases of one launch.

    Attributes:
        count: How many there are.
        of_block: Those of each block, by their number.
    """

    count: int = 0
    of_block: dict[int, dict[int, _Release]] = field(default_factory=dict)
    _blocks: list[int] = field(default_factory=list)
    _floors: list[int] = field(default_factory=list)
    _tables: dict[int, dict[int, int]] = field(default_factory=dict)

    def add(self, block: int, release: _Release) -> int:
        """Add a release of a block, and return the set that holds it alone."""
        number = self.count
        self.of_block.setdefault(block, {})[number] = release
        self._blocks.append(block)
        self._floors.append(release.floor)
        self.count += 1
        return 1 << number

    def floors(self, chosen: int, blocks: _Numbers) -> _Numbers:
        """Return until when everything that each of some blocks did is part of a set of releases."""
        if chosen not in self._tables:
            if len(self._tables) >= _REMEMBERED_SETS:
                self._tables.clear()
            content = chosen.to_bytes(-(-chosen.bit_length() // 8), "little")
            bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), bitorder="little")
            table: dict[int, int] = {}
            for number in np.flatnonzero(bits).tolist():
                block = self._blocks[number]
                table[block] = max(table.get(block, 0), self._floors[number])
            self._tables[chosen] = table
        table = self._tables[chosen]
        different, which = np.unique(blocks, return_inverse=True)
        return np.array([table.get(block, 0) for block in different.tolist()], dtype=np.int64)[which]


class Knowledge:
    """What the threads of one batch have fenced, and what its warps have acquired."""

    def __init__(self, releases: Releases, first: int, blocks: int, warps: int) -> None:
        self.releases = releases
        self.first = first
        self.shape = (blocks, warps, WARP)
        self._held = [0] * (blocks * warps)
        self._unshared: set[int] = set()
        #: Until when what each thread did is fenced: for everybody, and for its own block.
        self._fenced: list[_Numbers] = [np.zeros(self.shape, dtype=np.int64) for _ in range(2)]
        #: The releases of the present instruction: one for all variables that a thread writes.
        self._made: dict[tuple[int, ...], int] = {}

    def fence(self, lanes: Bools, now: int, limits: Limits, near: bool) -> None:
        """Some threads execute a fence, for their own block alone if it is `near`."""
        for block in np.flatnonzero(lanes.any(axis=(1, 2))).tolist():
            before = limits(block, lanes[block], now)
            for level in (1,) if near else (0, 1):
                fenced = self._fenced[level]
                fenced[block] = np.maximum(fenced[block], before)

    def share(self, complete: Bools | None) -> None:
        """At a barrier of all their threads, the warps of a block tell each other what they acquired."""
        for block in [b for b in self._unshared if complete is None or complete[b]]:
            self._unshared.discard(block)
            warps = range(block * self.shape[1], (block + 1) * self.shape[1])
            together = self._union(warps)
            for warp in warps:
                self._held[warp] = together

    def share_some(self, sources: Bools, targets: Bools) -> None:
        """At a barrier of some warps, the `targets` learn what the `sources` acquired: (blocks, warps)."""
        for block in self._unshared:
            start = block * self.shape[1]
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
        self._made.clear()
        groups: dict[tuple[int, int], list[int]] = {}
        for where, thread in zip(place.tolist(), threads.tolist(), strict=True):
            groups.setdefault((thread // WARP, where), []).append(thread)
        stored: set[int] = set()
        for (warp, where), members in groups.items():
            block = warp // self.shape[1]
            variable = variables.get(where)
            if reads and variable is not None:
                self._acquire(warp, variable)
            if not writes:
                continue
            if not reads and where not in stored:
                stored.add(where)
                variables.pop(where, None)
            if fenced is not None and fenced[block]:
                variable = variables.setdefault(where, Variable())
                self._release(variable, warp, members, moment, limits)

    def _acquire(self, warp: int, variable: Variable) -> None:
        new = variable.far
        if variable.block == self.first + warp // self.shape[1]:
            new |= variable.near
        held = self._held[warp]
        if held | new != held:
            # Equal sets are one object, so that their tables are found.
            self._held[warp] = new if held | new == new else held | new
            self._unshared.add(warp // self.shape[1])

    def _release(
        self, variable: Variable, warp: int, threads: list[int], moment: int, limits: Limits
    ) -> None:
        block = warp // self.shape[1]
        rank = self.first + block
        held = self._held[warp]
        if variable.block != rank:
            variable.block, variable.near = rank, 0
        for level in (0, 1):
            key = (level, *threads)
            if key not in self._made:
                self._made[key] = self._new(level, block, threads, moment, limits)
            if level:
                variable.near |= self._made[key] | held
            else:
                variable.far |= self._made[key] | held

    def _new(self, level: int, block: int, threads: list[int], moment: int, limits: Limits) -> int:
        inside = np.array(threads, dtype=np.int64) - block * self.shape[1] * WARP
        lanes = np.zeros(self.shape[1:], dtype=np.bool_)
        lanes.reshape(-1)[inside] = True
        fenced = self._fenced[level][block]
        if not fenced.any():
            return 0
        upto = np.minimum(fenced, limits(block, lanes, moment)).reshape(-1)
        floor = int(upto.min())
        each = None if (upto == floor).all() else upto.astype(np.int32)
        return self.releases.add(self.first + block, _Release(floor, each, moment, inside))

    def covers(
        self, warps: _Numbers, blocks: _Numbers, threads: _Numbers, kinds: _Numbers, moments: _Numbers
    ) -> Bools:
        """Return whether warps of the batch have acquired what threads of any block did at these moments.

        Args:
            warps: Who asks: the number of each warp in the batch.
            blocks: The block that did something, by its number in the launch.
            threads: Which thread of it.
            kinds: 0 if it was that thread alone, 1 if others of its warp too, 2 if others of its block.
            moments: When.
        """
        known = np.zeros(len(warps), dtype=np.bool_)
        sets: dict[int, list[int]] = {}
        for warp in np.unique(warps).tolist():
            if self._held[warp]:
                sets.setdefault(self._held[warp], []).append(warp)
        for held, members in sets.items():
            asked = np.flatnonzero(np.isin(warps, members))
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
            release = releases[number]
            alone = kinds == 0
            if release.limits is not None:
                upto = release.limits[threads].astype(np.int64)
                if not alone.all():
                    of_warp = release.limits.reshape(-1, WARP).min(axis=1)[threads // WARP]
                    upto = np.where(alone, upto, np.where(kinds == 1, of_warp, release.floor))
                known |= moments < upto
            known |= alone & (moments == release.moment) & np.isin(threads, release.writers)
            if known.all():
                break
        return known
