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
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.sim.faults import FaultKind
from gpuprof.backends.sim.lanes import Bools
from gpuprof.backends.sim.shared_memory import SharedPattern

#: Judge a long interval in pieces, so that the log stays small.
_LOG_LIMIT = 1024

# Who touched a granule in the current interval, as one integer: 0 nobody; 1 … 1024 that thread, plus one; the
# following stand for several threads of one warp, ordered by __syncwarp or not, and of several warps.
_ORDERED = 2000
_UNORDERED = 3000
_SEVERAL_WARPS = -1

Owners = NDArray[np.int32]


class Access(Enum):
    """What an entry of the log did."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"
    COPY = "start of an asynchronous copy"
    LANDED = "end of an asynchronous copy"
    SYNCWARP = "syncwarp"


@dataclass(frozen=True)
class Entry:
    """One logged access.

    Attributes:
        access: What was done.
        pattern: Where and by whom.
        line: Source line.
        changed: For a write, whether each lane found another value than it wrote: broadcasts to the batch.
    """

    access: Access
    pattern: SharedPattern
    line: int
    changed: Bools | None = None


@dataclass(frozen=True)
class Verdict:
    """Something wrong: the line, the position (block, warp, lane), the byte, and what happened."""

    kind: FaultKind
    line: int
    position: tuple[int, int, int]
    address: int
    detail: str


@dataclass(frozen=True)
class _Lasting:
    """What outlives a barrier, per granule: was it ever written, and is a copy to it in flight."""

    written: Bools
    in_flight: Bools


class RaceDetector:
    """Judges the shared-memory accesses of one batch of blocks.

    Args:
        blocks: Blocks in the batch.
        size: Bytes of shared memory per block.
        granule: Bytes of the smallest access of the program: all others are multiples of it, and aligned.
        report: Called with what was found; raises.
    """

    def __init__(self, blocks: int, size: int, granule: int, report: Callable[[Verdict], None]) -> None:
        self.blocks = blocks
        self.granule = granule
        self.report = report
        self.log: list[Entry] = []
        blank = np.zeros((1, size // granule + 1), dtype=np.bool_)
        self._states: list[_Lasting] = [_Lasting(blank, blank)]
        self._state_ids: dict[tuple[bytes, bytes], int] = {_state_key(self._states[0]): 0}
        self._state = 0
        self._known: dict[tuple[int, tuple[tuple[Access, int], ...]], int] = {}
        self._interval: _Interval | None = None

    def record(self, access: Access, pattern: SharedPattern, line: int, changed: Bools | None = None) -> None:
        """Log one access."""
        self.log.append(Entry(access, pattern, line, changed))
        if len(self.log) >= _LOG_LIMIT:
            self._judge()

    def barrier(self, released: Bools | None = None) -> None:
        """End the interval: of all blocks, or of those that are true in `released`, of shape (blocks,)."""
        if released is not None:
            self._judge().forget(released)
        elif self._interval is not None:
            self._settle(self._judge())
        elif self.log:
            key = (self._state, tuple((entry.access, entry.pattern.serial) for entry in self.log))
            known = self._known.get(key)
            if known is not None:
                self._state, self.log = known, []
                return
            interval = self._judge()
            self._settle(interval)
            if not interval.values_matter:
                self._known[key] = self._state

    def _judge(self) -> "_Interval":
        if self._interval is None:
            self._interval = _Interval(self._states[self._state], self.granule, self.report)
        log, self.log = self.log, []
        self._interval.replay(log, self.blocks)
        return self._interval

    def _settle(self, interval: "_Interval") -> None:
        lasting = _Lasting(interval.written, interval.in_flight)
        key = _state_key(lasting)
        if key not in self._state_ids:
            self._state_ids[key] = len(self._states)
            self._states.append(lasting)
        self._state = self._state_ids[key]
        self._interval = None


def _state_key(lasting: _Lasting) -> tuple[bytes, bytes]:
    return lasting.written.tobytes(), lasting.in_flight.tobytes()


#: A granule that an access touches: its row among the access's threads, and its place in that thread's bytes.
_Hit = tuple[int, int]


class _Interval:
    """Shared memory between two barriers: who read and who wrote each granule, so far.

    Arrays have shape (1, granules) while all blocks do the same, else (blocks, granules).
    """

    def __init__(self, lasting: _Lasting, granule: int, report: Callable[[Verdict], None]) -> None:
        self.report = report
        self.granule = granule
        self.written = lasting.written.copy()
        self.in_flight = lasting.in_flight.copy()
        self.writer: Owners = np.zeros(self.written.shape, dtype=np.int32)
        self.reader: Owners = np.zeros(self.written.shape, dtype=np.int32)
        self.atomic = np.zeros(self.written.shape, dtype=np.bool_)
        self.values_matter = False

    def forget(self, released: Bools) -> None:
        """Blocks that are true in `released` passed a barrier; the others did not."""
        self._widen(len(released))
        for owners in (self.writer, self.reader, self.atomic):
            owners[released] = 0

    def replay(self, log: list[Entry], blocks: int) -> None:
        """Go through the accesses in order and report the first that is wrong."""
        for entry in log:
            if max(entry.pattern.address.shape[0], entry.pattern.mask.lanes.shape[0]) > 1:
                self._widen(blocks)
            if entry.access is Access.SYNCWARP:
                self._order_warps(entry)
                continue
            touch = _Touch(entry, self.granule, len(self.written))
            if entry.access is Access.READ:
                self._read(touch)
            elif entry.access is Access.LANDED:
                touch.put(self.in_flight, False)
                touch.put(self.written, True)
                touch.put_owner(self.writer)
            else:
                self._write(touch)

    def _widen(self, blocks: int) -> None:
        if len(self.written) < blocks:
            for name in ("written", "in_flight", "writer", "reader", "atomic"):
                setattr(self, name, np.repeat(getattr(self, name), blocks, axis=0))

    def _order_warps(self, entry: Entry) -> None:
        """After __syncwarp, what a warp did before is ordered for its own threads."""
        synced = entry.pattern.mask.active_warps[..., 0]
        synced = np.broadcast_to(synced, (len(self.written), entry.pattern.mask.warps))
        for owners in (self.writer, self.reader):
            block, place = np.nonzero((owners > 0) & ((owners < _ORDERED) | (owners >= _UNORDERED)))
            warp = _warp_of(owners[block, place])
            chosen = synced[block, warp]
            owners[block[chosen], place[chosen]] = _ORDERED + warp[chosen]

    def _read(self, touch: "_Touch") -> None:
        if hit := touch.find(self.in_flight):
            self._report(FaultKind.ASYNC_COPY, touch, hit, "reads {0}, to which a copy is still in flight")
        if hit := touch.conflict(self.writer):
            who = _name(touch.at(self.writer, hit))
            self._report(FaultKind.SHARED_RACE, touch, hit, f"reads {{0}}, which {who} wrote")
        if hit := touch.find(~self.written):
            self._report(FaultKind.UNINITIALISED_SHARED, touch, hit, "reads {0}, which was never written")
        touch.put_owner(self.reader)

    def _write(self, touch: "_Touch") -> None:
        access, changed = touch.entry.access, touch.entry.changed
        if hit := touch.conflict(self.reader):
            who = _name(touch.at(self.reader, hit))
            self._report(FaultKind.SHARED_RACE, touch, hit, f"writes {{0}}, which {who} read")
        excused = self.atomic if access is Access.ATOMIC else None
        if hit := touch.conflict(self.writer, excused=excused):
            if access is Access.WRITE and changed is not None:
                self.values_matter = True
                hit = touch.conflict(self.writer, only=changed)
            if hit:
                who = _name(touch.at(self.writer, hit))
                self._report(
                    FaultKind.SHARED_RACE,
                    touch,
                    hit,
                    f"writes {{0}}, where {who} wrote another value",
                    changed,
                )
        touch.put_owner(self.writer)
        touch.put(self.atomic, access is Access.ATOMIC)
        touch.put(self.in_flight if access is Access.COPY else self.written, True)

    def _report(
        self, kind: FaultKind, touch: "_Touch", hit: _Hit, text: str, changed: Bools | None = None
    ) -> None:
        position, address = touch.position(hit)
        if changed is not None and len(changed) > 1 and len(self.written) == 1:
            # All blocks do the same, but not with the same values: name one whose values differ.
            lanes = np.broadcast_to(changed, (len(changed), touch.warps, 32))
            position = (int(lanes[:, position[1], position[2]].argmax()), *position[1:])
        since = " since the last barrier" if kind is FaultKind.SHARED_RACE else ""
        where = f"byte {address} of shared memory"
        self.report(Verdict(kind, touch.entry.line, position, address, text.format(where) + since))


def _warp_of(owner: Owners) -> Owners:
    """Return the warp of each owner that is a thread, or threads of one warp."""
    return np.where(owner >= _ORDERED, owner % 1000, (owner - 1) // 32)


def _name(owner: int) -> str:
    if 0 < owner < _ORDERED:
        return f"thread number {owner - 1}"
    return f"a thread of warp {owner % 1000}" if owner >= _ORDERED else "several threads"


class _Touch:
    """One log entry spread over threads (rows) and the granules that each touches (columns).

    A read at one address by all lanes of a warp, or by the same lane of all warps, needs one row, not one
    for each thread: nothing that is asked here can tell its threads apart.
    """

    def __init__(self, entry: Entry, granule: int, blocks: int) -> None:
        self.entry = entry
        self.granule = granule
        pattern, mask = entry.pattern, entry.pattern.mask
        self.warps = mask.warps
        shape: tuple[int, ...] = (blocks, self.warps, 32)
        lead = (1, 1, 1)
        if entry.access is Access.READ and mask.whole:
            _, warps, width = pattern.address.shape
            shape = (blocks, warps, width)
            lead = (1, self.warps // warps, 32 // width)
        address = np.broadcast_to(pattern.address, shape)
        self.block, self.warp, self.lane = np.nonzero(np.broadcast_to(mask.lanes, shape))
        self.start = address[self.block, self.warp, self.lane]
        self.granules = self.start[:, None] // granule + np.arange(pattern.size // granule)
        self.rows = self.block[:, None]
        owner = (self.warp * 32 + self.lane + 1).astype(np.int32)
        if lead[1] > 1:
            owner = np.full_like(owner, _SEVERAL_WARPS)
        elif lead[2] > 1:
            owner = (_UNORDERED + self.warp).astype(np.int32)
        self.owner = owner[:, None]

    def find(self, where: Bools) -> _Hit | None:
        """Return the first touched granule that is true in `where`."""
        return _first(where[self.rows, self.granules])

    def conflict(
        self, owners: Owners, *, excused: Bools | None = None, only: Bools | None = None
    ) -> _Hit | None:
        """Return the first touched granule that another thread, not ordered with this one, has touched.

        Args:
            owners: Who touched each granule.
            excused: Granules that do not count.
            only: Lanes that count, of shape (blocks or 1, warps or 1, 32 or 1).
        """
        held = owners[self.rows, self.granules]
        hit = held != 0
        if not hit.any():
            return None
        ordered = held == _ORDERED + self.warp.astype(np.int32)[:, None]
        several = (self.owner >= _UNORDERED) | (self.owner == _SEVERAL_WARPS)
        hit &= ((held != self.owner) | several) & ~(ordered & (self.owner != _SEVERAL_WARPS))
        if excused is not None:
            hit &= ~excused[self.rows, self.granules]
        if only is not None:
            lanes = only if len(owners) > 1 else only.any(axis=0, keepdims=True)
            shape = (len(owners), self.warps, 32)
            hit &= np.broadcast_to(lanes, shape)[self.block, self.warp, self.lane][:, None]
        return _first(hit)

    def position(self, hit: _Hit) -> tuple[tuple[int, int, int], int]:
        """Return ((block, warp, lane), byte address) of a hit."""
        row, column = hit
        where = (int(self.block[row]), int(self.warp[row]), int(self.lane[row]))
        return where, int(self.start[row]) + column * self.granule

    def at(self, owners: Owners, hit: _Hit) -> int:
        """Return who touched the granule of a hit."""
        row, column = hit
        return int(owners[self.block[row], self.granules[row, column]])

    def put(self, where: Bools, value: bool) -> None:
        """Set every touched granule."""
        where[self.rows, self.granules] = value

    def put_owner(self, owners: Owners) -> None:
        """Add these threads to who touched each granule."""
        held = owners[self.rows, self.granules]
        after = np.where(held == 0, self.owner, held)
        other = (held != 0) & (held != self.owner)
        if other.any():
            after = np.where(other, self._together(held), after)
        owners[self.rows, self.granules] = after
        # Threads of this very access that share a granule: the last one won, and the others are missing.
        won = owners[self.rows, self.granules]
        lost = (won != after) & (won != _SEVERAL_WARPS)
        if lost.any():
            row = np.nonzero(lost)[0]
            both = self._together(won)[lost]
            owners[self.block[row], self.granules[lost]] = both
            apart = both == _SEVERAL_WARPS
            owners[self.block[row[apart]], self.granules[lost][apart]] = _SEVERAL_WARPS

    def _together(self, held: Owners) -> Owners:
        """Return who it is when these threads join those that `held` names."""
        warp = self.warp.astype(np.int32)[:, None]
        same = (held > 0) & (_warp_of(held) == warp) & (self.owner > 0)
        # What __syncwarp ordered no longer matters inside the warp, and this thread stands for it outside.
        ordered = held == _ORDERED + warp
        return np.where(same, np.where(ordered, self.owner, _UNORDERED + warp), _SEVERAL_WARPS).astype(
            np.int32
        )


def _first(hit: Bools) -> _Hit | None:
    if not hit.any():
        return None
    row, column = np.argwhere(hit)[0]
    return int(row), int(column)
