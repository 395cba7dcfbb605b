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

The shared memory of a block is given to others when its last thread ends. What other blocks of its cluster
touch must be settled for it by then, and what the copy engine brings or takes must have been waited for. A
relaxed arrival at the barrier of the cluster tells that reads are over, as who arrives has what it read.
Writes, and arrivals at mbarriers, may still be on their way: cards stop where they find the block gone.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, race_clause
from gpuprof.executor.lanes.masks import WARP, Bools, first_true
from gpuprof.executor.memory.accesses import Access, Entry, Signal
from gpuprof.executor.memory.shared_memory import ChunkPattern
from gpuprof.executor.memory.warp_clocks import Change, Times, WarpClocks
from gpuprof.executor.memory.warp_rows import grouped
from gpuprof.executor.observers.races import Interval
from gpuprof.executor.observers.touches import (
    MOMENT_SHIFT,
    SEVERAL,
    Touch,
    first_hit,
    lane_of,
    line_of,
    stamped,
)

#: What leaves something behind that the copy engine does not see.
_GENERIC = (Access.WRITE, Access.ATOMIC, Access.LANDED)
#: Who has waited for a copy, where nobody has.
_NOBODY = (np.zeros((1, 1, 1), np.bool_), np.zeros((1, 1), np.int64), 0)
_UNSEEN = "where a bulk copy arrived that it did not wait for, started by line {}"


