# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Accesses that are no data race and yet in nobody's order: strong ones to one place, one of them a write.

Which of the two comes first is the card's choice. Often it does not matter, as with flags, tickets and locks;
where it does, a kernel's result depends on it.
"""

from collections.abc import Set

import numpy as np
from msgspec import Struct

from gpuprof.executor.faults import Index
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.memory.global_accesses import Manner, MemoryOperation, Named
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.moments import Numbers, moment_of, thread_of
from gpuprof.executor.memory.shared_memory import SharedBlocks

#: Meetings that are kept, at most.
_KEPT = 1 << 14


class AccessPair(Struct, frozen=True):
    """Two accesses of different warps to one place, in the order of one run.

    `line` and `thread` are of the later access; `detail` is a clause with that thread as its subject. One
    that `waits` is repeated until it finds what it waits for.
    """

    launch: int
    line: int
    thread: tuple[Index, Index]
    earlier: tuple[Index, Index]
    detail: str
    waits: bool
    reads: bool


class OpenMeetings:
    """Those of the launches of one case.

    `any` leaves out those that wait and are waited for, and atomic operations among themselves. `luck` tells
    of the first load from shared memory, not of one that waits, that finds what the card's order of lanes
    decides.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self.keeps = keeps
        self.any, self.luck = False, ""
        self.kept: list[AccessPair] = []
        self._launches = 0
        self._named: Named = lambda thread: ((thread, 0, 0), (0, 0, 0))
        self._polled: Set[int] = frozenset()

    def begin(self, named: Named, polled: Set[int]) -> None:
        """A launch begins.

        `polled` are the lines of loads that are repeated until they find what they wait for.
        """
        self._launches += 1
        self._named, self._polled = named, polled

    def wants(self) -> bool:
        """Tell whether another meeting would tell anything new."""
        return len(self.kept) < _KEPT if self.keeps else not self.any

    def note_luck(self, line: int, stored: int, thread: int, *, block: bool = False) -> None:
        """Note that nothing orders a load and the store, in line `stored`, of another lane of its warp.

        Or of another `block`.
        """
        if line in self._polled or self.luck:
            return
        index, number = self._named(thread)
        whose, order = ("block", "__threadfence") if block else ("lane of its warp", "__syncwarp")
        self.luck = (
            f"undefined: line {line} reads as volatile what another {whose} stores in line {stored}"
            f" (thread {index} of block {number}), and no {order} orders the two"
        )

    def add(
        self,
        buffer: Buffer | SharedBlocks,
        one: MemoryOperation,
        who: Numbers,
        stamps: Numbers,
        start: Numbers,
        did: Manner,
        *,
        reads: bool,
    ) -> None:
        """Note that threads meet at bytes of a buffer what stamps tell, with nothing to order them."""
        timeline = one.order.timeline
        earlier, lately, then = thread_of(stamps), timeline.lines[one.moment], moment_of(stamps)
        apart = earlier // WARP != who // WARP
        if not self.keeps:
            before = {timeline.lines[one] for one in np.unique(then[apart]).tolist()}
            self.any |= lately not in self._polled and not before <= self._polled
            return
        for i in np.flatnonzero(apart).tolist():
            if self.wants():
                line, names = timeline.lines[int(then[i])], self._named(int(earlier[i]))
                other_one = f"thread {names[0]} of block {names[1]} {did.value} it in line {line}"
                place, _ = buffer.place(int(start[i]))
                detail = f"{one.manner.value} {place} after {other_one}, and nothing orders the two"
                waits = not self._polled.isdisjoint((line, lately))
                later = self._named(int(who[i]))
                self.kept.append(AccessPair(self._launches - 1, lately, later, names, detail, waits, reads))
