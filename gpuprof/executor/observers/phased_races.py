# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races in kernels whose threads are ordered by mbarriers, or by barriers of clusters or of some warps.

Arrivals release the clocks of warps, waits acquire them. Copies are ordered by the same clocks: what a bulk
copy brought is visible to the threads that waited for its mbarrier, and to those ordered behind them. What
threads write is not visible to the copy engine until a `fence.proxy.async` lies between: after the write,
before the copy, and in an order with both. It may be the writer's own, or that of the thread that starts the
copy. Of reads nothing is asked: they are over when their thread arrives at the barrier that lets a copy
overwrite what they read. Nor of mbarriers, which nobody but operations on them touches: CUDA's own library,
libcu++, sets them up without any fence.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, SharedByte
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.lanes.scalars import uniform_blocks
from gpuprof.executor.memory.accesses import Access, Entry, Signal
from gpuprof.executor.memory.shared_memory import ChunkPattern
from gpuprof.executor.memory.warp_clocks import Times, ranked
from gpuprof.executor.observers.races import Interval
from gpuprof.executor.observers.touches import MOMENT_SHIFT, SEVERAL, Hit, Touch, first_hit, lane_of, stamped

#: What leaves something behind that the copy engine does not see.
_GENERIC = (Access.WRITE, Access.ATOMIC, Access.LANDED)
_UNSEEN = "where a bulk copy arrived that it did not wait for, started by line "


