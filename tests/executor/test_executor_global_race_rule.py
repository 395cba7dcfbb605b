# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The detector of races on global memory against the rule, applied to each pair of accesses.

Two threads may not touch the same byte unless both only read, both are strong with a scope that holds both
and touch the same bytes, a barrier of their block or `__syncwarp` of their warp lies between, or both store
the same.
"""

from dataclasses import dataclass

import numpy as np
from each import each

from gpuprof.executor import KernelFault
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.accesses import Access as SharedAccess
from gpuprof.executor.memory.accesses import Signals
from gpuprof.executor.memory.global_accesses import Manner, MemoryOperation
from gpuprof.executor.memory.global_memory import GlobalMemory, moved_dtype
from gpuprof.executor.observers.global_races import GlobalRaces

BYTES = 64
BLOCKS, WARPS = 2, 2
#: Few threads, so that they meet.
LANES = (0, 1, 31)
STRONG = (Manner.STRONG_READ, Manner.STRONG_WRITE)


@dataclass
class Access:
    """What one thread did, and when; `word` is what it stored."""

    time: int
    manner: Manner
    thread: int
    first: int
    size: int
    word: int

    def meets(self, other: "Access") -> bool:
        """Whether both touch a byte."""
        return self.first < other.first + other.size and other.first < self.first + self.size


class History:
    """Random accesses of two batches of blocks, told to a detector until two of them race."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        memory = GlobalMemory()
        self.buffer = memory.allocate(np.zeros(BYTES // 4, np.uint32), "x")
        self.found: list[KernelFault] = []
        self.races = GlobalRaces([self.buffer], "k", lambda n: ((n, 0, 0),) * 2, releases=bool(seed % 2))
        self.races.report = self.found.append
        self.shadow = self.races.shadows[self.buffer.address]
        self.past: list[Access] = []
        #: When each block, and each warp, synchronised last.
        self.barriers: dict[int, int] = {}
        self.syncs: dict[int, int] = {}

    def play(self) -> tuple[set[tuple[int, int]], list[KernelFault]]:
        """The pairs of times and accesses that race by the rule, and what the detector found."""
        racing: set[tuple[int, int]] = set()
        for batch in range(2):
            self.order = self.races.order(batch * BLOCKS, BLOCKS, WARPS)
            for step in range(1, 25):
                time = batch * 100 + step
                if self.rng.random() < 0.3:
                    self._synchronise(time, batch)
                    continue
                accesses, mask = self._draw(time, batch)
                racing = self._racing(accesses)
                if racing and self.rng.random() < 0.9:
                    racing = set()
                    continue  # most are left out, so that a history gets long
                self._tell(accesses, mask)
                self.past += accesses
                if racing:
                    self.races.finish()
                    return racing, self.found
        self.races.finish()
        return racing, self.found

    def _synchronise(self, time: int, batch: int) -> None:
        if self.rng.random() < 0.5:
            complete = self.rng.random(BLOCKS) < 0.7
            self.order.synchronise(SharedAccess.MEET, Signals().of(complete[:, None, None], (0, 0)), 0)
            self.barriers |= {batch * BLOCKS + int(b): time for b in np.flatnonzero(complete)}
            return
        lanes = np.broadcast_to(self.rng.random((BLOCKS, WARPS, 1)) < 0.5, (BLOCKS, WARPS, 32))
        self.order.synchronise(SharedAccess.SYNCWARP, Signals().of(lanes, (0, 0)), 0)
        for block, warp in np.argwhere(lanes[..., 0]):
            self.syncs[(batch * BLOCKS + int(block)) * WARPS + int(warp)] = time

    def _draw(self, time: int, batch: int) -> tuple[list[Access], Mask]:
        manner = (Manner.READ, Manner.WRITE, Manner.STRONG_READ, Manner.STRONG_WRITE, Manner.NEAR_WRITE)[
            self.rng.choice(5, p=[0.3, 0.4, 0.1, 0.1, 0.1])
        ]
        size = int(self.rng.choice([4, 4, 4, 8, 2]))
        lanes = np.zeros((BLOCKS, WARPS, 32), dtype=bool)
        if self.rng.random() < 0.2:
            lanes[:] = True
        else:
            lanes[:, :, LANES] = self.rng.random((BLOCKS, WARPS, len(LANES))) < 0.3
            lanes[self.rng.integers(BLOCKS), self.rng.integers(WARPS), 0] = True
        shape = (
            tuple(int(self.rng.choice([1, n])) for n in (BLOCKS, WARPS, 32)) if lanes.all() else lanes.shape
        )
        self.index = self.rng.integers(BYTES // size, size=shape)
        self.values = np.full((1, 1, 1), int(self.rng.integers(1, 3)) * 0x01010101, np.uint64)
        places = np.broadcast_to(self.index, lanes.shape)
        word = int(self.values[0, 0, 0])
        accesses = []
        for block, warp, lane in np.argwhere(lanes):
            thread = ((batch * BLOCKS + int(block)) * WARPS + int(warp)) * 32 + int(lane)
            accesses.append(Access(time, manner, thread, int(places[block, warp, lane]) * size, size, word))
        return accesses, Mask(lanes, BLOCKS, WARPS)

    def _tell(self, accesses: list[Access], mask: Mask) -> None:
        one = accesses[0]
        if one.manner in (Manner.READ, Manner.STRONG_READ):
            self.shadow.read(
                self.buffer, MemoryOperation(self.order, self.index, mask, one.size, one.time, one.manner)
            )
        elif one.manner is Manner.NEAR_WRITE or (one.manner is Manner.STRONG_WRITE and one.time % 2):
            place = np.array([access.first // one.size for access in accesses])
            who = np.array([access.thread for access in accesses])
            updated = MemoryOperation(self.order, place, None, one.size, one.time, one.manner, by=who)
            self.shadow.update(self.buffer, updated)
        else:
            values = (self.values & (1 << 8 * one.size) - 1 if one.size < 8 else self.values).astype(
                f"u{one.size}"
            )
            if one.size == 8:
                values = values | values << np.uint64(32)
            stored = values.view(moved_dtype(one.size))
            told = MemoryOperation(self.order, self.index, mask, one.size, one.time, one.manner)
            self.shadow.write(self.buffer, told, stored)
            if one.manner is Manner.WRITE:
                place = np.array([access.first // one.size for access in accesses])
                self.buffer.store(place, stored.reshape(-1)[0], one.size)

    def _racing(self, accesses: list[Access]) -> set[tuple[int, int]]:
        return {
            (new.time, old.time)
            for new in accesses
            for old in (*self.past, *accesses)
            if new.meets(old) and self._races(new, old)
        }

    def _races(self, new: Access, old: Access) -> bool:
        if new.thread == old.thread or not (new.manner.writes or old.manner.writes):
            return False
        block, warp = new.thread // (32 * WARPS), new.thread // 32
        same_block = block == old.thread // (32 * WARPS)
        if same_block and old.time < self.barriers.get(block, -1):
            return False
        if warp == old.thread // 32 and old.time < self.syncs.get(warp, -1):
            return False
        if Manner.WRITE is new.manner is old.manner:
            return new.word != old.word
        strong = (*STRONG, Manner.NEAR_WRITE) if same_block else STRONG
        return not (new.manner in strong and old.manner in strong and new.size == old.size)


@each(seed=range(120))
def test_detector_finds_what_the_rule_finds(seed):
    racing, found = History(seed).play()
    assert bool(racing) == bool(found)
    if found:
        other_line = found[0].detail.split(" in line ")[1].split()[0].strip(",")
        assert (found[0].source_line, int(other_line)) in racing
