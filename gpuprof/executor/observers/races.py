# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Find shared-memory races, reads of what nobody wrote, and reads of copies still in flight.

Between two barriers, two threads may not touch the same byte unless both only read, both are atomic, or both
write the same value. That warps run in lockstep here excuses nothing, since CUDA does not promise it; only
`__syncwarp` orders the threads of a warp.
"""

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, Index, SharedByte, race_clause
from gpuprof.executor.lanes.block_kinds import Kinds, first_of, kinds_of, rows_of
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.lanes.scalars import uniform_blocks
from gpuprof.executor.memory.accesses import Access, Entry, Signal
from gpuprof.executor.memory.shared_memory import SharedMemory
from gpuprof.executor.memory.warp_clocks import Change, Times, WarpClocks
from gpuprof.executor.observers.touches import (
    EXCHANGED,
    MOMENT_SHIFT,
    SEVERAL,
    Hit,
    Stamps,
    StampSets,
    Touch,
    first_hit,
    lane_of,
    line_of,
    stamped,
)

#: Accesses that several threads may make at once.
TOGETHER = (Access.ATOMIC, Access.MBARRIER, Access.ARRIVED)
#: What is told of who touched a granule, by the name of the table.
_DID = {"writer": "writes", "reader": "reads", "updater": "changes"}
OTHER_VALUE = " with another value"
#: Tells threadIdx and blockIdx of a (block, warp, lane).
Names = Callable[[tuple[int, int, int]], tuple[Index, Index]]
#: Takes something wrong: what happened, the line, the position (block, warp, lane), and the byte, if one is.
Report = Callable[[FaultKind, str, int, tuple[int, int, int], SharedByte | None], None]


class Interval:
    """Shared memory between two barriers: who read and who wrote each granule, so far.

    Each warp has a clock: until when what each one did happened before what it does now. Of each granule it
    is kept when each warp read, wrote and updated it last, as numbers of sets of stamps; what the clock of a
    warp covers is settled for it. Arrays have shape (kinds, granules): blocks that did the same so far have
    one row. `kinds` has that of each block, `first` the first block of each. All accesses are multiples of
    `granule` bytes, and aligned.
    """

    #: What outlives a barrier: was a granule ever written, and one more than the source line of the copy that
    #: is in flight to it, of whatever kind; 0 where none is.
    LASTING: ClassVar[dict[str, Any]] = {"written": np.bool_, "in_flight": np.int32}
    #: What a barrier settles: who wrote it, who read it, and who did an atomic operation on it.
    PASSING: ClassVar[dict[str, Any]] = dict.fromkeys(_DID, np.int32)
    #: Those of them that are numbers of sets.
    SETS: ClassVar[tuple[str, ...]] = tuple(_DID)

    written: Bools
    in_flight: NDArray[np.int32]
    writer: NDArray[np.int32]
    reader: NDArray[np.int32]
    updater: NDArray[np.int32]

    def __init__(
        self, shared: SharedMemory, granule: int, report: Report, layout: ClusterLayout, names: Names
    ) -> None:
        self.kinds: Kinds = np.zeros(len(shared.content), dtype=np.intp)
        self.first = first_of(self.kinds)
        self.report = report
        self.granule = granule
        self.layout = layout
        self.names = names
        for name, dtype in (self.LASTING | self.PASSING).items():
            setattr(self, name, np.zeros((1, shared.size // granule + 1), dtype))
        self.values_matter = False
        self._begin()

    def _begin(self) -> None:
        warps, self._now = self.layout.warps * self.layout.blocks, 0
        self._sets, self._clocks = StampSets(warps), WarpClocks(warps, self.layout.blocks)

    def normalise(self) -> tuple[object, int]:
        """Bring into a form that is the same for states with the same future; return its digest and bytes."""
        self._forget_settled()
        kinds = kinds_of(*self._arrays().values(), *self._parts().values())
        self._tell_apart(kinds[self.kinds])
        arrays = self._arrays()
        others = {**self._parts(), "kinds": self.kinds, "sets": self._sets.rows}
        # Python's hashes of bytes take a quarter of the time that those for secrets do.
        digest = frozenset(
            (title, array.shape, hash(array.tobytes())) for title, array in (arrays | others).items()
        )
        return digest, sum(array.nbytes for array in arrays.values())

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in (*self.LASTING, *self.PASSING)}

    def _parts(self) -> dict[str, NDArray[Any]]:
        """Return the rest of the state, by title: of shape (kinds or 1, …)."""
        parts: dict[str, NDArray[Any]] = {}
        self._change(lambda title, array: parts.setdefault(title, array))
        return parts

    def _change(self, change: Change) -> None:
        """Replace all arrays but those of granules."""
        self._clocks.change(change)

    def _forget_settled(self) -> None:
        """Forget what everybody knows, and number the moments anew: only their order matters."""
        if not any(getattr(self, name).any() for name in self.SETS) and not self._seen():
            self._begin()  # as behind a barrier
            return
        limit = self._clocks.times.min(axis=1)
        rows = np.arange(len(self.written))[:, None] if len(limit) > 1 else 0
        found = []
        for name in self.SETS:
            table = getattr(self, name)
            keys = table.astype(np.int64) * len(limit) + rows
            # Many granules of few sets: without sorting.
            there = np.zeros(len(self._sets.rows) * len(limit), dtype=np.bool_)
            there[keys] = True
            different, which = np.flatnonzero(there), (np.cumsum(there) - 1)[keys]
            number, row = np.divmod(different, len(limit))
            stamps = self._sets[number]
            if name in _DID:
                stamps = np.where(self._settled(stamps, limit[row]), 0, stamps)
            found.append((table, stamps, which))
        every = np.concatenate([stamps for _, stamps, _ in found])
        moments = every >> MOMENT_SHIFT
        happened = np.flatnonzero(np.bincount(np.concatenate([moments, *self._seen()]).reshape(-1)))
        happened = happened[happened > 0]

        def ranked(times: NDArray[Any]) -> NDArray[Any]:
            return np.searchsorted(happened, times, side="right") if times.dtype != np.bool_ else times

        self._sets = StampSets(every.shape[1])
        numbers = self._sets.add(every + (ranked(moments) - moments << MOMENT_SHIFT))
        for table, stamps, which in found:
            table[...], numbers = numbers[: len(stamps)][which], numbers[len(stamps) :]
        self._now = len(happened)
        self._change(lambda title, array: uniform_blocks(ranked(array)))
        self._clocks.forget()

    def _seen(self) -> list[Times]:
        """Return other moments that matter, one for each warp."""
        return []

    def copied(self) -> Self:
        """Return an interval of its own in the same state."""
        result = copy.copy(self)
        for name, value in vars(self).items():
            if hasattr(value, "copy"):
                setattr(result, name, value.copy())
        return result

    def settle(self) -> None:
        """All threads passed a barrier."""
        for name in self.PASSING:
            getattr(self, name)[...] = 0
        self._begin()

    def replay(self, log: list[Entry]) -> None:
        """Go through the accesses in order and report the first that is wrong."""
        several = {entry.pattern for entry in log if entry.pattern.leading > 1}
        self._tell_apart(kinds_of(self.kinds[:, None], *(pattern.kinds[:, None] for pattern in several)))
        for entry in log:
            self._now += 1
            self.apply(entry._replace(pattern=entry.pattern.of_blocks(self.first)))

    def _tell_apart(self, kinds: Kinds) -> None:
        """Have a row for each of these kinds of blocks, from now on."""
        first = first_of(kinds)
        if len(first) != len(self.first):
            self._take(self.kinds[first])
            self.kinds, self.first = kinds, first

    def _take(self, rows: NDArray[np.intp]) -> None:
        vars(self).update({name: array[rows] for name, array in self._arrays().items()})
        self._change(lambda title, array: rows_of(array, rows))

    def apply(self, entry: Entry) -> None:
        if isinstance(entry.pattern, Signal):
            self._clocks.hear(entry.access, entry.pattern, self._now)
            return
        touch = self.touch(entry)
        if entry.access in (Access.READ, Access.EXCHANGED):
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

    def _asked(
        self, numbers: NDArray[np.int32], row: NDArray[np.intp], warp: NDArray[np.intp]
    ) -> tuple[Stamps, Bools, Any, NDArray[np.intp]]:
        """Ask of sets of stamps, of what warps of a row meet, what is settled for these.

        Returns the different ones, which of their stamps are settled, what the asking warp of each one did
        itself, and which of them each granule has.
        """
        clock = self._clocks.times
        rows, warps = clock.shape[:2]
        keys = (numbers.astype(np.int64) * rows + (row if rows > 1 else 0)) * warps + warp
        different, which = np.unique(keys, return_inverse=True)
        rest, asker = np.divmod(different, warps)
        stamps = self._sets[rest // rows]
        settled = self._settled(stamps, clock[rest % rows, asker])
        return stamps, settled, (np.arange(len(asker)), asker), which.reshape(keys.shape)

    def _settled(self, stamps: Stamps, times: Times) -> Bools:
        """Return which stamps, of shape (…, warps), are settled for a warp that has these `times`."""
        moments, (known, whole) = stamps >> MOMENT_SHIFT, np.split(times, 2, axis=-1)
        alone = self._clocks.alone[0]
        if not alone.any():
            return np.asarray(moments <= whole)
        # Of several lanes it is not kept which; what a shuffle took has been read when any lane goes on.
        lanes = alone.sum(axis=1, keepdims=True)
        heard = np.concatenate([lanes < 0, alone, lanes > 1, lanes > 0], axis=1)
        heard = heard[np.arange(len(alone)), lane_of(stamps)]
        return np.asarray(moments <= np.where(heard, known, whole))

    def _conflict(self, touch: Touch, name: str, changed: Bools | None) -> tuple[Hit, Stamps] | None:
        """Return the first granule that another thread touched without order, by the table of that name.

        With it the stamps of who did. Of the lanes that are true in `changed`, if that is given.
        """
        numbers = touch.held(getattr(self, name))
        if not numbers.any():
            return None
        stamps, settled, own, which = self._asked(numbers, touch.rows, touch.warp[:, None])
        stamps = np.where(settled, 0, stamps)
        lanes = lane_of(stamps[own])[which]
        apart = (lanes != 0) & (lanes != touch.lanes[:, None])
        apart &= (lanes != EXCHANGED) & ~self._met_by(touch, stamps[own][which])
        hit = apart | ((stamps != 0).sum(axis=1)[which] > (lanes != 0))
        if changed is not None and hit.any():
            self.values_matter, chosen = True, changed
            if len(changed) > 1:
                chosen = np.zeros((len(self.first), *changed.shape[1:]), dtype=np.bool_)
                np.logical_or.at(chosen, self.kinds, changed)
            shape = (len(self.written), touch.warps, WARP)
            hit &= np.broadcast_to(chosen, shape)[touch.block, touch.warp, touch.lane][:, None]
        if (found := first_hit(hit)) is None:
            return None
        met = stamps[which[found]]
        met[touch.warp[found[0]]] *= apart[found]
        return found, met

    def _met_by(self, touch: Touch, stamps: Stamps) -> Bools:
        """Return what lanes of its warp did whom a touch's lanes have met since.

        Of several lanes it is not kept which: who has met any of its warp since is taken to have met them.
        """
        if (lanes := self._clocks.lanes) is None:
            return np.zeros((1, 1), dtype=np.bool_)
        told = lanes[touch.block if len(lanes) > 1 else 0, touch.warp, touch.lane]
        which = lane_of(stamps)
        since = np.take_along_axis(told, (which - 1) % WARP, axis=1)
        since = np.where(which == SEVERAL, told.max(axis=1, keepdims=True), since)
        return np.asarray(stamps >> MOMENT_SHIFT <= since)

    def mark(self, touch: Touch, name: str) -> None:
        """Add threads to those who touched each granule, in the table of that name."""
        table = getattr(self, name)
        granules, begins, row = touch.by_granule(table.shape[1])
        held, warp, lanes = table.reshape(-1)[granules], touch.warp[row], touch.lanes[row]
        if touch.entry.access is Access.EXCHANGED:
            lanes = np.full_like(lanes, EXCHANGED)
        which = np.repeat(np.arange(len(granules)), np.diff(begins, append=len(row)))
        new = np.zeros((len(granules), self._clocks.known.shape[1]), dtype=np.int64)
        new[which, warp] = lanes
        lost = new[which, warp] != lanes
        new[which[lost], warp[lost]] = SEVERAL
        kept = np.zeros_like(new)
        if held.any():
            # Who comes now stands for those who are settled for all that do.
            _, settled, _, asked = self._asked(held[which], touch.block[row], warp)
            settled = np.logical_and.reduceat(settled[asked], begins)
            kept = np.where(settled, 0, self._sets[held])
            theirs = lane_of(kept)
            new = np.where((new == EXCHANGED) & (theirs != 0), theirs, new)
            new[(new != 0) & (theirs != 0) & (theirs != EXCHANGED) & (theirs != new)] = SEVERAL
        table.reshape(-1)[granules] = self._sets.add(
            np.where(new != 0, stamped(self._now, touch.entry.line, new), kept)
        )

    def read(self, touch: Touch) -> None:
        self.require_landed(touch)
        self.require_written(touch)
        self.mark(touch, "reader")

    def require_written(self, touch: Touch) -> None:
        """Report a read of what another thread wrote without order, or nobody."""
        for name in ("writer", "updater"):
            self.meet(touch, name, reads=True)
        self.require_known(touch)

    def require_known(self, touch: Touch) -> None:
        """Report a use of what nobody wrote."""
        missing = ~touch.held(self.written)
        self.refuse(FaultKind.UNINITIALISED_SHARED, touch, missing, "which was never written")

    def write(self, touch: Touch) -> None:
        """Judge a write, an atomic operation, the start of a copy, or an operation on an mbarrier."""
        access = touch.entry.access
        self.require_landed(touch)
        self.meet(touch, "reader")
        together = access in TOGETHER
        for name in ("writer",) if together else ("writer", "updater"):
            self.meet(touch, name, touch.entry.changed)
        if access is Access.ATOMIC:
            self.require_known(touch)
        self.mark(touch, "updater" if together else "writer")
        if access is Access.COPY:
            touch.put(self.in_flight, touch.entry.line + 1)
        else:
            touch.put(self.written, True)

    def require_landed(self, touch: Touch, spared: Bools | None = None) -> None:
        """Report a place to which a copy is in flight: when it lands, and before or after what, is open.

        Not even the copy's own thread may touch it, nor start another one there. Granules that are `spared`
        do not matter.
        """
        flying = touch.held(self.in_flight)
        wrong = flying != 0 if spared is None else (flying != 0) & ~spared
        text = "to which the copy that line {} started is still in flight"
        self.refuse(FaultKind.ASYNC_COPY, touch, wrong, text, flying - 1)

    def meet(self, touch: Touch, name: str, changed: Bools | None = None, *, reads: bool = False) -> None:
        """Report a race of a touch, which perhaps only `reads`, with what the table of that name tells.

        Lanes in `changed`, if that is given, found another value than they wrote: of the others it is none.
        """
        if (found := self._conflict(touch, name, changed)) is None:
            return
        hit, stamps = found
        others = np.flatnonzero(stamps)
        warp = int(others[stamps[others].argmax()])
        lane, line = int(lane_of(stamps[warp])), line_of(int(stamps[warp]))
        position, address = self._position(touch, hit)
        if changed is not None and len(changed) > 1:
            # Blocks of a kind do the same, but not with the same values: name one whose values differ.
            lanes = np.broadcast_to(changed, (len(changed), touch.warps, 32))[:, position[1], position[2]]
            alike = self.kinds == touch.block[hit[0]]
            position = (int((lanes & alike).argmax()), *position[1:])
        who = "one of several threads"
        if len(others) == 1:
            thread, block = self.names((position[0], warp, min(lane, WARP) - 1))
            one = f"thread {thread}" if lane < SEVERAL else f"a thread of warp {warp % self.layout.warps}"
            who = f"{one} of block {block}"
        where, byte = self.layout.byte(address)
        apart = warp // self.layout.warps != position[1] // self.layout.warps
        known = self._clocks.known[touch.block[hit[0]] % len(self._clocks.known), touch.warp[hit[0]], warp]
        unheard = bool(stamps[warp] >> MOMENT_SHIFT <= known)
        place = SharedByte(byte, line, (reads, name == "reader"), apart, unheard)
        race = race_clause(who, _DID[name], line, "" if changed is None else OTHER_VALUE)
        self.report(FaultKind.SHARED_RACE, f"{touch.does} {where}, {race}", touch.entry.line, position, place)

    def refuse(
        self, kind: FaultKind, touch: Touch, wrong: Bools, text: str, lines: NDArray[Any] | int = 0
    ) -> None:
        """Report the first granule of a touch that is `wrong`; `text` says why, and takes one of `lines`."""
        if (hit := first_hit(wrong)) is None:
            return
        position, address = self._position(touch, hit)
        where, byte = self.layout.byte(address)
        detail = f"{touch.does} {where}, {text.format(int(np.broadcast_to(lines, wrong.shape)[hit]))}"
        line = touch.entry.line
        place = SharedByte(byte, line if kind is FaultKind.SHARED_RACE else None)
        self.report(kind, detail, line, position, place)

    def _position(self, touch: Touch, hit: Hit) -> tuple[tuple[int, int, int], int]:
        """Return (block, warp, lane) and byte address of a hit: of blocks that did the same, the first."""
        (row, warp, lane), address = touch.position(hit)
        return (int(self.first[row]), warp, lane), address
