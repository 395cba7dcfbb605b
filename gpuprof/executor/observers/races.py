# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Find shared-memory races, reads of what nobody wrote, and reads of copies still in flight.

Between two barriers, two threads may not touch the same byte unless both only read, both are atomic, or both
write the same value. That warps run in lockstep here excuses nothing, since CUDA does not promise it; only
`__syncwarp` orders the threads of a warp.

Accesses are logged as they happen and judged at the next barrier. In a loop the same ones come again and
again: what a piece of the log led to, from the same state, is remembered, and not judged twice.
"""

import copy
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, SharedByte
from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import Bools, first_true
from gpuprof.executor.lanes.scalars import Lanes, differ
from gpuprof.executor.memory.accesses import Access, Entry, Listener, Signal
from gpuprof.executor.memory.shared_memory import (
    ChunkPattern,
    SharedMemory,
    SharedPattern,
    overwritten,
)
from gpuprof.executor.observers.touches import (
    ORDERED,
    UNORDERED,
    Hit,
    Owners,
    Touch,
    first_hit,
    is_thread,
    name_of,
    warp_of,
)

#: Accesses that several threads may make at once.
TOGETHER = (Access.ATOMIC, Access.MBARRIER)
#: Entries that are judged together, once a wait follows them, and without one.
LEAST_PIECE, _LONGEST_PIECE = 64, 1024
#: Bytes of states that are kept.
_KEPT_BYTES = 128 << 20

#: Takes something wrong: what happened, the line, the position (block, warp, lane), and the byte.
Report = Callable[[FaultKind, str, int, tuple[int, int, int], SharedByte], None]


class RaceDetector(Listener):
    """Judges the shared-memory accesses of one batch of blocks.

    All accesses are multiples of `granule` bytes, and aligned. `interval` keeps track between two barriers.
    What is wrong in whatever order it is told to `refuse`.
    """

    def __init__(
        self,
        shared: SharedMemory,
        granule: int,
        report: Report,
        interval: "type[Interval]",
        layout: ClusterLayout = LONE_BLOCK,
        refuse: Report | None = None,
    ) -> None:
        self.blocks = len(shared.content)
        self.granule = granule
        self.report = report
        self.layout = layout
        self._shared, self._refuse = shared, refuse or report
        self.log: list[Entry] = []
        self._hears_signals = interval.HEARS_SIGNALS
        #: What pieces of the log led to, by the state before, whether a barrier ended them, and accesses.
        self._known: dict[object, tuple[Interval, bytes]] = {}
        self._bytes = 0
        #: Of the state that is reached, which is not changed any more; empty if it is not known.
        self._digest = b""
        self._interval = interval(shared.size // granule + 1, granule, report, layout)

    def assume_written(self, part: slice) -> None:
        """Say before anything is logged that some bytes hold something already."""
        self._interval.written[:, part.start // self.granule : part.stop // self.granule] = True

    def record(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern | Signal,
        line: int,
        changed: Bools | None = None,
    ) -> None:
        """Log one access, or a signal."""
        self.log.append(Entry(access, pattern, line, changed))
        # At a place that a loop comes by once in each iteration, if there is one.
        length = len(self.log)
        if (length >= LEAST_PIECE and access is Access.ACQUIRE) or length >= _LONGEST_PIECE:
            self._judge()

    def touch(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern,
        line: int,
        values: Lanes | None = None,
    ) -> None:
        """As a listener."""
        changed = None
        if values is not None and isinstance(pattern, SharedPattern):
            if access is Access.WRITE:
                changed = differ(self._shared.load(pattern), values)
            if access in (Access.WRITE, Access.LANDED) and pattern.collides:
                self._judge_collisions(pattern, values, line)
        self.record(access, pattern, line, changed)

    def synchronise(self, access: Access, signal: Signal, line: int) -> None:
        """As a listener."""
        if self._hears_signals:
            self.record(access, signal, line)

    def barrier(self, blocks: Bools | None = None) -> None:
        """As a listener: of blocks of clusters a signal tells."""
        if not self.layout.several:
            self.settle(blocks)

    def _judge_collisions(self, pattern: SharedPattern, values: Lanes, line: int) -> None:
        """Report where the value that a lane is about to store is overwritten by another lane."""
        lost = overwritten(pattern, values)
        if lost.any():
            position = first_true(lost)
            address = int(np.broadcast_to(pattern.address, lost.shape)[position])
            where, start = self.layout.byte(address)
            place = SharedByte(start, self.layout.rank(address))
            detail = f"writes {where}, and so does another thread, with another value"
            self._refuse(FaultKind.SHARED_RACE, detail, line, position, place)

    def settle(self, blocks: Bools | None = None) -> None:
        """End the interval: of all blocks, or of those that are true, of shape (blocks,)."""
        if blocks is None:
            self._judge(barrier=True)
            return
        log, self.log = self.log, []
        self._interval, self._digest = self._interval.copied(), b""
        self._interval.replay(log, self.blocks)
        self._interval.settle(blocks)

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
        state.replay(log, self.blocks)
        if barrier:
            state.settle()
        self._digest, size = state.normalise()
        if not state.values_matter:
            self._bytes += size
            if self._bytes > _KEPT_BYTES:
                self._known, self._bytes = {}, size
            self._known[key] = state, self._digest


class Interval:
    """Shared memory between two barriers: who read and who wrote each granule, so far.

    Arrays have shape (1, granules) while all blocks do the same, else (blocks, granules).
    """

    #: Whether mbarriers and barriers of clusters order anything in it.
    HEARS_SIGNALS: ClassVar[bool] = False
    #: What outlives a barrier: was a granule ever written, and one more than the source line of the copy that
    #: is in flight to it, of whatever kind; 0 where none is.
    LASTING: ClassVar[dict[str, Any]] = {"written": np.bool_, "in_flight": np.int32}
    #: What a barrier settles: who wrote it, who read it, and who did an atomic operation on it.
    PASSING: ClassVar[dict[str, Any]] = {"writer": np.int32, "reader": np.int32, "updater": np.int32}

    written: Bools
    in_flight: NDArray[np.int32]
    writer: Owners
    reader: Owners
    updater: Owners

    def __init__(self, granules: int, granule: int, report: Report, layout: ClusterLayout) -> None:
        self.report = report
        self.granule = granule
        self.layout = layout
        for name, dtype in (self.LASTING | self.PASSING).items():
            setattr(self, name, np.zeros((1, granules), dtype))
        self.values_matter = False

    def normalise(self, *, apart: bool = False) -> tuple[bytes, int]:
        """Bring into a form that is the same for states with the same future; return its digest and bytes.

        Where blocks are `apart`, they are not made one though their granules are alike.
        """
        arrays = {name: getattr(self, name) for name in (*self.LASTING, *self.PASSING)}
        if not apart and all((array == array[:1]).all() for array in arrays.values()):
            arrays = {name: array[:1].copy() for name, array in arrays.items()}
            vars(self).update(arrays)
        digest = blake2b(repr(self.written.shape).encode())
        for array in arrays.values():
            digest.update(array.data)
        return digest.digest(), sum(array.nbytes for array in arrays.values())

    def copied(self) -> Self:
        """Return an interval of its own in the same state."""
        result = copy.copy(self)
        for name, value in vars(self).items():
            if hasattr(value, "copy"):
                setattr(result, name, value.copy())
        return result

    def settle(self, released: Bools | None = None) -> None:
        """Blocks that are true in `released` passed a barrier, and the others did not; all did by default."""
        if released is not None:
            self.widen(len(released))
        for name in self.PASSING:
            getattr(self, name)[... if released is None else released] = 0

    def replay(self, log: list[Entry], blocks: int) -> None:
        """Go through the accesses in order and report the first that is wrong."""
        for entry in log:
            if entry.pattern.leading > 1:
                self.widen(blocks)
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Listener one entry and remember it."""
        if entry.access is Access.SYNCWARP:
            self.order_warps(entry)
            return
        touch = self.touch(entry)
        if entry.access is Access.READ:
            self.read(touch)
        elif entry.access is Access.LANDED:
            touch.put(self.in_flight, 0)
            touch.put(self.written, True)
            self.mark(touch, "writer")
        else:
            self.write(touch)

    def touch(self, entry: Entry) -> Touch:
        """Spread an entry over threads and granules."""
        return Touch(entry, self.granule, len(self.written))

    def conflict(self, touch: Touch, name: str, only: Bools | None = None) -> Hit | None:
        """Return the first granule that another thread touched without order, by the table of that name."""
        return touch.conflict(getattr(self, name), only=only)

    def mark(self, touch: Touch, name: str) -> None:
        """Add threads to those who touched each granule, in the table of that name."""
        touch.put_owner(getattr(self, name))

    def widen(self, blocks: int) -> None:
        """Tell blocks apart from now on."""
        if len(self.written) < blocks:
            for name in (*self.LASTING, *self.PASSING):
                setattr(self, name, np.repeat(getattr(self, name), blocks, axis=0))

    def order_warps(self, entry: Entry) -> None:
        """After __syncwarp, what a warp did before is ordered for its own threads."""
        assert isinstance(entry.pattern, SharedPattern)
        synced = entry.pattern.mask.active_warps[..., 0]
        synced = np.broadcast_to(synced, (len(self.written), entry.pattern.mask.warps))
        rows = np.flatnonzero(synced.any(axis=1))
        for owners in (self.writer, self.reader, self.updater):
            there = owners if len(rows) == len(owners) else owners[rows]
            single = there > 0
            single &= (there < ORDERED) | (there >= UNORDERED)
            # Faster than to look for rows and columns at once.
            row, place = np.divmod(np.flatnonzero(single), single.shape[1])
            block, warp = rows[row], warp_of(there[row, place])
            chosen = synced[block, warp]
            owners[block[chosen], place[chosen]] = ORDERED + warp[chosen]

    def read(self, touch: Touch) -> None:
        """Listener a read."""
        self.require_landed(touch, "reads {0}")
        self.require_written(touch, "reads {0}")
        self.mark(touch, "reader")

    def require_written(self, touch: Touch, text: str) -> None:
        """Report a read of what another thread wrote without order, or nobody; `text` says what reads."""
        for name in ("writer", "updater"):
            if hit := self.conflict(touch, name):
                self.met(touch, hit, name, f"{text}, which {{1}} wrote")
        if hit := first_hit(~touch.held(self.written)):
            self.found(FaultKind.UNINITIALISED_SHARED, touch, hit, f"{text}, which was never written")

    def write(self, touch: Touch) -> None:
        """Listener a write, an atomic operation, the start of a copy, or an operation on an mbarrier."""
        access, changed = touch.entry.access, touch.entry.changed
        self.require_landed(touch, "starts a copy to {0}" if access is Access.COPY else "writes {0}")
        if hit := self.conflict(touch, "reader"):
            self.met(touch, hit, "reader", "writes {0}, which {1} read")
        together = access in TOGETHER
        for name in ("writer",) if together else ("writer", "updater"):
            hit = self.conflict(touch, name)
            if hit and access is Access.WRITE and changed is not None:
                self.values_matter = True
                hit = self.conflict(touch, name, changed)
            if hit:
                text = "writes {0}, where {1} wrote another value"
                if access is Access.MBARRIER:
                    text = "uses the mbarrier at {0}, which {1} wrote"
                self.met(touch, hit, name, text, changed)
        if access is Access.ATOMIC and (hit := first_hit(~touch.held(self.written))):
            text = "changes {0}, which was never written"
            self.found(FaultKind.UNINITIALISED_SHARED, touch, hit, text)
        self.mark(touch, "updater" if together else "writer")
        if access is Access.COPY:
            touch.put(self.in_flight, touch.entry.line + 1)
        else:
            touch.put(self.written, True)

    def require_landed(self, touch: Touch, text: str, spared: Bools | None = None) -> None:
        """Report a place to which a copy is in flight: when it lands, and before or after what, is open.

        Not even the copy's own thread may touch it, nor start another one there. Granules that are `spared`
        do not matter.
        """
        flying = touch.held(self.in_flight)
        if hit := first_hit(flying != 0 if spared is None else (flying != 0) & ~spared):
            text += f", to which the copy that line {int(flying[hit]) - 1} started is still in flight"
            self.found(FaultKind.ASYNC_COPY, touch, hit, text)

    def met(self, touch: Touch, hit: Hit, name: str, text: str, changed: Bools | None = None) -> None:
        """Report a race at a hit; `text` says it, with {0} for the byte and {1} for who else was there.

        That the table of this name tells. Lanes in `changed` found another value than they wrote.
        """
        owner = touch.at(getattr(self, name), hit)
        position, address = touch.position(hit, owner)
        if changed is not None and len(changed) > 1 and len(self.written) == 1:
            # All blocks do the same, but not with the same values: name one whose values differ.
            lanes = np.broadcast_to(changed, (len(changed), touch.warps, 32))
            position = (int(lanes[:, position[1], position[2]].argmax()), *position[1:])
        where, byte = self.layout.byte(address)
        said = f"{text.format(where, name_of(owner, self.layout))} since the last barrier"
        place = SharedByte(byte, self.layout.rank(address), owner - 1 if is_thread(owner) else None)
        self.report(FaultKind.SHARED_RACE, said, touch.entry.line, position, place)

    def found(self, kind: FaultKind, touch: Touch, hit: Hit, text: str) -> None:
        """Report what is wrong at a hit; `text` says it, with {0} for the byte."""
        position, address = touch.position(hit)
        where, byte = self.layout.byte(address)
        place = SharedByte(byte, self.layout.rank(address))
        self.report(kind, text.format(where), touch.entry.line, position, place)
