# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Find shared-memory races, reads of what nobody wrote, and reads of copies still in flight.

Between two barriers, two threads may not touch the same byte unless both only read, both are atomic, or both
write the same value. That warps run in lockstep here excuses nothing, since CUDA does not promise it; only
`__syncwarp` orders the threads of a warp.

Accesses are logged as they happen and judged at the next barrier. A loop logs the same accesses again and
again, so a verdict is remembered: the log of an interval, from the same state, need not be judged twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import Bools, first_true
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.accesses import (
    ORDERED,
    UNORDERED,
    Access,
    Entry,
    Hit,
    Owners,
    Signal,
    Touch,
    first_hit,
    name_of,
    warp_of,
)
from gpuprof.executor.memory.repeated_pieces import RepeatedPieces, copied_state, ends_piece
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedMemory, SharedPattern, differ

#: Accesses that several threads may make at once.
TOGETHER = (Access.ATOMIC, Access.MBARRIER)


@dataclass(frozen=True)
class Verdict:
    """Something wrong: the line, the position (block, warp, lane), the byte, and what happened."""

    kind: FaultKind
    line: int
    position: tuple[int, int, int]
    address: int
    detail: str


class RaceDetector:
    """Judges the shared-memory accesses of one batch of blocks.

    All accesses are multiples of `granule` bytes, and aligned. `interval` keeps track between two barriers;
    by default nothing but barriers orders accesses. `recorded` accesses were logged so far, signals apart.
    """

    def __init__(
        self,
        blocks: int,
        size: int,
        granule: int,
        report: Callable[[Verdict], None],
        interval: "type[Interval] | None" = None,
        layout: ClusterLayout = LONE_BLOCK,
    ) -> None:
        self.blocks = blocks
        self.granule = granule
        self.report = report
        self.layout = layout
        self.recorded = 0
        #: Whether accesses are still looked at.
        self.judges = True
        self.log: list[Entry] = []
        #: What is known of pieces of the log; and the state that is reached: its number, or the interval.
        self._pieces: RepeatedPieces[Interval] = RepeatedPieces()
        self._reached = 0
        self._interval: Interval | None = (interval or Interval)(size // granule + 1, granule, report, layout)

    def assume_written(self, start: int, count: int) -> None:
        """Say before anything is logged that some bytes hold something already."""
        assert self._interval is not None
        self._interval.written[:, start // self.granule : (start + count) // self.granule] = True

    def record(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern | Signal,
        line: int,
        changed: Bools | None = None,
    ) -> None:
        """Log one access."""
        self.recorded += not isinstance(pattern, Signal)
        if not self.judges:
            return
        self.log.append(Entry(access, pattern, line, changed))
        if ends_piece(self.log):
            self._judge_piece()

    def record_reads(self, entries: list[Entry]) -> None:
        """Log several reads that no other access comes between."""
        self.recorded += len(entries)
        if not self.judges:
            return
        self.log += entries
        if ends_piece(self.log):
            self._judge_piece()

    def overwritten(
        self, shared: SharedMemory, pattern: SharedPattern, values: Lanes, line: int
    ) -> Verdict | None:
        """Return what is wrong where a lane's value was overwritten by another lane of its access."""
        if not pattern.collides:
            return None
        lost = differ(shared.load(pattern), values) & pattern.mask.lanes
        if not lost.any():
            return None
        position = first_true(lost)
        where, start = self.layout.byte(int(np.broadcast_to(pattern.address, lost.shape)[position]))
        detail = f"writes {where}, and so does another thread, with another value"
        return Verdict(FaultKind.SHARED_RACE, line, position, start, detail)

    def dismiss(self) -> None:
        """From now on judge nothing: what happened so far is judged, what is going on is not."""
        self.barrier()
        self.judges = False

    def barrier(self, released: Bools | None = None) -> None:
        """End the interval: of all blocks, or of those that are true in `released`, of shape (blocks,)."""
        if not self.judges:
            return
        if released is not None:
            self._judge().forget(released)
        elif self._interval is not None:
            interval = self._judge()
            interval.settle()
            self._reached, self._interval = self._pieces.number(interval), None
        else:
            self._look_up(barrier=True)

    def _judge(self) -> "Interval":
        """Judge the log so far without looking it up; return the interval, to be changed."""
        if self._interval is None:
            self._interval = self._pieces.state(self._reached)
        log, self.log = self.log, []
        self._interval.replay(log, self.blocks)
        return self._interval

    def _judge_piece(self) -> None:
        """Judge the log so far, in an interval that goes on."""
        if self._pieces.hopeless:
            self._judge()
            return
        if self._interval is not None:
            self._reached, self._interval = self._pieces.number(self._interval), None
        self._look_up()

    def _look_up(self, *, barrier: bool = False) -> None:
        log, self.log = self.log, []
        self._reached = self._pieces.after(self._reached, log, self.blocks, barrier=barrier)


class Interval:
    """Shared memory between two barriers: who read and who wrote each granule, so far.

    Arrays have shape (1, granules) while all blocks do the same, else (blocks, granules).
    """

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

    def __init__(
        self, granules: int, granule: int, report: Callable[[Verdict], None], layout: ClusterLayout
    ) -> None:
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
            for name, array in arrays.items():
                setattr(self, name, array)
        digest = blake2b(repr(self.written.shape).encode())
        for array in arrays.values():
            digest.update(array.data)
        return digest.digest(), sum(array.nbytes for array in arrays.values())

    def copied(self) -> Self:
        """Return an interval of its own in the same state."""
        return copied_state(self)

    def forget(self, released: Bools) -> None:
        """Blocks that are true in `released` passed a barrier; the others did not."""
        self.widen(len(released))
        for name in self.PASSING:
            getattr(self, name)[released] = 0

    def settle(self) -> None:
        """All passed a barrier."""
        for name in self.PASSING:
            getattr(self, name)[...] = 0

    def replay(self, log: list[Entry], blocks: int) -> None:
        """Go through the accesses in order and report the first that is wrong."""
        for entry in log:
            if entry.pattern.leading > 1:
                self.widen(blocks)
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Judge one entry and remember it."""
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
        """Judge a read."""
        self.require_landed(touch, "reads {0}")
        self.require_written(touch, "reads {0}")
        self.mark(touch, "reader")

    def require_written(self, touch: Touch, text: str) -> None:
        """Report a read of what another thread wrote without order, or nobody; `text` says what reads."""
        for name in ("writer", "updater"):
            if hit := self.conflict(touch, name):
                met = touch.at(getattr(self, name), hit)
                wrote = f"{text}, which {name_of(met, self.layout)} wrote"
                self.found(FaultKind.SHARED_RACE, touch, hit, wrote, met=met)
        if hit := first_hit(~touch.held(self.written)):
            self.found(FaultKind.UNINITIALISED_SHARED, touch, hit, f"{text}, which was never written")

    def write(self, touch: Touch) -> None:
        """Judge a write, an atomic operation, the start of a copy, or an operation on an mbarrier."""
        access, changed = touch.entry.access, touch.entry.changed
        self.require_landed(touch, "starts a copy to {0}" if access is Access.COPY else "writes {0}")
        if hit := self.conflict(touch, "reader"):
            who = self.name_at(touch, "reader", hit)
            self.found(FaultKind.SHARED_RACE, touch, hit, f"writes {{0}}, which {who} read")
        together = access in TOGETHER
        for name in ("writer",) if together else ("writer", "updater"):
            hit = self.conflict(touch, name)
            if hit and access is Access.WRITE and changed is not None:
                self.values_matter = True
                hit = self.conflict(touch, name, changed)
            if hit:
                who = self.name_at(touch, name, hit)
                text = f"writes {{0}}, where {who} wrote another value"
                if access is Access.MBARRIER:
                    text = f"uses the mbarrier at {{0}}, which {who} wrote"
                self.found(FaultKind.SHARED_RACE, touch, hit, text, changed)
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

    def name_at(self, touch: Touch, name: str, hit: Hit) -> str:
        """Return what a message calls who touched the granule of a hit, by the table of that name."""
        return name_of(touch.at(getattr(self, name), hit), self.layout)

    def found(
        self,
        kind: FaultKind,
        touch: Touch,
        hit: Hit,
        text: str,
        changed: Bools | None = None,
        met: int = 0,
    ) -> None:
        """Report what is wrong at a hit; `text` says it, with {0} for the byte, and `met` is who else."""
        position, address = touch.position(hit, met)
        if changed is not None and len(changed) > 1 and len(self.written) == 1:
            # All blocks do the same, but not with the same values: name one whose values differ.
            lanes = np.broadcast_to(changed, (len(changed), touch.warps, 32))
            position = (int(lanes[:, position[1], position[2]].argmax()), *position[1:])
        since = " since the last barrier" if kind is FaultKind.SHARED_RACE else ""
        where, address = self.layout.byte(address)
        self.report(Verdict(kind, touch.entry.line, position, address, text.format(where) + since))