class PhasedInterval(Interval):
    """Shared memory between two barriers, where other things order accesses too."""

    HEARS_SIGNALS = True
    #: Also: the serial of the bulk copy in flight to a granule, how many bulk copies still read it, and how
    #: many products of matrices; the source line of the last of these that began; and one more than that of
    #: the last ordinary write that no fence has followed.
    LASTING: ClassVar[dict[str, Any]] = {
        **Interval.LASTING,
        "flight": np.int64,
        "sourced": np.int16,
        "multiplied": np.int16,
        "source_line": np.int32,
        "unfenced": np.int32,
    }
    #: Also: the serial of the bulk copy that arrived, if not everybody has waited for it; and which warps
    #: have fenced the last ordinary write, when first.
    PASSING: ClassVar[dict[str, Any]] = {**Interval.PASSING, "landed": np.int64, "fenced": np.int32}
    SETS: ClassVar[tuple[str, ...]] = (*Interval.SETS, "fenced")

    flight: NDArray[np.int64]
    sourced: NDArray[np.int16]
    multiplied: NDArray[np.int16]
    source_line: NDArray[np.int32]
    unfenced: NDArray[np.int32]
    landed: NDArray[np.int64]
    fenced: NDArray[np.int32]

    def _begin(self) -> None:
        super()._begin()
        #: Who has waited for each copy in `landed`, when its warp first did, and the line that started it.
        self._observers: dict[int, tuple[Bools, Times, int]] = {}

    def _parts(self) -> dict[str, NDArray[Any]]:
        parts = super()._parts()
        for serial, (lanes, since, line) in sorted(self._observers.items()):
            parts |= {f"lanes {serial} {line}": lanes, f"since {serial}": since}
        return parts

    def _forget_settled(self) -> None:
        for serial in list(self._observers):
            here = self.landed == serial
            if self._seeing(serial).all():
                self.landed[here] = 0
            if not self.landed[here].any():
                del self._observers[serial]
        super()._forget_settled()

    def _seen(self) -> list[Times]:
        return [since for _, since, _ in self._observers.values()]

    def _renumber(self, happened: list[Times]) -> None:
        super()._renumber(happened)
        self._observers = {
            serial: (uniform_blocks(lanes), ranked(since, happened), line)
            for serial, (lanes, since, line) in self._observers.items()
        }

    def settle(self, released: Bools | None = None) -> None:
        """As of `Interval`: fences of those that passed hold for everybody."""
        if released is not None:
            self.widen(len(released))
        fenced = self.fenced != 0
        self.unfenced[fenced if released is None else fenced & released[:, None]] = 0
        super().settle(released)

    def apply(self, entry: Entry) -> None:
        """Listener one entry and remember it."""
        self._judge(entry)
        if entry.access in _GENERIC:
            touch = self.touch(entry)
            touch.put(self.unfenced, entry.line + 1)
            touch.put(self.fenced, 0)

    def _judge(self, entry: Entry) -> None:
        match entry.access, entry.pattern:
            case Access.FENCE, Signal() as signal:
                self._fence(signal)
            case Access.OBSERVED, Signal() as signal:
                self._observe(signal, self.touch(entry))
            case Access.BULK, _:
                self._start(self.touch(entry))
            case Access.REDUCTION, _:
                self._start(self.touch(entry), -1)
            case Access.SOURCE, _:
                touch = self.touch(entry)
                self._source(touch, "starts a bulk copy of", self.sourced)
                self.mark(touch, "reader")
            case Access.MULTIPLIED, _:
                self._source(self.touch(entry), "multiplies", self.multiplied)
            case Access.PRODUCT, _:
                touch = self.touch(entry)
                np.subtract.at(self.multiplied, (touch.rows, touch.granules), 1)
            case Access.SOURCED, _:
                touch = self.touch(entry)
                np.subtract.at(self.sourced, (touch.rows, touch.granules), 1)
                self.mark(touch, "reader")
            case _:
                super().apply(entry)

    # Copies: in flight, arrived, and what they read.

    def read(self, touch: Touch) -> None:
        """Listener a read."""
        self._check_landed(touch, "reads")
        super().read(touch)

    def write(self, touch: Touch) -> None:
        """Listener a write, an atomic operation, the start of a cp.async, or an operation on an mbarrier."""
        self._check_landed(touch, "writes")
        self._check_sources(touch, "writes")
        super().write(touch)
        touch.put(self.landed, 0)

    def _start(self, touch: Touch, sign: int = 1) -> None:
        """A bulk copy or an asynchronous store begins: from now on its bytes belong to nobody.

        Of a reduction, whose `sign` is -1, several may be under way to one place.
        """
        bulk = isinstance(touch.entry.pattern, ChunkPattern)
        text = f"starts {'a bulk copy' if bulk else 'an asynchronous store'} to"
        self.require_landed(touch, f"{text} {{0}}", touch.held(self.flight) < 0 if sign < 0 else None)
        self._check_landed(touch, text)
        self._check_sources(touch, text)
        if sign > 0 and (hit := touch.repeated()):
            twice = f"{text} {{0}}, to which another thread starts one since the last barrier"
            self.found(FaultKind.SHARED_RACE, touch, hit, twice)
        for name, did in (("reader", "read"), ("writer", "wrote"), ("updater", "wrote")):
            if met := self.conflict(touch, name):
                self.met(touch, met, name, f"{text} {{0}}, which {{1}} {did}")
        if sign < 0 and (hit := first_hit(~touch.held(self.written))):
            self.found(FaultKind.UNINITIALISED_SHARED, touch, hit, f"{text} {{0}}, which was never written")
        if bulk:
            self._require_fence(touch, f"{text} {{0}}")
        for name in ("unfenced", *self.PASSING):
            touch.put(getattr(self, name), 0)
        serial = touch.entry.pattern.serial
        touch.put(self.flight, sign * serial)
        touch.put(self.in_flight, touch.entry.line + 1)
        self._observers.pop(serial, None)

    def _source(self, touch: Touch, verb: str, counted: NDArray[np.int16]) -> None:
        """A bulk copy from shared memory, or a product, begins: its bytes must stay as they are."""
        text = f"{verb} {{0}}"
        self.require_landed(touch, text)
        self._check_landed(touch, verb)
        self.require_written(touch, text)
        self._require_fence(touch, text)
        np.add.at(counted, (touch.rows, touch.granules), 1)
        touch.put(self.source_line, touch.entry.line)

    def _check_sources(self, touch: Touch, verb: str) -> None:
        for counted, what in ((self.sourced, "bulk copy"), (self.multiplied, "wgmma")):
            if hit := first_hit(touch.held(counted) > 0):
                line = int(touch.held(self.source_line)[hit])
                text = f"{verb} {{0}}, which the {what} of line {line} still reads"
                self.found(FaultKind.ASYNC_COPY, touch, hit, text)

    def _observe(self, signal: Signal, touch: Touch) -> None:
        """Threads waited for a bulk copy that has arrived: they may use its bytes."""
        assert signal.copy is not None
        serial, place = signal.copy.serial, (touch.rows, touch.granules)
        reached = np.broadcast_to(signal.lanes.any(axis=(1, 2)), (len(self.written),))[touch.rows]
        arriving = (np.abs(touch.held(self.flight)) == serial) & reached
        waiting = np.asarray(signal.lanes.any(axis=2))
        flying = touch.held(self.in_flight)
        lanes, since, line = self._observers.get(
            serial, (np.zeros((1, 1, 1), np.bool_), np.zeros((1, 1), np.int64), 0)
        )
        line = int(flying[arriving][0]) - 1 if arriving.any() else line
        since = np.where(waiting & (since == 0), self._now, since)
        self._observers[serial] = lanes | signal.lanes, since, line
        landed = touch.held(self.landed)
        changed = arriving | (landed == serial)
        self.landed[place] = np.where(changed, 0 if self._seeing(serial).all() else serial, landed)
        self.flight[place] = np.where(arriving, 0, touch.held(self.flight))
        self.in_flight[place] = np.where(arriving, 0, flying)
        self.written[place] |= arriving

    def _seeing(self, serial: int) -> Bools:
        """Return the threads that waited for a copy, or are ordered behind one that did."""
        lanes, since, _ = self._observers[serial]
        behind = np.asarray(((since > 0)[:, None] & (since[:, None] <= self._clocks.known)).any(axis=2))
        return np.asarray(lanes | behind[..., None])

    def _check_landed(self, touch: Touch, verb: str) -> None:
        """Nobody may touch the bytes of a bulk copy that arrived before waiting for it."""
        landed = touch.held(self.landed)
        if not landed.any():
            return
        for serial in np.unique(landed[landed != 0]):
            lanes = np.broadcast_to(self._seeing(int(serial)), (len(self.written), touch.warps, WARP))
            allowed = np.asarray(lanes.all(axis=2, keepdims=True)) if touch.merged else lanes
            wrong = (landed == serial) & ~allowed[touch.block, touch.warp, touch.lane][:, None]
            if hit := first_hit(wrong):
                self._unseen(touch, hit, ~lanes, f"{verb} {{0}}, {_UNSEEN}{self._observers[int(serial)][2]}")

    def _unseen(self, touch: Touch, hit: Hit, blind: Bools, text: str) -> None:
        """Name the thread: the row of the hit may stand for several."""
        position, address = touch.position(hit)
        if touch.merged:
            position = (*position[:2], int(blind[position[:2]].argmax()))
        where, byte = self.layout.byte(address)
        self.report(FaultKind.ASYNC_COPY, text.format(where), touch.entry.line, position, SharedByte(byte))

    # The two proxies: that of ordinary accesses, and that of the copy engine.

    def _fence(self, signal: Signal) -> None:
        """Threads execute a fence: it covers what is ordered before it."""
        block, place = np.nonzero(self.unfenced)
        if not block.size:
            return
        clock, count = self._clocks.known, len(self._sets.rows)
        here, rows = (block, place), max(len(clock), len(signal.lanes))
        wrote = np.where(self.writer[here] != 0, self.writer[here], self.updater[here])
        keys = (wrote.astype(np.int64) * count + self.fenced[here]) * rows + (block if rows > 1 else 0)
        different, which = np.unique(keys, return_inverse=True)
        rest, row = np.divmod(different, rows)
        written, fenced = (self._sets[number] for number in np.divmod(rest, count))
        lanes = np.broadcast_to(signal.lanes, (rows, *signal.lanes.shape[1:]))[row]
        # Who is behind the write: those for whom it is settled, its own thread, or warp.
        known = np.broadcast_to(clock, (rows, *clock.shape[1:]))[row]
        settled = (written[:, None] >> MOMENT_SHIFT <= known).all(axis=2)
        several, writer = (written != 0).sum(axis=1, keepdims=True) > 1, lane_of(written)
        own = np.take_along_axis(lanes, (writer[..., None] - 1) % WARP, axis=2)[..., 0] & (writer != 0)
        own = np.where(writer == SEVERAL, lanes.any(axis=2), own)
        behind = lanes.any(axis=2) & (settled | several | own)
        # One thread that fences does so for itself alone, as does one that is behind nothing but itself.
        number = np.where(lanes.sum(axis=2) == 1, lanes.argmax(axis=2) + 1, SEVERAL)
        number = np.where(settled | several | (writer == SEVERAL), number, writer)
        again = behind & (fenced != 0) & (lane_of(fenced) != number)
        fenced = np.where(behind & (fenced == 0), stamped(self._now, 0, number), fenced)
        fenced = np.where(again, fenced - lane_of(fenced) + SEVERAL, fenced)
        self.fenced[here] = self._sets.add(fenced)[which]

    def _require_fence(self, touch: Touch, text: str) -> None:
        """Report a place that a copy touches and that it does not see as it was written."""
        line = touch.held(self.unfenced)
        if not line.any():
            return
        stamps, settled, own, which = self._asked(touch.held(self.fenced), touch)
        lanes = lane_of(stamps[own])[which]
        done = ((stamps != 0) & settled).any(axis=1)[which]
        fenced = done | (lanes == SEVERAL) | (lanes == touch.lanes[:, None])
        if hit := first_hit((line != 0) & ~fenced):
            did = f", which line {int(line[hit]) - 1} wrote, and no fence.proxy.async lies between"
            self.found(FaultKind.PROXY, touch, hit, text + did)
