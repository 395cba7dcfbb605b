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
from gpuprof.backends.sim.scalars import Lanes
from gpuprof.backends.sim.shared_memory import SharedPattern

#: Judge a long interval in pieces, so that the log does not keep every stored value alive.
_LOG_LIMIT = 512

# Who touched a byte in the current interval, as one integer: 0 nobody; 1 … 1024 that thread, plus one; the
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
    """One logged access: what, where, from which source line, and the values of a write."""

    access: Access
    pattern: SharedPattern
    line: int
    values: Lanes | None = None


@dataclass(frozen=True)
class Verdict:
    """Something wrong: the offending entry, the position (block, warp, lane) and byte, and what happened."""

    kind: FaultKind
    line: int
    position: tuple[int, int, int]
    address: int
    detail: str


@dataclass(frozen=True)
class _Lasting:
    """What outlives a barrier, per byte: whether it was ever written, and whether a copy to it is in flight."""

    written: Bools
    in_flight: Bools


class RaceDetector:
    """Judges the shared-memory accesses of one batch of blocks.

    Args:
        blocks: Blocks in the batch.
        size: Bytes of shared memory per block.
        snapshot: Returns a copy of shared memory: shape (blocks, bytes).
        report: Called with what was found; raises.
    """

    def __init__(
        self,
        blocks: int,
        size: int,
        snapshot: Callable[[], NDArray[np.uint8]],
        report: Callable[[Verdict], None],
    ) -> None:
        self.blocks = blocks
        self.size = max(size, 1)
        self.snapshot = snapshot
        self.report = report
        self.log: list[Entry] = []
        blank = np.zeros((1, self.size), dtype=np.bool_)
        self._states: list[_Lasting] = [_Lasting(blank, blank)]
        self._state_ids: dict[tuple[bytes, bytes], int] = {self._state_key(self._states[0]): 0}
        self._state = 0
        self._known: dict[tuple[int, tuple[tuple[Access, int], ...]], int] = {}
        self._interval: _Interval | None = None

    def record(self, access: Access, pattern: SharedPattern, line: int, values: Lanes | None = None) -> None:
        """Log one access."""
        self.log.append(Entry(access, pattern, line, values))
        if len(self.log) >= _LOG_LIMIT:
            self._judge()

    def barrier(self, released: Bools | None = None) -> None:
        """End the interval: of all blocks, or of those that are true in `released`, of shape (blocks,)."""
        if released is None and self._interval is None:
            if not self.log:
                return
            key = (self._state, tuple((entry.access, entry.pattern.serial) for entry in self.log))
            if key in self._known:
                self._state = self._known[key]
                self.log = []
                return
            interval = self._judge()
            self._settle(interval)
            if not interval.values_matter:
                self._known[key] = self._state
            return
        interval = self._judge()
        if released is None:
            self._settle(interval)
        else:
            interval.forget(released)

    def finish(self) -> None:
        """Judge what is left at the end of the kernel."""
        self.barrier()

    def _judge(self) -> "_Interval":
        if self._interval is None:
            self._interval = _Interval(self._states[self._state], self.report)
        self._interval.replay(self.log, self.blocks)
        self._interval.before = self.snapshot() if self.log else self._interval.before
        self.log = []
        return self._interval

    def _settle(self, interval: "_Interval") -> None:
        lasting = _Lasting(interval.written, interval.in_flight)
        key = self._state_key(lasting)
        if key not in self._state_ids:
            self._state_ids[key] = len(self._states)
            self._states.append(lasting)
        self._state = self._state_ids[key]
        self._interval = None

    @staticmethod
    def _state_key(lasting: _Lasting) -> tuple[bytes, bytes]:
        return lasting.written.tobytes(), lasting.in_flight.tobytes()