class PhasedInterval(Interval):
    """Shared memory between two barriers, where other things order accesses too.

    If it is `strict`, blocks must not end while others may still touch their memory. Where threads order what
    they do by fences and flags, only what is touched when its block has ended is wrong.
    """

    #: Also: the serial of the bulk copy in flight to a granule, how many bulk copies still read it, and how
    #: many products of matrices; the source line of the last of these that began; and one more than that of
    #: the last ordinary write that no fence has followed, negative where `cp.async` wrote.
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

    def __init__(self, *about: Any, strict: bool) -> None:
        super().__init__(*about)
        self._strict = strict
        self._ended: Bools = np.zeros((1, self.layout.blocks), dtype=np.bool_)

    def _begin(self) -> None:
        super()._begin()
        #: What has been read, or copied: relaxed arrivals tell of it too, and the end of copies.
        self._met = WarpClocks(self.layout.warps * self.layout.blocks, self.layout.blocks)
        #: The last copy of each pattern between blocks of a cluster: whose memory it touches, by rank, which
        #: lanes started it, when their warps did, and the line.
        self._remote: dict[int, tuple[Bools, Bools, Times, int]] = {}
        #: When each warp last wrote to another block, or arrived there, by that one's rank and the line.
        self._sent: dict[tuple[int, int], Times] = {}
        #: Who has waited for each copy in `landed`, when its warp first did, and the line that started it.
        self._observers: dict[int, tuple[Bools, Times, int]] = {}

    def _change(self, change: Change) -> None:
        super()._change(change)
        self._met.change(lambda title, times: change(f"met {title}", times))
        self._ended = change("ended", self._ended)
        self._sent = {
            (rank, line): change(f"sent to {rank} {line}", times)
            for (rank, line), times in self._sent.items()
        }
        self._observers = {
            serial: (change(f"lanes {serial} {line}", lanes), change(f"since {serial}", since), line)
            for serial, (lanes, since, line) in self._observers.items()
        }
        self._remote = {
            serial: (
                change(f"owners {serial} {line}", owners),
                change(f"sent {serial}", lanes),
                change(f"started {serial}", since),
                line,
            )
            for serial, (owners, lanes, since, line) in self._remote.items()
        }

    def _forget_settled(self) -> None:
        if seen := [serial for serial in self._observers if self._seeing(serial).all()]:
            self.landed[np.isin(self.landed, seen)] = 0
        for serial in seen:
            self._remote.pop(serial, None)
        known = {*np.flatnonzero(np.bincount(self.landed.reshape(-1))).tolist(), *self._remote}
        self._observers = {serial: one for serial, one in self._observers.items() if serial in known}
        self._sent = {key: times for key in self._sent if (times := self._on_the_way(*key)).any()}
        super()._forget_settled()
        self._met.forget()

    def _seen(self) -> list[Times]:
        started = [since for _, _, since, _ in self._remote.values()]
        return [*started, *(since for _, since, _ in self._observers.values()), *self._sent.values()]

    def settle(self) -> None:
        """As of `Interval`: fences hold for everybody."""
        self.unfenced[self.fenced != 0] = 0
        super().settle()

    def apply(self, entry: Entry) -> None:
        if self.layout.several:
            self._follow_blocks(entry)
        self._judge(entry)
        if entry.access in _GENERIC:
            touch = self.touch(entry)
            line = entry.line + 1
            touch.put(self.unfenced, -line if entry.access is Access.LANDED else line)
            touch.put(self.fenced, 0)

    def _judge(self, entry: Entry) -> None:
        match entry.access, entry.pattern:
            case Access.FENCE, Signal() as signal:
                self._fence(signal)
            case Access.ENDED, Signal() as signal:
                self._end(signal)
            case Access.PASSED, Signal(copy=ChunkPattern(serial=serial)) as signal:
                if serial in self._remote:
                    owners, lanes, since, line = self._remote[serial]
                    sources = self._ranks(np.asarray(signal.lanes.any(axis=2)))
                    self._remote[serial] = owners | sources, lanes, since, line
            case Access.STARTED, _:
                pass
            case Access.OBSERVED, Signal() as signal:
                self._observe(signal, self.touch(entry))
            case Access.BULK, _:
                self._start(self.touch(entry))
            case Access.REDUCTION, _:
                self._start(self.touch(entry), -1)
            case Access.SOURCE, _:
                touch = self.touch(entry)
                self._source(touch, self.sourced)
                self.mark(touch, "reader")
            case Access.MULTIPLIED, _:
                self._source(self.touch(entry), self.multiplied)
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
        self._check_landed(touch)
        super().read(touch)

    def write(self, touch: Touch) -> None:
        """Judge a write, an atomic operation, the start of a cp.async, or an operation on an mbarrier."""
        self._check_landed(touch)
        self._check_sources(touch)
        super().write(touch)
        touch.put(self.landed, 0)

    def _start(self, touch: Touch, sign: int = 1) -> None:
        """A bulk copy or an asynchronous store begins: from now on its bytes belong to nobody.

        Of a reduction, whose `sign` is -1, several may be under way to one place.
        """
        self.require_landed(touch, (touch.held(self.flight) < 0) & (sign < 0))
        self._check_landed(touch)
        self._check_sources(touch)
        if sign > 0:
            twice = race_clause("another thread", "writes", touch.entry.line)
            self.refuse(FaultKind.SHARED_RACE, touch, touch.repeated(), twice)
        for name in ("reader", "writer", "updater"):
            self.meet(touch, name)
        if sign < 0:
            self.require_known(touch)
        if isinstance(touch.entry.pattern, ChunkPattern):
            self._require_fence(touch)
        for name in ("unfenced", *self.PASSING):
            touch.put(getattr(self, name), 0)
        serial = touch.entry.pattern.serial
        touch.put(self.flight, sign * serial)
        touch.put(self.in_flight, touch.entry.line + 1)
        self._observers.pop(serial, None)
        if (remote := self._elsewhere(touch)).any():
            block, warp, lane = touch.block[remote], touch.warp[remote], touch.lane[remote]
            owners: Bools = np.zeros((len(self.written), self.layout.blocks), dtype=np.bool_)
            owners[block, touch.start[remote] // self.layout.stride] = True
            lanes: Bools = np.zeros((len(self.written), touch.warps, WARP), dtype=np.bool_)
            lanes[block, warp, lane] = True
            since = np.where(lanes.any(axis=2), self._now, 0)
            self._remote[serial] = owners, lanes, since, touch.entry.line

    def _source(self, touch: Touch, counted: NDArray[np.int16]) -> None:
        """A bulk copy from shared memory, or a product, begins: its bytes must stay as they are."""
        self.require_landed(touch)
        self._check_landed(touch)
        self.require_written(touch)
        # What `cp.async` brought a card's wgmma sees without one, as Triton 3.6 relies on.
        self._require_fence(touch, landed=touch.entry.access is not Access.MULTIPLIED)
        np.add.at(counted, (touch.rows, touch.granules), 1)
        touch.put(self.source_line, touch.entry.line)

    def _check_sources(self, touch: Touch) -> None:
        for counted, what in ((self.sourced, "bulk copy"), (self.multiplied, "wgmma")):
            reads, text = touch.held(counted) > 0, f"which the {what} of line {{}} still reads"
            self.refuse(FaultKind.ASYNC_COPY, touch, reads, text, touch.held(self.source_line))

    def _observe(self, signal: Signal, touch: Touch) -> None:
        """Threads waited for a bulk copy that has arrived: they may use its bytes."""
        assert signal.copy is not None
        serial, place = signal.copy.serial, (touch.rows, touch.granules)
        reached = np.broadcast_to(signal.lanes.any(axis=(1, 2)), (len(self.written),))[touch.rows]
        arriving = (np.abs(touch.held(self.flight)) == serial) & reached
        waiting = np.asarray(signal.lanes.any(axis=2))
        flying = touch.held(self.in_flight)
        lanes, since, line = self._observers.get(serial, _NOBODY)
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

    def _check_landed(self, touch: Touch) -> None:
        """Nobody may touch the bytes of a bulk copy that arrived before waiting for it."""
        landed = touch.held(self.landed)
        if not landed.any():
            return
        for serial in np.unique(landed[landed != 0]).tolist():
            lanes = np.broadcast_to(self._seeing(serial), (len(self.written), touch.warps, WARP))
            wrong = (landed == serial) & ~lanes[touch.block, touch.warp, touch.lane][:, None]
            self.refuse(FaultKind.ASYNC_COPY, touch, wrong, _UNSEEN, self._observers[serial][2])

    # The memory of blocks of a cluster, and whether it is still there.

    def _follow_blocks(self, entry: Entry) -> None:
        """Follow who is done with what, and refuse what touches the memory of a block that has ended."""
        if isinstance(entry.pattern, Signal):
            over = entry.access in (Access.RELAXED, Access.STARTED)
            self._met.hear(Access.RELEASE if over else entry.access, entry.pattern, self._now)
        elif self._ended.any():
            touch = self.touch(entry)
            owner = touch.start // self.layout.stride
            wrong = self._elsewhere(touch) & self._ended[touch.block % len(self._ended), owner]
            if wrong.any():
                position, _ = touch.position((row := int(wrong.argmax()), 0))
                self._blame(position, int(owner[row]), entry.line)
        if entry.access in (Access.WRITE, Access.ATOMIC, Access.ARRIVED):
            self._send(self.touch(entry))

    def _send(self, touch: Touch) -> None:
        """Threads write, or arrive at mbarriers, perhaps in other blocks."""
        owner, elsewhere = touch.start // self.layout.stride, self._elsewhere(touch)
        for rank in np.unique(owner[elsewhere]).tolist():
            chosen = elsewhere & (owner == rank)
            times = np.zeros((len(self.written), self._clocks.times.shape[1]), dtype=np.int64)
            times[touch.block[chosen], touch.warp[chosen]] = self._now
            key = rank, touch.entry.line
            self._sent[key] = np.maximum(self._sent.get(key, 0), times)

    def _on_the_way(self, rank: int, line: int) -> Times:
        """Return when warps arrived there last, 0 where some thread of the rank knows of it."""
        times = self._sent[rank, line]
        return np.where(times > self._told(self._clocks, rank), times, 0)

    def _told(self, clocks: WarpClocks, rank: int) -> Times:
        """Return until when what each warp did is settled for some warp of a rank."""
        shape = len(clocks.known), self.layout.blocks, self.layout.warps, -1
        return np.asarray(clocks.known.reshape(shape)[:, rank].max(axis=1))

    def _elsewhere(self, touch: Touch) -> Bools:
        """Return which of a touch's rows are about memory of another block."""
        if not self.layout.several:
            return np.zeros(len(touch.warp), dtype=np.bool_)
        return np.asarray(touch.start // self.layout.stride != touch.warp // self.layout.warps)

    def _ranks(self, warps: Bools) -> Bools:
        return np.asarray(np.reshape(warps, (len(warps), self.layout.blocks, -1)).any(axis=2))

    def _end(self, signal: Signal) -> None:
        """Blocks have ended: what others touched of their memory is settled for a warp of theirs."""
        gone = self._ranks(np.asarray(signal.lanes.any(axis=2)))
        ended, self._ended = gone & ~self._ended, gone
        for rank in np.flatnonzero(ended.any(axis=0)).tolist() if self._strict else ():
            others = self.layout.rank_of_warp[0, :, 0] != rank
            known = np.where(others, self._told(self._met, rank), self._now)
            self._require_come(rank, ended[:, rank])
            self._require_settled(rank, ended[:, rank], known)
            self._require_over(rank, ended[:, rank], known, others)

    def _require_come(self, rank: int, ended: Bools) -> None:
        """Report what threads sent to a block that ended without knowing of it."""
        for owner, line in self._sent:
            if owner == rank and (late := ended[:, None] & (self._on_the_way(owner, line) > 0)).any():
                row, warp = np.argwhere(late)[0].tolist()
                self._blame((row, warp, 0), rank, line)

    def _require_settled(self, rank: int, ended: Bools, known: Times) -> None:
        """Report what other warps touched of the memory of a block that ended without knowing of it."""
        start = rank * self.layout.stride // self.granule
        part = slice(start, start + self.layout.shared_bytes // self.granule)
        stamps = self._sets.rows
        late = stamps >> MOMENT_SHIFT > known[:, None]
        open_sets = late.any(axis=2) & ended[:, None]
        for name in ("writer", "reader", "updater") if open_sets.any() else ():
            table = getattr(self, name)[:, part]
            shape = (max(len(open_sets), len(table)), -1)
            each, numbers = (np.broadcast_to(one, (shape[0], one.shape[1])) for one in (open_sets, table))
            if hit := first_hit(np.take_along_axis(each, numbers, axis=1)):
                row, number = hit[0], int(numbers[hit])
                met = np.where(late[row % len(late), number], stamps[number], 0)
                warp = int(met.argmax())
                lane = int(lane_of(met[warp]))
                position = row, warp, lane - 1 if lane < SEVERAL else 0
                self._blame(position, rank, line_of(int(met[warp])))

    def _require_over(self, rank: int, ended: Bools, known: Times, others: Bools) -> None:
        """Report copies that touch the memory of a block that ended without knowing that they are over."""
        for serial, (owners, lanes, started, line) in self._remote.items():
            _, heard, _ = self._observers.get(serial, _NOBODY)
            times = np.maximum(heard, np.where(others, started, 0))
            over = np.asarray(((times > 0) & (times <= known)).any(axis=1))
            if (wrong := owners[:, rank] & ended & ~over).any():
                row = int(wrong.argmax())
                _, warp, lane = first_true(lanes[row % len(lanes)][None])
                self._blame((row, warp, lane), rank, line)

    def _blame(self, position: tuple[int, int, int], rank: int, line: int) -> None:
        position = (int(self.first[position[0]]), *position[1:])
        _, block = self.names((position[0], rank * self.layout.warps, 0))
        text = f"accesses shared memory of block {block}, which ends without waiting for that: a barrier of"
        text += " the cluster is missing, or is relaxed and does not wait for it"
        self.report(FaultKind.OUT_OF_BOUNDS, text, line, position, None)

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
        # Who is behind the write: those for whom it is settled, its own thread, or warp, and who met it.
        moments = written >> MOMENT_SHIFT
        alike, some = grouped(np.column_stack([moments, row]))  # lanes of one instruction write at one moment
        known = np.broadcast_to(clock, (rows, *clock.shape[1:]))[row[some]]
        settled = (moments[some, None] <= known).all(axis=2)[alike]
        several, writer = (written != 0).sum(axis=1, keepdims=True) > 1, lane_of(written)
        own = np.take_along_axis(lanes, (writer[..., None] - 1) % WARP, axis=2)[..., 0] & (writer != 0)
        own = np.where(writer == SEVERAL, lanes.any(axis=2), own)
        met = np.zeros_like(own)
        if (told := self._clocks.lanes) is not None:
            told = np.where(lanes[..., None], told[row if len(told) > 1 else 0], 0).max(axis=2)
            since = np.take_along_axis(told, (writer[..., None] - 1) % WARP, axis=2)[..., 0]
            met = (writer != 0) & (moments <= since)
        behind = lanes.any(axis=2) & (settled | several | own | met)
        # One thread that fences does so for itself alone, as does one that is behind nothing but itself.
        number = np.where(lanes.sum(axis=2) == 1, lanes.argmax(axis=2) + 1, SEVERAL)
        number = np.where(settled | several | met | (writer == SEVERAL), number, writer)
        again = behind & (fenced != 0) & (lane_of(fenced) != number)
        fenced = np.where(behind & (fenced == 0), stamped(self._now, 0, number), fenced)
        fenced = np.where(again, fenced - lane_of(fenced) + SEVERAL, fenced)
        self.fenced[here] = self._sets.add(fenced)[which]

    def _require_fence(self, touch: Touch, landed: bool = True) -> None:
        """Report a place that a copy touches and does not see as it was written, or as it `landed`."""
        line = touch.held(self.unfenced)
        line = np.abs(line) if landed else np.maximum(line, 0)
        if not line.any():
            return
        stamps, settled, own, which = self._asked(touch.held(self.fenced), touch.rows, touch.warp[:, None])
        lanes = lane_of(stamps[own])[which]
        done = ((stamps != 0) & settled).any(axis=1)[which]
        fenced = done | (lanes == SEVERAL) | (lanes == touch.lanes[:, None])
        fenced |= (lanes != 0) & self._met_by(touch, stamps[own][which])
        text = "which line {} wrote, and no fence.proxy.async lies between"
        self.refuse(FaultKind.PROXY, touch, (line != 0) & ~fenced, text, line - 1)
