# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races in kernels whose threads are ordered by mbarriers, or by barriers of some of a block's warps.

What threads did before they arrived there is settled for the warps that then wait for that phase, and for
those that these meet later; for others it is not. Reads of bulk copies that nobody waited for are found too:
a copy is visible to the threads that waited for its mbarrier, and after a barrier to all others.
"""

from collections.abc import Callable
from functools import reduce
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.memory.accesses import (
    CLUSTER_PHASES,
    FENCE_PHASE,
    NEAR_FENCE_PHASE,
    SETTLED,
    Access,
    Entry,
    Hit,
    Owners,
    Signal,
    Touch,
    everybody_of,
    first_hit,
)
from gpuprof.executor.memory.proxied_accesses import ProxiedInterval, warp_bits
from gpuprof.executor.memory.races import TOGETHER, Lasting, Verdict
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern


class PhasedInterval(ProxiedInterval):
    """Shared memory between two barriers, where mbarriers order accesses too."""

    #: Also: the serial of the bulk copy in flight to a granule, how many bulk copies still read it, and how
    #: many products of matrices; and the source line of the last of these that began.
    LASTING: ClassVar[dict[str, Any]] = {
        **ProxiedInterval.LASTING,
        "flight": np.int64,
        "sourced": np.int16,
        "multiplied": np.int16,
        "source_line": np.int32,
    }
    #: Also: the serial of the bulk copy that arrived, if not everybody has waited for it; and the warps that
    #: wrote, read and atomically updated a granule, as bits, when they did so last, and when that was last
    #: settled for some warps.
    PASSING: ClassVar[dict[str, Any]] = {
        **ProxiedInterval.PASSING,
        "landed": np.int64,
        "writing_warps": np.uint32,
        "reading_warps": np.uint32,
        "updating_warps": np.uint32,
        "write_time": np.int32,
        "read_time": np.int32,
        "update_time": np.int32,
        "write_settled": np.int32,
        "read_settled": np.int32,
        "update_settled": np.int32,
    }

    flight: NDArray[np.int64]
    sourced: NDArray[np.int16]
    multiplied: NDArray[np.int16]
    source_line: NDArray[np.int32]
    landed: NDArray[np.int64]
    writing_warps: NDArray[np.uint32]
    reading_warps: NDArray[np.uint32]
    updating_warps: NDArray[np.uint32]
    write_time: NDArray[np.int32]
    read_time: NDArray[np.int32]
    update_time: NDArray[np.int32]
    write_settled: NDArray[np.int32]
    read_settled: NDArray[np.int32]
    update_settled: NDArray[np.int32]

    def __init__(self, lasting: Lasting, granule: int, report: Callable[[Verdict], None]) -> None:
        super().__init__(lasting, granule, report)
        #: When each warp arrived last, by (barrier, parity of its phase): shape (blocks or 1, warps).
        self._arrivals: dict[tuple[int, int], NDArray[np.int32]] = {}
        #: Who has waited for each copy in `landed`: shapes that broadcast to the batch.
        self._observers: dict[int, Bools] = {}

    def normalise(self) -> tuple[bytes, int]:
        """Bring into a form that is the same for states with the same future; return its digest and bytes.

        Of times only their order matters, and of a place that nobody touched not even that.
        """
        touched = [(self.writer, "write_time"), (self.reader, "read_time"), (self.updater, "update_time")]
        touched.append((self.fenced.astype(np.int32), "fence_time"))
        happened = np.zeros(self._now + 1, dtype=np.bool_)
        for owners, name in touched:
            happened[getattr(self, name)[owners != 0]] = True
        for times in self._arrivals.values():
            happened[times[times >= 0]] = True
        rank = np.cumsum(happened, dtype=np.int32)
        for owners, name in touched:
            setattr(self, name, np.where(owners != 0, rank[getattr(self, name)], np.int32(0)))
        for phase, times in self._arrivals.items():
            self._arrivals[phase] = np.where(times >= 0, rank[np.maximum(times, 0)], np.int32(-1))
        self._now = int(rank[-1])
        digest, size = super().normalise()
        rest = [repr(self._now).encode(), self._settled.tobytes()]
        tables = ("arrival", self._arrivals), ("observer", self._observers)
        for title, table in tables:
            for key, array in sorted(table.items()):
                rest += [repr((title, key, array.shape)).encode(), array.tobytes()]
        return blake2b(digest + b"|".join(rest)).digest(), size

    def forget(self, released: Bools) -> None:
        """Blocks that are true in `released` passed a barrier of all their threads; the others did not."""
        super().forget(released)
        for phase, times in self._arrivals.items():
            if phase[0] < 0:
                self._arrivals[phase] = np.where(released[:, None], np.int32(-1), times)

    def touch(self, entry: Entry) -> Touch:
        """Spread an entry over threads and granules."""
        return Touch(entry, self.granule, len(self.written), self._settled, self.layout)

    def judge(self, entry: Entry) -> None:
        """Judge one entry by what it did."""
        match entry.access, entry.pattern:
            case Access.RELEASE, Signal() as signal:
                self._release(signal)
            case Access.ACQUIRE, Signal() as signal:
                self._acquire(signal)
            case Access.MEET, Signal() as signal:
                self._meet_in_blocks(signal)
            case Access.FENCED, Signal() as signal:
                self._release(signal)
            case Access.RELAXED, Signal() as signal:
                self._release_fenced(signal)
            case Access.OBSERVED, Signal() as signal:
                self._observe(signal, self.touch(entry))
            case Access.BULK, _:
                self._start(self.touch(entry))
            case Access.REDUCTION, _:
                self._start(self.touch(entry), -1)
            case Access.SOURCE, _:
                touch = self.touch(entry)
                self._source(touch, "starts a bulk copy of", self.sourced)
                self._was_read(touch)
            case Access.MULTIPLIED, _:
                self._source(self.touch(entry), "multiplies", self.multiplied)
            case Access.PRODUCT, _:
                touch = self.touch(entry)
                np.subtract.at(self.multiplied, (touch.rows, touch.granules), 1)
            case Access.SOURCED, _:
                touch = self.touch(entry)
                np.subtract.at(self.sourced, (touch.rows, touch.granules), 1)
                self._was_read(touch)
            case Access.LANDED, _:
                super().judge(entry)
                self._mark(self.touch(entry), self.writing_warps, self.write_time)
            case _:
                super().judge(entry)

    def order_warps(self, entry: Entry) -> None:
        """After __syncwarp, a warp's threads also see the copies that any of them has waited for."""
        super().order_warps(entry)
        assert isinstance(entry.pattern, SharedPattern)
        synced = entry.pattern.mask.active_warps
        for serial, lanes in self._observers.items():
            self._observers[serial] = lanes | (synced & lanes.any(axis=2, keepdims=True))

    def read(self, touch: Touch) -> None:
        """Judge a read."""
        self._check_landed(touch, "reads")
        self._take_over(touch, self.reader, self.reading_warps)
        super().read(touch)
        self._mark(touch, self.reading_warps, self.read_time)

    def write(self, touch: Touch) -> None:
        """Judge a write, an atomic operation, the start of a cp.async, or an operation on an mbarrier."""
        self._check_landed(touch, "writes")
        self._check_sources(touch, "writes")
        if touch.entry.access in TOGETHER:
            self._take_over(touch, self.updater, self.updating_warps)
        else:
            self._take_over(touch, self.writer, self.writing_warps)
        super().write(touch)
        self.landed[touch.rows, touch.granules] = 0
        if touch.entry.access in TOGETHER:
            self._mark(touch, self.updating_warps, self.update_time)
        else:
            self._mark(touch, self.writing_warps, self.write_time)

    def _start(self, touch: Touch, sign: int = 1) -> None:
        """A bulk copy or an asynchronous store begins: from now on its bytes belong to nobody.

        Args:
            touch: Where to.
            sign: -1 of a reduction: several of them may be under way to one place.
        """
        text = f"starts {_name_of(touch)} to"
        self.require_landed(touch, f"{text} {{0}}", touch.held(self.flight) < 0 if sign < 0 else None)
        self._check_landed(touch, text)
        self._check_sources(touch, text)
        if sign > 0 and (hit := touch.repeated()):
            self.found(FaultKind.SHARED_RACE, touch, hit, f"{text} {{0}}, to which another thread starts one")
        for owners, did in ((self.reader, "read"), (self.writer, "wrote"), (self.updater, "wrote")):
            if hit := touch.conflict(owners):
                who = self.name_at(touch, owners, hit)
                self.found(FaultKind.SHARED_RACE, touch, hit, f"{text} {{0}}, which {who} {did}")
        if sign < 0 and (hit := first_hit(~touch.held(self.written))):
            self.found(FaultKind.UNINITIALISED_SHARED, touch, hit, f"{text} {{0}}, which was never written")
        if isinstance(touch.entry.pattern, ChunkPattern):
            self.require_fence(touch, f"{text} {{0}}")
        self.taken_over(touch)
        place = touch.rows, touch.granules
        for name in self.PASSING:
            getattr(self, name)[place] = 0
        serial = touch.entry.pattern.serial
        self.flight[place] = sign * serial
        self.in_flight[place] = touch.entry.line + 1
        self._observers.pop(serial, None)

    def _source(self, touch: Touch, verb: str, counted: NDArray[np.int16]) -> None:
        """A bulk copy from shared memory, or a product, begins: its bytes must stay as they are."""
        self.require_landed(touch, f"{verb} {{0}}")
        self._check_landed(touch, verb)
        for owners in (self.writer, self.updater):
            if hit := touch.conflict(owners):
                text = f"{verb} {{0}}, which {self.name_at(touch, owners, hit)} wrote"
                self.found(FaultKind.SHARED_RACE, touch, hit, text, met=touch.at(owners, hit))
        if hit := first_hit(~touch.held(self.written)):
            text = f"{verb} {{0}}, which was never written"
            self.found(FaultKind.UNINITIALISED_SHARED, touch, hit, text)
        self.require_fence(touch, f"{verb} {{0}}")
        np.add.at(counted, (touch.rows, touch.granules), 1)
        touch.put(self.source_line, touch.entry.line)

    def _observe(self, signal: Signal, touch: Touch) -> None:
        """Threads waited for a bulk copy that has arrived: they may use its bytes."""
        assert signal.copy is not None
        serial, place = signal.copy.serial, (touch.rows, touch.granules)
        blocks = signal.lanes.any(axis=(1, 2))
        reached = np.broadcast_to(blocks, (len(self.written),))[touch.rows]
        arriving = (np.abs(touch.held(self.flight)) == serial) & reached
        known = self._observers.get(serial)
        observers = signal.lanes if known is None else known | signal.lanes
        self._observers[serial] = observers
        landed = touch.held(self.landed)
        changed = arriving | (landed == serial)
        self.landed[place] = np.where(changed, 0 if observers.all() else serial, landed)
        for table in (self.flight, self.in_flight):
            table[place] = np.where(arriving, 0, touch.held(table))
        self.written[place] |= arriving

    def _release(self, signal: Signal) -> None:
        warps = np.asarray(signal.lanes.any(axis=2))
        known = self._arrivals.get(signal.phase)
        if known is None:
            known = np.full((1, 1), -1, dtype=np.int32)
        self._arrivals[signal.phase] = np.where(warps, np.int32(self._now), known)

    def _release_fenced(self, signal: Signal) -> None:
        """A relaxed arrival, or an atomic operation, releases what its warp did before its last fence."""
        reach = (FENCE_PHASE,) if signal.phase in CLUSTER_PHASES else (FENCE_PHASE, NEAR_FENCE_PHASE)
        fences = [self._arrivals[phase] for phase in reach if phase in self._arrivals]
        if fences:
            fenced = reduce(np.maximum, fences)
            warps = np.asarray(signal.lanes.any(axis=2))
            known = self._arrivals.get(signal.phase, np.full((1, 1), -1, dtype=np.int32))
            self._arrivals[signal.phase] = np.where(warps, fenced, known)

    def _meet_in_blocks(self, signal: Signal) -> None:
        """Whole blocks of clusters meet: what only warps of such a block did is settled for that block."""
        rows, layout = len(self.written), self.layout
        by_block = signal.lanes.reshape(len(signal.lanes), layout.blocks, -1)
        met = np.asarray(by_block.any(axis=2))
        complete = np.broadcast_to(met, (rows, layout.blocks))
        ranks = np.arange(layout.blocks, dtype=np.uint32) * np.uint32(layout.bits_of_block)
        sets = np.left_shift(np.uint32((1 << layout.bits_of_block) - 1), ranks)
        for owners, warps, since in (
            (self.writer, self.writing_warps, self.write_settled),
            (self.reader, self.reading_warps, self.read_settled),
            (self.updater, self.updating_warps, self.update_settled),
        ):
            block, place = np.nonzero((owners != 0) & complete.any(axis=1, keepdims=True))
            owner, known = owners[block, place], warps[block, place]
            passed_on = owner >= SETTLED
            if passed_on.any():
                known = np.where(passed_on, self._settled[np.where(passed_on, owner - SETTLED, 0)], known)
            settled = np.where(passed_on, known, np.uint32(0))
            reached = np.zeros(len(block), dtype=np.bool_)
            for rank, members in enumerate(sets):
                inside = np.where(passed_on, (known & members) != 0, (known & ~members) == 0)
                inside &= complete[block, rank]
                settled = np.where(inside, settled | members, settled)
                reached |= inside
            block, place = block[reached], place[reached]
            owners[block, place] = self._numbered(settled[reached])
            since[block, place] = self._now
        self.hand_on_in_blocks(complete, sets)
        for serial, lanes in self._observers.items():
            whole = np.broadcast_to(lanes, (len(lanes), *signal.lanes.shape[1:]))
            seen = np.asarray(whole.reshape(len(lanes), layout.blocks, -1).any(axis=2))
            seen = np.repeat(seen, layout.warps, axis=1)[:, :, None]
            self._observers[serial] = lanes | (signal.lanes & seen)

    def _acquire(self, signal: Signal) -> None:
        """Settle what was done before the arrivals at this phase, for the warps that waited for it."""
        times = self._arrivals.get(signal.phase)
        if times is None:
            return
        blocks = len(self.written)
        waiting = np.broadcast_to(warp_bits(np.asarray(signal.lanes.any(axis=2)), self.layout), (blocks,))
        times = np.broadcast_to(times, (blocks, times.shape[1]))
        of_bits = self.layout.grouped(times)
        self.hand_on(of_bits, waiting)
        arrived = times >= 0
        bits, latest = warp_bits(arrived, self.layout), times.max(axis=1)
        everybody = everybody_of(self.layout, times.shape[1])
        for owners, warps, when, since in (
            (self.writer, self.writing_warps, self.write_time, self.write_settled),
            (self.reader, self.reading_warps, self.read_time, self.read_settled),
            (self.updater, self.updating_warps, self.update_time, self.update_settled),
        ):
            block, place = np.nonzero((owners != 0) & (waiting != 0)[:, None])
            owner, touched = owners[block, place], warps[block, place]
            # Those that touched it arrived here after they did,
            alone = (touched & (touched - np.uint32(1))) == 0
            only = np.where(alone, np.log2(np.maximum(touched, 1)).astype(np.intp), 0)
            limit = np.where(alone, of_bits[block, only], latest[block])
            arrives = ((touched & ~bits[block]) == 0) & (when[block, place] <= limit)
            # or somebody for whom it was settled did so since.
            passed_on = owner >= SETTLED
            known = self._settled[np.where(passed_on, owner - SETTLED, 0)] if passed_on.any() else touched
            arrives |= passed_on & ((known & bits[block]) != 0) & (since[block, place] <= latest[block])
            block, place = block[arrives], place[arrives]
            settled = np.where(passed_on, known, touched)[arrives] | waiting[block]
            for_all = settled == everybody
            owners[block, place] = np.where(for_all, 0, self._numbered(settled))
            since[block, place] = self._now
            warps[block[for_all], place[for_all]] = 0
        for serial, lanes in self._observers.items():
            seen = np.asarray((lanes.any(axis=2) & arrived).any(axis=1))[:, None, None]
            self._observers[serial] = lanes | (signal.lanes & seen)
        if signal.phase[0] < 0:  # the next round of a barrier begins
            self._arrivals[signal.phase] = np.where((waiting != 0)[:, None], np.int32(-1), times)

    def _numbered(self, sets: NDArray[np.uint32]) -> Owners:
        """Return the owner that stands for each set of warps."""
        different, which = np.unique(sets, return_inverse=True)
        numbers = []
        for bits in different:
            (known,) = np.nonzero(self._settled == bits)
            if not len(known):
                self._settled = np.append(self._settled, bits)
            numbers.append(SETTLED + (int(known[0]) if len(known) else len(self._settled) - 1))
        return np.array(numbers, dtype=np.int32)[which.reshape(-1)]

    def _take_over(self, touch: Touch, owners: Owners, warps: NDArray[np.uint32]) -> None:
        """Where all that was done before is settled for these threads, they alone count from now on."""
        place = touch.rows, touch.granules
        settled = touch.is_settled(touch.held(owners))
        if settled.any():
            warps[place] = np.where(settled, 0, warps[place])

    def _check_landed(self, touch: Touch, verb: str) -> None:
        """Nobody may touch the bytes of a bulk copy that arrived before waiting for it."""
        landed = touch.held(self.landed)
        if not landed.any():
            return
        for serial in np.unique(landed[landed != 0]):
            lanes = np.broadcast_to(self._observers[int(serial)], (len(self.written), touch.warps, 32))
            allowed: Bools = lanes
            for axis, merged in enumerate(touch.lead, 1):
                allowed = np.asarray(allowed.all(axis=axis, keepdims=True)) if merged > 1 else allowed
            wrong = (landed == serial) & ~allowed[touch.block, touch.warp, touch.lane][:, None]
            if wrong.any():
                row, column = (int(i) for i in np.argwhere(wrong)[0])
                self._unseen(touch, (row, column), ~lanes, verb)

    def _unseen(self, touch: Touch, hit: Hit, blind: Bools, verb: str) -> None:
        """Name the thread: the row of the hit may stand for several."""
        (block, warp, lane), address = touch.position(hit)
        warps = slice(None) if touch.lead[0] > 1 else slice(warp, warp + 1)
        lanes = slice(None) if touch.lead[1] > 1 else slice(lane, lane + 1)
        more_warps, more_lanes = (int(i) for i in np.argwhere(blind[block, warps, lanes])[0])
        position = (block, more_warps + (warps.start or 0), more_lanes + (lanes.start or 0))
        where, address = self.layout.byte(address)
        text = f"{verb} {where}, where a bulk copy arrived that it did not wait for"
        self.report(Verdict(FaultKind.ASYNC_COPY, touch.entry.line, position, address, text))

    def _check_sources(self, touch: Touch, verb: str) -> None:
        for counted, what in ((self.sourced, "bulk copy"), (self.multiplied, "wgmma")):
            if hit := first_hit(touch.held(counted) > 0):
                line = touch.at(self.source_line, hit)
                text = f"{verb} {{0}}, which the {what} of line {line} still reads"
                self.found(FaultKind.ASYNC_COPY, touch, hit, text)

    def _was_read(self, touch: Touch) -> None:
        touch.put_owner(self.reader)
        self._mark(touch, self.reading_warps, self.read_time)

    def _mark(self, touch: Touch, warps: NDArray[np.uint32], when: NDArray[np.int32]) -> None:
        """Remember which warps touched what, and when."""
        place = touch.rows, touch.granules
        when[place] = self._now
        if touch.lead[0] > 1:
            warps[place] |= everybody_of(self.layout, touch.warps)
            return
        bits = np.left_shift(np.uint32(1), self.layout.bit_of(touch.warp).astype(np.uint32))
        flat = touch.flat(warps.shape[1])
        # One after the other: several warps may touch a granule. The table has all rows in one piece.
        np.bitwise_or.at(warps.reshape(-1), flat.reshape(-1), np.repeat(bits, flat.shape[1]))


def _name_of(touch: Touch) -> str:
    """Return what a message calls what a touch starts."""
    return "a bulk copy" if isinstance(touch.entry.pattern, ChunkPattern) else "an asynchronous store"