class _Interval:
    """The bytes of shared memory between two barriers: who read and who wrote each, so far.

    Arrays have shape (1, bytes) while all blocks do the same, else (blocks, bytes).
    """

    def __init__(self, lasting: _Lasting, report: Callable[[Verdict], None]) -> None:
        self.report = report
        self.written = lasting.written.copy()
        self.in_flight = lasting.in_flight.copy()
        self.writer: Owners = np.zeros(self.written.shape, dtype=np.int32)
        self.reader: Owners = np.zeros(self.written.shape, dtype=np.int32)
        self.atomic = np.zeros(self.written.shape, dtype=np.bool_)
        self.before: NDArray[np.uint8] | None = None
        self.values_matter = False

    def forget(self, released: Bools) -> None:
        """Blocks that are true in `released` passed a barrier; the others did not."""
        self._widen(len(released))
        for owners in (self.writer, self.reader, self.atomic):
            owners[released] = 0

    def replay(self, log: list[Entry], blocks: int) -> None:
        """Go through the accesses in order and report the first that is wrong."""
        for position, entry in enumerate(log):
            address, active = entry.pattern.threads()
            if len(address) > 1:
                self._widen(blocks)
            if len(self.written) > 1:
                address, active = (np.broadcast_to(a, (blocks, *a.shape[1:])) for a in (address, active))
            if entry.access is Access.SYNCWARP:
                self._order_warps(active)
                continue
            touch = _Touch(entry, address, active, self.size)
            if entry.access is Access.READ:
                self._read(touch)
            elif entry.access is Access.LANDED:
                touch.put(self.in_flight, False)
                touch.put(self.written, True)
                touch.put_owner(self.writer)
            else:
                self._write(touch, log[:position], blocks)

    @property
    def size(self) -> int:
        """Bytes of shared memory per block."""
        return self.written.shape[1]

    def _widen(self, blocks: int) -> None:
        if len(self.written) < blocks:
            for name in ("written", "in_flight", "writer", "reader", "atomic"):
                setattr(self, name, np.repeat(getattr(self, name), blocks, axis=0))

    def _order_warps(self, active: Bools) -> None:
        """After __syncwarp, what a warp did before is ordered for its own threads."""
        for owners in (self.writer, self.reader):
            warp = np.where(owners > _UNORDERED - 1, owners - _UNORDERED, (owners - 1) // 32)
            held = (owners > 0) & ((owners < _ORDERED) | (owners >= _UNORDERED))
            synced = np.broadcast_to(active.any(axis=2), (len(owners), active.shape[1]))
            block, byte = np.nonzero(held)
            ordered = synced[block, warp[block, byte]]
            block, byte = block[ordered], byte[ordered]
            owners[block, byte] = _ORDERED + warp[block, byte]

    def _read(self, touch: "_Touch") -> None:
        line = touch.entry.line
        if (bad := touch.find(self.in_flight)) is not None:
            self._report(FaultKind.ASYNC_COPY, touch, bad, line, "reads {0}, to which a copy is still in flight")
        if (bad := touch.conflict(self.writer)) is not None:
            self._report(FaultKind.SHARED_RACE, touch, bad, line, f"reads {{0}}, which {self._who(touch, bad)} wrote")
        if (bad := touch.find(~self.written)) is not None:
            self._report(FaultKind.UNINITIALISED_SHARED, touch, bad, line, "reads {0}, which was never written")
        touch.put_owner(self.reader)

    def _write(self, touch: "_Touch", earlier: list[Entry], blocks: int) -> None:
        line, access = touch.entry.line, touch.entry.access
        if (bad := touch.conflict(self.reader)) is not None:
            who = _name(int(touch.at(self.reader, bad)))
            self._report(FaultKind.SHARED_RACE, touch, bad, line, f"writes {{0}}, which {who} read")
        both_atomic = self.atomic if access is Access.ATOMIC else None
        if (bad := touch.conflict(self.writer, excused=both_atomic)) is not None:
            self.values_matter = True
            plain = access is Access.WRITE
            bad = self._differing(touch, earlier, blocks) if plain else bad
            if bad is not None:
                who = self._who(touch, (0, *bad[1:]) if len(self.writer) == 1 else bad)
                self._report(FaultKind.SHARED_RACE, touch, bad, line, f"writes {{0}}, which {who} also wrote")
        elif access is Access.WRITE and touch.collides():
            self.values_matter = True
            if (bad := self._differing(touch, earlier, blocks)) is not None:
                self._report(
                    FaultKind.SHARED_RACE, touch, bad, line, "writes {0}, and so does another thread, another value"
                )
        touch.put_owner(self.writer)
        touch.put(self.atomic, access is Access.ATOMIC)
        touch.put(self.in_flight if access is Access.COPY else self.written, True)

    def _differing(
        self, touch: "_Touch", earlier: list[Entry], blocks: int
    ) -> tuple[int, int, int, int] | None:
        """Find a write that changes what another thread wrote in this interval.

        All blocks hold values of their own, so the stores so far are made again, block by block.
        """
        content = np.zeros((blocks, self.size), dtype=np.uint8) if self.before is None else self.before.copy()
        for entry in earlier:
            if entry.values is not None and entry.access is Access.WRITE:
                _Touch(entry, *entry.pattern.threads(), self.size).store(content)
        return touch.disagreement(content, self.writer)

    def _who(self, touch: "_Touch", bad: tuple[int, int, int, int]) -> str:
        return _name(int(touch.at(self.writer, bad)))

    def _report(
        self, kind: FaultKind, touch: "_Touch", bad: tuple[int, int, int, int], line: int, text: str
    ) -> None:
        block, warp, lane, byte = bad
        address = touch.byte_address(block, warp, lane) + byte
        where = f"byte {address} of shared memory"
        since = " since the last barrier" if kind is FaultKind.SHARED_RACE else ""
        self.report(Verdict(kind, line, (block, warp, lane), address, text.format(where) + since))


def _name(owner: int) -> str:
    if 0 < owner < _ORDERED:
        return f"thread number {owner - 1}"
    if owner >= _ORDERED:
        return f"a thread of warp {owner % 1000}"
    return "several threads"


class _Touch:
    """One log entry spread over threads and bytes."""

    def __init__(self, entry: Entry, address: NDArray[np.int64], active: Bools, size: int) -> None:
        self.entry = entry
        self.address = address
        self.active = active
        self.blocks, self.warps, _ = address.shape
        b, w, lane = np.nonzero(active)
        self.b, self.w, self.lane = b, w, lane
        start = address[b, w, lane]
        # One row per active thread, one column per byte.
        self.bytes = np.minimum(start[:, None] + np.arange(entry.pattern.size), size - 1)
        self.rows = b[:, None]
        self.owner = (w * 32 + lane + 1).astype(np.int32)[:, None]
        self.warp = w.astype(np.int32)[:, None]

    def find(self, where: Bools) -> tuple[int, int, int, int] | None:
        """Return (block, warp, lane, byte of the access) of the first touched byte that is true in `where`."""
        hit = where[self.rows, self.bytes]
        return self._position(hit) if hit.any() else None

    def conflict(self, owners: Owners, excused: Bools | None = None) -> tuple[int, int, int, int] | None:
        """Return the first touched byte that another thread, not ordered with this one, has touched."""
        held = owners[self.rows, self.bytes]
        hit = (held != 0) & (held != self.owner) & (held != _ORDERED + self.warp)
        if excused is not None:
            hit &= ~excused[self.rows, self.bytes]
        return self._position(hit) if hit.any() else None

    def _position(self, hit: Bools) -> tuple[int, int, int, int]:
        row, byte = np.argwhere(hit)[0]
        return int(self.b[row]), int(self.w[row]), int(self.lane[row]), int(byte)

    def byte_address(self, block: int, warp: int, lane: int) -> int:
        """Return where a thread's access starts."""
        return int(self.address[min(block, self.blocks - 1), warp, lane])

    def at(self, owners: Owners, bad: tuple[int, int, int, int]) -> int:
        """Return the owner of one touched byte."""
        block, warp, lane, byte = bad
        return int(owners[block, self.byte_address(block, warp, lane) + byte])

    def put(self, where: Bools, value: bool) -> None:
        """Set every touched byte."""
        where[self.rows, self.bytes] = value

    def put_owner(self, owners: Owners) -> None:
        """Add these threads to who touched each byte."""
        held = owners[self.rows, self.bytes]
        same_warp = np.where(held >= _ORDERED, held % 1000, (held - 1) // 32) == self.warp
        alone = (held == 0) | (held == self.owner) | (held == _ORDERED + self.warp)
        shared = np.where(same_warp & (held > 0), _UNORDERED + self.warp, _SEVERAL_WARPS)
        owners[self.rows, self.bytes] = np.where(alone, self.owner, shared)
        # Threads of this very access that share a byte: the last one won; find the others' bytes.
        won = owners[self.rows, self.bytes]
        lost = (won != self.owner) & (won > 0) & alone
        if lost.any():
            rows = np.broadcast_to(self.rows, lost.shape)[lost]
            winners = (won[lost] - 1) // 32
            mine = np.broadcast_to(self.warp, lost.shape)[lost]
            owners[rows, self.bytes[lost]] = np.where(winners == mine, _UNORDERED + mine, _SEVERAL_WARPS)
            apart = winners != mine
            owners[rows[apart], self.bytes[lost][apart]] = _SEVERAL_WARPS

    def collides(self) -> bool:
        """Tell whether two threads of this access touch the same byte."""
        flat = self.rows * (int(self.bytes.max()) + 1 if self.bytes.size else 1) + self.bytes
        return np.unique(flat).size < flat.size

    def _value_bytes(self, blocks: int) -> NDArray[np.uint8]:
        """Return the stored values, as bytes, of every active thread of every block: (blocks, threads, size)."""
        assert self.entry.values is not None
        shape = (blocks, self.warps, 32)
        values = np.ascontiguousarray(np.broadcast_to(self.entry.values, shape))
        as_bytes = values.view(np.uint8).reshape(*shape, self.entry.pattern.size)
        return as_bytes

    def _spread(self, blocks: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], Bools]:
        shape = (blocks, self.warps, 32)
        active = np.broadcast_to(self.active, shape)
        address = np.broadcast_to(self.address, shape)[active][:, None] + np.arange(self.entry.pattern.size)
        rows = np.nonzero(active)[0][:, None]
        return rows, address, self._value_bytes(blocks)[active], active

    def store(self, content: NDArray[np.uint8]) -> None:
        """Make the store again, in `content` of shape (blocks, bytes)."""
        rows, address, values, _ = self._spread(len(content))
        content[rows, address] = values

    def disagreement(self, content: NDArray[np.uint8], writer: Owners) -> tuple[int, int, int, int] | None:
        """Find a byte that another thread wrote before, or writes in this access, with another value."""
        rows, address, values, active = self._spread(len(content))
        before = content[rows, address]
        held = np.broadcast_to(writer, (len(content), writer.shape[1]))[rows, address]
        thread = (np.nonzero(active)[1] * 32 + np.nonzero(active)[2] + 1)[:, None]
        warp = np.nonzero(active)[1][:, None]
        foreign = (held != 0) & (held != thread) & (held != _ORDERED + warp)
        content[rows, address] = values
        hit = (foreign & (before != values)) | (content[rows, address] != values)
        if not hit.any():
            return None
        row, byte = np.argwhere(hit)[0]
        position = np.argwhere(active)[row]
        return int(position[0]), int(position[1]), int(position[2]), int(byte)
