# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races in kernels whose threads are ordered by mbarriers, or by barriers of clusters.

Each warp has a clock: until when what each other one did happened before what it does now. Arrivals release
it, waits acquire it. Of each granule it is kept when each warp read, wrote and updated it last; what the
clock of a warp covers is settled for it.

Copies are ordered by the same clocks. What a bulk copy brought is visible to the threads that waited for its
mbarrier, and to those ordered behind them. What threads write is not visible to the copy engine until a
`fence.proxy.async` lies between: after the write, before the copy, and in an order with both. It may be the
writer's own, or that of the thread that starts the copy. Of reads nothing is asked: they are over when their
thread arrives at the barrier that lets a copy overwrite what they read. Nor of mbarriers, which nobody but
operations on them touches: CUDA's own library, libcu++, sets them up without any fence.
"""

from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, SharedByte
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.lanes.scalars import uniform_blocks
from gpuprof.executor.memory.accesses import (
    CLUSTER_PHASES,
    FENCE_PHASE,
    NEAR_FENCE_PHASE,
    Access,
    Entry,
    Signal,
)
from gpuprof.executor.memory.moments import Phase, Times, WarpClocks
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern
from gpuprof.executor.observers.races import Interval, Report
from gpuprof.executor.observers.touches import ORDERED, SEVERAL_WARPS, Hit, Touch, first_hit, warp_of

#: What leaves something behind that the copy engine does not see.
_GENERIC = (Access.WRITE, Access.ATOMIC, Access.LANDED)
_UNSEEN = "where a bulk copy arrived that it did not wait for, started by line "
_KINDS = ("writer", "reader", "updater")
#: Bits of a set of warps, at most.
_SET_BITS = 32


class PhasedInterval(Interval):
    """Shared memory between two barriers, where other things order accesses too.

    Warps of large clusters share a moment: "warps" below are the bits of `ClusterLayout`.
    """

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
    #: Also: the serial of the bulk copy that arrived, if not everybody has waited for it. Which moments warps
    #: touched a granule at last, and first fenced that write: rows of `_moments`. And the thread, plus one,
    #: that did so alone in its warp.
    PASSING: ClassVar[dict[str, Any]] = {
        **Interval.PASSING,
        "landed": np.int64,
        **dict.fromkeys((f"{name}_times" for name in (*_KINDS, "fencer")), np.int32),
        "fencer": np.int32,
    }

    flight: NDArray[np.int64]
    sourced: NDArray[np.int16]
    multiplied: NDArray[np.int16]
    source_line: NDArray[np.int32]
    unfenced: NDArray[np.int32]
    landed: NDArray[np.int64]
    writer_times: NDArray[np.int32]
    reader_times: NDArray[np.int32]
    updater_times: NDArray[np.int32]
    fencer_times: NDArray[np.int32]
    fencer: NDArray[np.int32]

    def __init__(self, granules: int, granule: int, report: Report, layout: ClusterLayout) -> None:
        super().__init__(granules, granule, report, layout)
        self._warps = layout.bits_of_block * layout.blocks
        self._begin()

    def _begin(self) -> None:
        warps, self._now = self._warps, 0
        self._moments: Times = np.zeros((1, warps), dtype=np.int32)
        self._clocks = WarpClocks(warps, np.int32)
        #: What each warp could rely on at its last fence, of either reach.
        self._fences: dict[Phase, Times] = {}
        #: Who has waited for each copy in `landed`, when its warp first did, and the line that started it.
        self._observers: dict[int, tuple[Bools, Times, int]] = {}

    def normalise(self, *, apart: bool = False) -> tuple[bytes, int]:
        """Bring into a form that is the same for states with the same future; return its digest and bytes."""
        self._forget_settled()
        parts: dict[str, NDArray[Any]] = {"clock": self._clocks.known, "moments": self._moments}
        for title, table in (("released", self._clocks.released), ("fences", self._fences)):
            parts |= {f"{title} {key}": array for key, array in sorted(table.items())}
        for serial, (lanes, since, line) in sorted(self._observers.items()):
            parts |= {f"lanes {serial} {line}": lanes, f"since {serial}": since}
        several = any(len(array) > 1 for title, array in parts.items() if title != "moments")
        digest, size = super().normalise(apart=apart or several)
        rest = [f"{title} {array.shape}".encode() + array.tobytes() for title, array in parts.items()]
        return blake2b(digest + b"|".join(rest)).digest(), size

    def _forget_settled(self) -> None:
        """Forget what everybody knows, and number the moments anew: only their order matters."""
        rows = np.arange(len(self.written))[:, None]
        for name in _KINDS:
            times = getattr(self, f"{name}_times")
            known = self._before(times, rows).all(axis=2)
            times[known] = getattr(self, name)[known] = 0
        for serial in list(self._observers):
            here = self.landed == serial
            if self._seeing(serial).all():
                self.landed[here] = 0
            if not self.landed[here].any():
                del self._observers[serial]
        tables = [getattr(self, f"{name}_times") for name in (*_KINDS, "fencer")]
        used = np.zeros(len(self._moments), dtype=np.bool_)
        used[0] = True
        for table in tables:
            used[table] = True
        moments = self._moments[used]
        stamps = np.concatenate([moments, *(since for _, since, _ in self._observers.values())])
        happened = [column[column > 0] for column in map(np.unique, stamps.T)]
        moments = _ranked(moments, happened)
        self._moments, which = np.unique(moments, axis=0, return_inverse=True)
        numbers = np.zeros(len(used), dtype=np.int32)
        numbers[used] = which.reshape(-1)
        for table in tables:
            table[...] = numbers[table]
        self._now = max(map(len, happened))
        clocks = self._clocks
        clocks.known = _ranked(clocks.known, happened)
        known = clocks.known.min(axis=1)
        clocks.released = _news(clocks.released, known, happened)
        self._fences = _news(self._fences, known[:, None], happened)
        self._observers = {
            serial: (uniform_blocks(lanes), _ranked(since, happened), line)
            for serial, (lanes, since, line) in self._observers.items()
        }

    def settle(self, released: Bools | None = None) -> None:
        """As of `Interval`: fences of those that passed hold for everybody."""
        if released is not None:
            self.widen(len(released))
        fenced = self.fencer_times != 0
        self.unfenced[fenced if released is None else fenced & released[:, None]] = 0
        super().settle(released)
        if released is None:
            self._begin()

    def apply(self, entry: Entry) -> None:
        """Listener one entry and remember it."""
        self._now += 1
        self._judge(entry)
        if entry.access in _GENERIC:
            touch = self.touch(entry)
            touch.put(self.unfenced, entry.line + 1)
            touch.put(self.fencer, 0)
            touch.put(self.fencer_times, 0)

    def _judge(self, entry: Entry) -> None:
        match entry.access, entry.pattern:
            case Access.RELEASE, Signal() as signal:
                self._clocks.release(signal.phase, self._of(signal), self._clocks.view(self._now))
            case Access.ACQUIRE, Signal() as signal:
                self._clocks.acquire(signal.phase, self._of(signal))
            case Access.MEET, Signal() as signal:
                self._clocks.meet(self._of(signal), self._clocks.view(self._now), self.layout.blocks)
            case Access.FENCED, Signal() as signal:
                before = self._fences.get(signal.phase, np.int32(0))
                view = self._clocks.view(self._now)
                self._fences[signal.phase] = np.where(self._of(signal)[:, :, None], view, before)
            case Access.RELAXED, Signal() as signal:
                # What its warp did before its last fence.
                near = () if signal.phase in CLUSTER_PHASES else (NEAR_FENCE_PHASE,)
                for phase in (FENCE_PHASE, *near):
                    if phase in self._fences:
                        self._clocks.release(signal.phase, self._of(signal), self._fences[phase])
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

    # The order: clocks of warps, and the moments of what they did.

    def _of(self, signal: Signal) -> Bools:
        """Return the warps of a signal's threads: shape (blocks or 1, warps)."""
        return np.asarray(self.layout.grouped(np.asarray(signal.lanes.any(axis=2))), dtype=np.bool_)

    def _bit(self, warp: NDArray[Any]) -> NDArray[np.int64]:
        return self.layout.bit_of(warp).astype(np.int64)

    def _before(self, times: NDArray[np.int32], rows: NDArray[np.intp]) -> Bools:
        """Return for which warps of a block all is settled that sets of moments tell: one more dimension."""
        clock = self._clocks.known
        count = len(clock)
        keys = times.astype(np.int64) * count + (rows if count > 1 else 0)
        different, which = np.unique(keys, return_inverse=True)
        known = self._moments[different // count][:, None] <= clock[different % count]
        return np.asarray(known.all(axis=2)[which.reshape(keys.shape)])

    def _settled(self, touch: Touch, name: str) -> Bools | None:
        """Return the touched granules where what others did is settled for these threads; None for none."""
        times = touch.held(getattr(self, f"{name}_times"))
        if not times.any():
            return None
        known = self._before(times, touch.rows)
        if touch.lead[0] > 1:
            return np.asarray(known.all(axis=2))
        return np.take_along_axis(known, self._bit(touch.warp)[:, None, None], axis=2)[..., 0]

    def conflict(self, touch: Touch, name: str, only: Bools | None = None) -> Hit | None:
        """As of `Interval`."""
        owners = getattr(self, name)
        if touch.conflict(owners, None, only) is None:
            return None
        return touch.conflict(owners, self._settled(touch, name), only)

    def mark(self, touch: Touch, name: str) -> None:
        """As of `Interval`."""
        settled = self._settled(touch, name)
        touch.put_owner(getattr(self, name), settled)
        table = getattr(self, f"{name}_times")
        everybody = np.int64((1 << self._warps) - 1)
        bits = np.left_shift(np.int64(1), self._bit(touch.warp))[:, None]
        flat = touch.flat(table.shape[1])
        bits = np.broadcast_to(everybody if touch.lead[0] > 1 else bits, flat.shape)
        if settled is not None:
            bits = bits | (~settled).astype(np.int64) << self._warps
        # Several warps may touch a granule: they are told together, on what nobody knows yet.
        flat, among = flat.reshape(-1), np.zeros(table.size, dtype=np.int64)
        np.bitwise_or.at(among, flat, bits.reshape(-1))
        bits, held = among[flat], table.reshape(-1)[flat]
        kept = np.where(bits >> self._warps, held, 0)
        table.reshape(-1)[flat] = self._with(kept, bits & everybody)

    def _with(self, held: NDArray[Any], bits: NDArray[np.int64], *, first: bool = False) -> NDArray[np.int32]:
        """Return sets of moments with the present one for some warps, or only where it is the `first`."""
        pairs, which = np.unique(held.astype(np.int64) << _SET_BITS | bits, return_inverse=True)
        times = self._moments[pairs >> _SET_BITS]
        added = (pairs[:, None] >> np.arange(self._warps) & 1).astype(np.bool_)
        times = np.where(added & (times == 0) if first else added, np.int32(self._now), times)
        numbers = which.reshape(-1) + len(self._moments)
        self._moments = np.concatenate([self._moments, times])
        return np.asarray(numbers, dtype=np.int32)

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
            if hit := self.conflict(touch, name):
                self.met(touch, hit, name, f"{text} {{0}}, which {{1}} {did}")
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
                line = touch.at(self.source_line, hit)
                text = f"{verb} {{0}}, which the {what} of line {line} still reads"
                self.found(FaultKind.ASYNC_COPY, touch, hit, text)

    def _observe(self, signal: Signal, touch: Touch) -> None:
        """Threads waited for a bulk copy that has arrived: they may use its bytes."""
        assert signal.copy is not None
        serial, place = signal.copy.serial, (touch.rows, touch.granules)
        reached = np.broadcast_to(signal.lanes.any(axis=(1, 2)), (len(self.written),))[touch.rows]
        arriving = (np.abs(touch.held(self.flight)) == serial) & reached
        waiting = self._of(signal)
        flying = touch.held(self.in_flight)
        lanes, since, line = self._observers.get(
            serial, (np.zeros((1, 1, 1), np.bool_), np.zeros((1, 1), np.int32), 0)
        )
        line = int(flying[arriving][0]) - 1 if arriving.any() else line
        since = np.where(waiting & (since == 0), np.int32(self._now), since)
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
        return np.asarray(lanes | behind[:, self._bit(np.arange(lanes.shape[1])), None])

    def order_warps(self, entry: Entry) -> None:
        """After __syncwarp, a warp's threads see the copies and are behind the fences of any of them."""
        super().order_warps(entry)
        assert isinstance(entry.pattern, SharedPattern)
        synced = entry.pattern.mask.active_warps
        for serial, (lanes, since, line) in self._observers.items():
            self._observers[serial] = lanes | (synced & lanes.any(axis=2, keepdims=True)), since, line
        block, place = np.nonzero(self.fencer)
        everywhere = np.broadcast_to(synced[..., 0], (len(self.written), entry.pattern.mask.warps))
        chosen = everywhere[block, warp_of(self.fencer[block, place])]
        self.fencer[block[chosen], place[chosen]] = 0

    def _check_landed(self, touch: Touch, verb: str) -> None:
        """Nobody may touch the bytes of a bulk copy that arrived before waiting for it."""
        landed = touch.held(self.landed)
        if not landed.any():
            return
        for serial in np.unique(landed[landed != 0]):
            lanes = np.broadcast_to(self._seeing(int(serial)), (len(self.written), touch.warps, WARP))
            allowed: Bools = lanes
            for axis, merged in enumerate(touch.lead, 1):
                allowed = np.asarray(allowed.all(axis=axis, keepdims=True)) if merged > 1 else allowed
            wrong = (landed == serial) & ~allowed[touch.block, touch.warp, touch.lane][:, None]
            if hit := first_hit(wrong):
                self._unseen(touch, hit, ~lanes, f"{verb} {{0}}, {_UNSEEN}{self._observers[int(serial)][2]}")

    def _unseen(self, touch: Touch, hit: Hit, blind: Bools, text: str) -> None:
        """Name the thread: the row of the hit may stand for several."""
        (block, warp, lane), address = touch.position(hit)
        warps = slice(None) if touch.lead[0] > 1 else slice(warp, warp + 1)
        lanes = slice(None) if touch.lead[1] > 1 else slice(lane, lane + 1)
        more_warps, more_lanes = (int(i) for i in np.argwhere(blind[block, warps, lanes])[0])
        position = (block, more_warps + (warps.start or 0), more_lanes + (lanes.start or 0))
        where, byte = self.layout.byte(address)
        self.report(FaultKind.ASYNC_COPY, text.format(where), touch.entry.line, position, SharedByte(byte))

    # The two proxies: that of ordinary accesses, and that of the copy engine.

    def _fence(self, signal: Signal) -> None:
        """Threads execute a fence: it covers what is ordered before it."""
        block, place = np.nonzero(self.unfenced)
        if not block.size:
            return
        blocks, (warps, width) = len(self.written), signal.lanes.shape[1:]
        lanes = np.broadcast_to(signal.lanes, (blocks, warps, width)).reshape(blocks, warps * WARP)
        # Of a fence of one thread it is known whose it is.
        alone = lanes.sum(axis=1) == 1
        number = np.where(alone, lanes.argmax(axis=1) + 1, 0)[block].astype(np.int32)
        fencing = np.broadcast_to(self._of(signal), (blocks, self._warps))[block]
        here = (block, place)
        wrote = self.writer[here] != 0
        owner = np.where(wrote, self.writer[here], self.updater[here])
        times = np.where(wrote, self.writer_times[here], self.updater_times[here])
        # Who is behind the write: its own thread, its warp, and those for whom it is settled.
        by_thread, by_warp = (owner > 0) & (owner < ORDERED), owner >= ORDERED
        own = by_thread & lanes[block, np.where(by_thread, owner - 1, 0)]
        warp_is = np.arange(self._warps) == self._bit(warp_of(owner))[:, None]
        behind = self._before(times, block) | (owner == SEVERAL_WARPS)[:, None]
        behind = (behind | (warp_is & by_warp[:, None])) & fencing | (warp_is & own[:, None])
        done = behind.any(axis=1)
        block, place, behind = block[done], place[done], behind[done]
        number, known = np.where(own, owner, number)[done], self.fencer[block, place]
        held = self.fencer_times[block, place]
        # A thread that is the first of its warp to fence does so for itself alone.
        row, bit = np.arange(len(block)), self._bit(np.maximum(number - 1, 0) // WARP)
        is_first = (number != 0) & (self._moments[held, bit] == 0)
        more = behind[row, self._bit(np.maximum(known - 1, 0) // WARP)] & (known != number)
        self.fencer[block, place] = np.where(is_first, number, np.where(more, 0, known))
        bits = np.where(behind, np.left_shift(np.int64(1), np.arange(self._warps)), 0).sum(axis=1)
        self.fencer_times[block, place] = self._with(held, bits, first=True)

    def _require_fence(self, touch: Touch, text: str) -> None:
        """Report a place that a copy touches and that it does not see as it was written."""
        line = touch.held(self.unfenced)
        if not line.any():
            return
        times, fencer = self._moments[touch.held(self.fencer_times)], touch.held(self.fencer)
        bit = self._bit(touch.warp)
        clock = self._clocks.known
        clock = clock[touch.block if len(clock) > 1 else 0, bit][:, None]
        own = (np.arange(self._warps) == bit[:, None])[:, None]
        others = (fencer != 0) & (warp_of(fencer) == touch.warp[:, None]) & (fencer != touch.owner)
        fenced = ((times > 0) & ((times <= clock) | (own & ~others[..., None]))).any(axis=2)
        if hit := first_hit((line != 0) & ~fenced):
            did = f", which line {int(line[hit]) - 1} wrote, and no fence.proxy.async lies between"
            self.found(FaultKind.PROXY, touch, hit, text + did)


def _ranked(times: Times, happened: list[Times]) -> Times:
    """Return for each warp's moments how many of those that matter they come to; blocks alike are one."""
    ranks = [np.searchsorted(column, times[..., i], side="right") for i, column in enumerate(happened)]
    return uniform_blocks(np.stack(ranks, axis=-1).astype(np.int32))


def _news(told: dict[Phase, Times], known: Times, happened: list[Times]) -> dict[Phase, Times]:
    """Return of what was told at each phase that which not everybody knows."""
    ranked = {phase: _ranked(times, happened) for phase, times in told.items()}
    ranked = {phase: np.where(times <= known, np.int32(0), times) for phase, times in ranked.items()}
    return {phase: uniform_blocks(times) for phase, times in ranked.items() if times.any()}
