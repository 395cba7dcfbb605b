# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Listen to accesses to shared memory, and have them judged (`races`) at barriers, piece by piece.

In a loop the same ones come again and again: what a piece of the log led to, from the same state, is
remembered, and not judged twice.
"""

import numpy as np

from gpuprof.executor.faults import FaultKind, SharedByte, race_clause
from gpuprof.executor.lanes.masks import Bools, first_true
from gpuprof.executor.lanes.scalars import Lanes, differ
from gpuprof.executor.memory.accesses import Access, Entry, Listener, Signal
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedMemory, SharedPattern, overwritten
from gpuprof.executor.observers.races import OTHER_VALUE, Interval, Report

#: Entries that are judged together, once a wait follows them, and without one.
LEAST_PIECE, _LONGEST_PIECE = 64, 1024
#: Bytes of states that are kept.
_KEPT_BYTES = 128 << 20


class RaceDetector(Listener):
    """Judges the shared-memory accesses of one batch of blocks.

    `interval` keeps track between two barriers. What is wrong in whatever order it is told to `refuse`.
    """

    def __init__(self, shared: SharedMemory, interval: Interval, refuse: Report) -> None:
        self._shared, self._interval, self._refuse = shared, interval, refuse
        self.layout = interval.layout
        self.log: list[Entry] = []
        #: What pieces of the log led to, by the state before, whether a barrier ended them, and accesses.
        self._known: dict[object, tuple[Interval, object]] = {}
        self._bytes = 0
        #: Of the state that is reached, which is not changed any more; None if it is not known.
        self._digest: object = None

    def assume_written(self, part: slice) -> None:
        """Say before anything is logged that some bytes hold something already."""
        granule = self._interval.granule
        self._interval.written[:, part.start // granule : part.stop // granule] = True

    def record(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern | Signal,
        line: int,
        changed: Bools | None = None,
    ) -> None:
        self.log.append(Entry(access, pattern, line, changed))
        # At a place that a loop comes by once in each iteration, if there is one.
        length = len(self.log)
        if (length >= LEAST_PIECE and access in (Access.ACQUIRE, Access.MEET)) or length >= _LONGEST_PIECE:
            self._judge()

    def touch(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern,
        line: int,
        values: Lanes | None = None,
    ) -> None:
        changed = None
        if values is not None and isinstance(pattern, SharedPattern):
            if access is Access.WRITE:
                changed = differ(self._shared.load(pattern), values)
            if access in (Access.WRITE, Access.LANDED) and pattern.collides:
                self._judge_collisions(pattern, values, line)
        self.record(access, pattern, line, changed)

    def synchronise(self, access: Access, signal: Signal, line: int) -> None:
        if access is Access.MEET and not self.layout.several and signal.lanes.all():
            self._judge(barrier=True)
        else:
            self.record(access, signal, line)

    def _judge_collisions(self, pattern: SharedPattern, values: Lanes, line: int) -> None:
        """Report where the value that a lane is about to store is overwritten by another lane."""
        lost = overwritten(pattern, values)
        if lost.any():
            position = first_true(lost)
            address = int(np.broadcast_to(pattern.address, lost.shape)[position])
            where, start = self.layout.byte(address)
            detail = f"writes {where}, {race_clause('another thread', 'writes', line, OTHER_VALUE)}"
            self._refuse(FaultKind.SHARED_RACE, detail, line, position, SharedByte(start, line))

    def settle(self) -> None:
        self._judge(barrier=True)

    def _judge(self, *, barrier: bool = False) -> None:
        """Judge the log so far, perhaps ended by a barrier, or go on to the state to which it led before."""
        log, self.log = self.log, []
        before = self._digest or self._interval.normalise()[0]
        key = before, barrier, tuple((entry.access, entry.pattern.serial) for entry in log)
        if key in self._known:
            self._interval, self._digest = self._known[key]
            return
        state = self._interval = self._interval.copied()
        state.values_matter = False
        state.replay(log)
        if barrier:
            state.settle()
        self._digest, size = state.normalise()
        if not state.values_matter:
            self._bytes += size
            if self._bytes > _KEPT_BYTES:
                self._known, self._bytes = {}, size
            self._known[key] = state, self._digest
