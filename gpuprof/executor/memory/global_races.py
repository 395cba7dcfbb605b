# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Find races on global memory: two threads touch one element, one of them writes, and nothing orders them.

The rule is that of the PTX memory model (chapter "Memory Consistency Model"): two accesses that overlap, one
of them a write, must be ordered (see `thread_order`) or both be *strong*, that is volatile, relaxed, acquire,
release or atomic, with a scope that holds both threads, and of the same bytes: a word and its half are two
places. One exception: several threads may store the same value, as people do on purpose, since it does not
matter who comes last.

That the executor runs blocks in some order excuses nothing. Only blocks that run are judged, and only buffers
that kernels may write.

Most kernels store each element of an output once and do nothing else with it. That is seen from two numbers
at the end of the launch: how many stores there were, and how many elements they wrote. Until then stores are
only logged; as soon as anything else happens to the buffer, the log is replayed and every access judged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.concurrent_accesses import ConcurrentAccesses, unordered
from gpuprof.executor.memory.global_accesses import (
    CONFLICTS,
    NEAR_READS,
    RELAXED_READS,
    STRONG,
    STRONG_READS,
    Manner,
    merged,
    spread,
    values_of,
)
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype
from gpuprof.executor.memory.moments import (
    MOMENT_BITS,
    Numbers,
    Settled,
    Timeline,
    moment_of,
    thread_of,
    with_kind,
)
from gpuprof.executor.memory.open_meetings import OpenMeetings
from gpuprof.executor.memory.releases import Releases, Variable
from gpuprof.executor.memory.thread_order import ThreadOrder

#: Stores that are logged before a buffer's accesses are judged one by one.
_LOGGED_STORES = 1 << 23


@dataclass(frozen=True)
class GlobalRace:
    """Two threads that meet.

    Attributes:
        line: Source line of the access that came second here.
        thread: Its thread's number in the launch.
        address: Its byte in global memory.
        detail: What it does, where; the other thread is still to be named, at {0}, and its line, at {1}.
        other_line: Source line of the other access.
        other: The other thread; the same number where it is not known which one.
        shared: Whether it is shared memory.
    """

    line: int
    thread: int
    address: int
    detail: str
    other_line: int
    other: int
    shared: bool = False


@dataclass(frozen=True)
class _Stores:
    """Logged stores of one instruction: the arguments of `Shadow.write`, and what was settled."""

    order: ThreadOrder
    settled: Settled
    index: NDArray[np.intp]
    values: Lanes
    mask: Mask
    size: int
    moment: int


class GlobalRaces:
    """Judges the global memory accesses of one launch.

    Args:
        buffers: What to judge.
        releases: Whether the program has fences, so that its blocks may wait for each other.
        report: Called with what was found; raises.
        meetings: Told of strong accesses that nothing orders, which are no race.
    """

    def __init__(
        self,
        buffers: list[Buffer],
        *,
        releases: bool,
        report: Callable[[GlobalRace], None],
        meetings: OpenMeetings | None = None,
    ) -> None:
        self.timeline = Timeline()
        self.meetings = meetings or OpenMeetings()
        self.releases = Releases() if releases else None
        self.report = report
        for buffer in buffers:
            buffer.begin_launch()
        #: By the address of the buffer.
        self.shadows = {buffer.address: Shadow(buffer, self) for buffer in buffers}

    def order(self, first: int, blocks: int, warps: int, layout: ClusterLayout = LONE_BLOCK) -> ThreadOrder:
        """Return the order of the threads of a batch that begins with block number `first` of the launch."""
        return ThreadOrder(self.timeline, first, blocks, warps, self.releases, layout)

    def finish(self) -> None:
        """The launch is over: judge what was put off."""
        for shadow in self.shadows.values():
            shadow.finish()
        self.shadows.clear()  # they refer back, and hold the buffers


class Judged(Protocol):
    """Memory whose accesses are judged."""

    @property
    def address(self) -> int:
        """Address of its first byte."""

    @property
    def item_bytes(self) -> int:
        """Bytes of an element, as it was allocated."""

    @property
    def size(self) -> int:
        """Bytes."""

    def view(self, size: int) -> NDArray[Any]:
        """Return the content as elements of `size` bytes."""

    def written_count(self) -> int:
        """Return how many elements this launch has stored to."""

    def place(self, byte: int) -> tuple[str, int]:
        """Return what a message calls a byte, and its address."""


class Shadow:
    """Who touched what of one buffer in the present launch.

    Args:
        buffer: The memory.
        races: To whom races are reported.
        at_once: Whether every access is judged when it happens; else plain stores are only logged at first.

    Attributes:
        variables: What was released by strong writes to this buffer, by byte.
    """

    def __init__(self, buffer: Judged, races: GlobalRaces, *, at_once: bool = False) -> None:
        self.buffer = buffer
        self.races = races
        self.variables: dict[int, Variable] = {}
        self._log: list[_Stores] | None = None if at_once or races.releases is not None else []
        self._logged = 0
        #: Bytes of an element of the arrays below: the smallest access so far.
        self._granule = 0
        self._writers: Numbers | None = None
        #: Whether strong stores changed it, other than by atomic operations.
        self._stored = False
        #: By their manner and, of strong ones, the bytes of an element.
        self._others: dict[tuple[Manner, int], ConcurrentAccesses] = {}

    def read(
        self,
        order: ThreadOrder,
        index: NDArray[np.intp],
        mask: Mask,
        size: int,
        line: int,
        manner: Manner = Manner.READ,
        parts: int = 1,
    ) -> None:
        """Judge a load of `size` bytes at `index`, in units of that size, by the lanes in `mask`.

        Args:
            order: The order of the batch's threads.
            index: Shape (blocks or 1, warps or 1, 32 or 1).
            mask: The lanes.
            size: Bytes.
            line: Source line.
            manner: Whether the load is strong.
            parts: Elements of a vector, which count as so many loads.
        """
        self._judge_all()
        if mask.whole and index.size < order.blocks * order.block_threads and manner is Manner.READ:
            place, who, last, kind = merged(order, index)
            moment = order.timeline.moment(line)
            self._touch(order, place, who, size, moment, manner)
            if kind:
                self._touch(order, place, last, size, moment, manner, kind)
            return
        place, who = spread(order, index, mask)
        if manner in STRONG_READS:
            self._read_strongly(order, place, who, size, line, manner, parts)
        else:
            self._touch(order, place, who, size, order.timeline.moment(line), manner)

    def stored_in_warp(
        self, order: ThreadOrder, index: NDArray[np.intp], mask: Mask, size: int
    ) -> tuple[int, int] | None:
        """Return the first thread of a strong read for which another lane of its warp stored without order.

        Returns:
            The thread's number in the launch and the line of that store, or None; arguments as for `read`.
        """
        stores = [each for (manner, _), each in self._others.items() if manner is Manner.STRONG_WRITE]
        if not stores:
            return None
        place, who = spread(order, index, mask)
        granules, each = self._granules(place, size)
        owners = np.repeat(who, each) if each > 1 else who
        hits = (accesses.conflict(order, granules, owners) for accesses in stores)
        hit = next((hit for hit in hits if hit is not None), None)
        if hit is None:
            return None
        reader, stamp = int(owners[hit[0]]), np.array([hit[1]], dtype=np.int64)
        if int(thread_of(stamp)[0]) // WARP != reader // WARP:
            return None
        return reader, order.timeline.lines[int(moment_of(stamp)[0])]

    def _read_strongly(
        self,
        order: ThreadOrder,
        place: Numbers,
        who: Numbers,
        size: int,
        line: int,
        manner: Manner = Manner.STRONG_READ,
        parts: int = 1,
    ) -> None:
        start, near, relaxed = place * size, manner in NEAR_READS, manner in RELAXED_READS
        moment = order.signal(
            self.variables, start, who, line, reads=True, writes=False, near=near, relaxed=relaxed
        )
        self._touch(order, place, who, size, moment, manner, parts=parts)

    def update(
        self,
        order: ThreadOrder,
        place: Numbers,
        who: Numbers,
        size: int,
        line: int,
        manner: Manner,
        failed: Bools | None = None,
        parts: int = 1,
    ) -> None:
        """Judge atomic operations at `place`, in units of `size` bytes, in the order in which they happen.

        Those that are true in `failed` compared with another value than they found: they have only read.
        The `parts` of a vector count as so many operations.
        """
        self._judge_all()
        if failed is not None and failed.any():
            self._read_strongly(order, place[failed], who[failed], size, line)
            place, who = place[~failed], who[~failed]
        if not place.size:
            return
        near, start = manner is Manner.NEAR_WRITE, place * size
        moment = order.signal(self.variables, start, who, line, reads=True, writes=True, near=near)
        self._touch(order, place, who, size, moment, manner, parts=parts)
        if near:
            self._judge_blocks(order, start, who, moment)

    def _judge_blocks(self, order: ThreadOrder, start: Numbers, who: Numbers, moment: int) -> None:
        """Judge atomic operations whose scope is the block: two blocks may not share a place."""
        by_place = np.argsort(start, kind="stable")
        ordered, blocks = start[by_place], who[by_place] // order.block_threads
        found = np.flatnonzero((ordered[1:] == ordered[:-1]) & (blocks[1:] != blocks[:-1]))
        if found.size:
            one, two = by_place[found[0] + 1], by_place[found[0]]
            stamp, granule = int(who[two]) << MOMENT_BITS | moment, int(start[one]) // self._granule
            near = Manner.NEAR_WRITE
            self._report(order, near, moment, granule, who[one], stamp, other=near)

    def write(
        self,
        order: ThreadOrder,
        index: NDArray[np.intp],
        values: Lanes,
        mask: Mask,
        size: int,
        line: int,
        manner: Manner = Manner.WRITE,
        parts: int = 1,
    ) -> None:
        """Judge a store that is about to happen; arguments as for `read`, and the values."""
        if self._log is not None and manner is Manner.WRITE and size >= self.buffer.item_bytes:
            moment = order.timeline.moment(line)
            self._log.append(_Stores(order, order.settled, index, values, mask, size, moment))
            self._logged += mask.total_threads * (size // self.buffer.item_bytes)
            if self._logged > min(_LOGGED_STORES, self.buffer.size // self.buffer.item_bytes):
                self._judge_log()
            return
        self._judge_all()
        place, who = spread(order, index, mask)
        stored = values_of(values, order, mask)
        if manner is Manner.WRITE:
            if self.variables:
                self._forget_variables(place * size, size)
            content = self.buffer.view(size)
            self._write(order, place, who, stored, content, size, order.timeline.moment(line))
            return
        near, start = manner is Manner.NEAR_WRITE, place * size
        self._stored = True
        moment = order.signal(self.variables, start, who, line, reads=False, writes=True, near=near)
        if self.races.meetings.wanted and place.size > 1:
            self._note_together(order, place * size, who, moment, manner)
        self._touch(order, place, who, size, moment, manner, parts=parts)

    def write_at(
        self, order: ThreadOrder, place: Numbers, who: Numbers, values: Lanes, size: int, line: int
    ) -> None:
        """Judge stores that are about to happen at `place`, in units of `size` bytes, by threads `who`."""
        self._judge_all()
        self._write(order, place, who, values, self.buffer.view(size), size, order.timeline.moment(line))

    def read_at(self, order: ThreadOrder, place: Numbers, who: Numbers, size: int, line: int) -> None:
        """Judge loads at `place`, in units of `size` bytes, by threads `who`."""
        self._judge_all()
        self._touch(order, place, who, size, order.timeline.moment(line), Manner.READ)

    def finish(self) -> None:
        """The launch is over: stores that wrote as many elements as there were met nobody."""
        if self._log and self.buffer.written_count() != self._logged:
            self._judge_log()

    def _judge_all(self) -> None:
        """From now on, judge every access when it happens."""
        if self._log is not None:
            self._judge_log()

    def _judge_log(self) -> None:
        log, self._log = self._log or [], None
        content = np.zeros(-(-self.buffer.size // 16) * 16, dtype=np.uint8) if log else None
        for stores in log:
            assert content is not None
            place, who = spread(stores.order, stores.index, stores.mask)
            values = values_of(stores.values, stores.order, stores.mask)
            view = content.view(moved_dtype(stores.size))
            order, size, moment = stores.order, stores.size, stores.moment
            self._write(order, place, who, values, view, size, moment, stores.settled)
            view[place] = values

    def _forget_variables(self, start: Numbers, size: int) -> None:
        """A plain store ends what was released by the variables that it overwrites."""
        for where in self.variables.keys() & set(start.tolist()):
            del self.variables[where]

    def _write(
        self,
        order: ThreadOrder,
        place: Numbers,
        who: Numbers,
        values: Lanes,
        content: Lanes,
        size: int,
        moment: int,
        settled: Settled | None = None,
    ) -> None:
        """Judge plain stores over `content`, which is still as it was before."""
        granules, each = self._granules(place, size)
        owners = np.repeat(who, each) if each > 1 else who
        stamps = owners << MOMENT_BITS | moment
        writers = self._written()
        repeats = np.zeros(len(granules), dtype=np.bool_)
        held = writers[granules]
        if held.any():
            met = unordered(held, order, owners, settled)
            if met.size:
                differ = self._changed(content, granules[met], self._parts(values)[met])
                if differ.any():
                    hit = int(met[differ.argmax()])
                    self._report_write(order, moment, granules[hit], owners[hit], int(held[hit]))
                repeats[met] = True
            self._meet_repeated(order, granules, owners, self._parts(values), content, moment, settled)
        self._meet(order, Manner.WRITE, granules, owners, moment)
        stores = np.flatnonzero(~repeats)
        writers[granules[stores]] = stamps[stores]
        lost = stores[writers[granules[stores]] != stamps[stores]]
        if lost.size:
            self._judge_collisions(order, granules, owners, self._parts(values), moment)
            repeats[lost] = True
        if repeats.any():
            self._accesses(Manner.REPEATED).add(order, granules[repeats], stamps[repeats], settled)

    def _meet_repeated(
        self,
        order: ThreadOrder,
        granules: Numbers,
        owners: Numbers,
        parts: NDArray[np.uint8],
        content: Lanes,
        moment: int,
        settled: Settled | None,
    ) -> None:
        """Judge stores that change what several threads stored before."""
        repeated = self._others.get((Manner.REPEATED, 0))
        if repeated is None:
            return
        changing = np.flatnonzero(self._changed(content, granules, parts))
        hit = repeated.conflict(order, granules[changing], owners[changing], settled)
        if hit is not None:
            which, stamp = int(changing[hit[0]]), hit[1]
            self._report_write(order, moment, granules[which], owners[which], stamp)

    def _changed(self, content: Lanes, granules: Numbers, parts: NDArray[np.uint8]) -> Bools:
        """Return which granules hold other bytes than are stored to them."""
        before = content.view(np.uint8).reshape(-1, self._granule)[granules]
        return np.asarray((before != parts).any(axis=1))

    def _report_write(self, order: ThreadOrder, moment: int, granule: int, who: int, stamp: int) -> None:
        self._report(order, Manner.WRITE, moment, granule, who, stamp, "with another value")

    def _judge_collisions(
        self,
        order: ThreadOrder,
        granules: Numbers,
        owners: Numbers,
        parts: NDArray[np.uint8],
        moment: int,
    ) -> None:
        """Several lanes store to one place in one instruction: which value stays is undefined."""
        by_place = np.argsort(granules, kind="stable")
        ordered = granules[by_place]
        same = ordered[1:] == ordered[:-1]
        differ = (parts[by_place[1:]] != parts[by_place[:-1]]).any(axis=1)
        found = np.flatnonzero(same & differ)
        if found.size:
            one, two = by_place[found[0] + 1], by_place[found[0]]
            stamp = int(owners[two]) << MOMENT_BITS | moment
            self._report_write(order, moment, granules[one], owners[one], stamp)

    def _touch(
        self,
        order: ThreadOrder,
        place: Numbers,
        who: Numbers,
        size: int,
        moment: int,
        manner: Manner,
        kind: int = 0,
        parts: int = 1,
    ) -> None:
        """Judge and remember accesses that may happen together with others of their kind."""
        width = size // parts if manner in STRONG else 0
        granules, each = self._granules(place, size)
        owners = np.repeat(who, each) if each > 1 else who
        if self._writers is not None:
            held = self._writers[granules]
            found = unordered(held, order, owners)
            if found.size:
                hit = int(found[0])
                self._report(order, manner, moment, granules[hit], owners[hit], int(held[hit]))
        self._meet(order, manner, granules, owners, moment, width)
        stamps = owners << MOMENT_BITS | moment
        self._accesses(manner, width).add(order, granules, with_kind(stamps, kind) if kind else stamps)

    def _accesses(self, manner: Manner, width: int = 0) -> ConcurrentAccesses:
        if (manner, width) not in self._others:
            self._others[manner, width] = ConcurrentAccesses(self._elements())
        return self._others[manner, width]

    def _meet(
        self,
        order: ThreadOrder,
        manner: Manner,
        granules: Numbers,
        owners: Numbers,
        moment: int,
        width: int = 0,
    ) -> None:
        everywhere, elsewhere = CONFLICTS[manner]
        for (other, other_width), accesses in self._others.items():
            # Strong accesses of a word and of its half are in nobody's order.
            apart = 0 < width != other_width > 0 and (manner.writes or other.writes)
            if not (apart or other in everywhere) and self.races.meetings.wanted:
                self._note(order, manner, granules, owners, moment, other, accesses)
            if not (apart or other in everywhere or other in elsewhere):
                continue
            only_elsewhere = other in elsewhere and not apart
            hit = accesses.conflict(order, granules, owners, elsewhere=only_elsewhere)
            if hit is not None:
                which, stamp = hit
                sizes = (width, other_width) if apart else (0, 0)
                self._report(
                    order, manner, moment, granules[which], owners[which], stamp, other=other, sizes=sizes
                )

    def _note(
        self,
        order: ThreadOrder,
        manner: Manner,
        granules: Numbers,
        owners: Numbers,
        moment: int,
        other: Manner,
        accesses: ConcurrentAccesses,
    ) -> None:
        """Note strong accesses that meet others with nothing to order them."""
        if Manner.GUESS in (manner, other) or not {manner, other} <= {*STRONG}:
            return
        reads = (not manner.writes) + (not other.writes)
        if reads == 2 or (not reads and not (self._stored or self.races.meetings.keeps)):
            return
        for found, stamps in accesses.unordered(order, granules, owners):
            places = (self.buffer.place(int(granule) * self._granule)[0] for granule in granules[found])
            does = manner.value, other.value
            self.races.meetings.add(
                order.timeline, moment, owners[found], stamps, places, does, reads=reads > 0
            )

    def _note_together(
        self, order: ThreadOrder, start: Numbers, who: Numbers, moment: int, manner: Manner
    ) -> None:
        """Note strong stores of several warps to one place, in one instruction."""
        by_place = np.lexsort((who, start))
        found = np.flatnonzero(start[by_place[1:]] == start[by_place[:-1]])
        one, two = by_place[found + 1], by_place[found]
        places = (self.buffer.place(byte)[0] for byte in start[one].tolist())
        stamps, does = who[two] << MOMENT_BITS | moment, (manner.value, manner.value)
        self.races.meetings.add(order.timeline, moment, who[one], stamps, places, does, reads=False)

    def _report(
        self,
        order: ThreadOrder,
        manner: Manner,
        moment: int,
        granule: int,
        who: int,
        stamp: int,
        text: str = "",
        other: Manner = Manner.WRITE,
        sizes: tuple[int, int] = (0, 0),
    ) -> None:
        byte = int(granule) * self._granule
        element, address = self.buffer.place(byte)
        met = np.array([stamp], dtype=np.int64)
        lines = order.timeline.lines
        ours, theirs = (f", {size} bytes at once" if size else "" for size in sizes)
        detail = f"{manner.value} {element}{ours}, which {{0}} {other.value}{theirs} in line {{1}}"
        detail += f" {text}" * bool(text) + ", and nothing orders them"
        self.races.report(
            GlobalRace(
                line=lines[moment],
                thread=int(who),
                address=address,
                shared=self.buffer.address == 0,
                detail=detail,
                other_line=lines[int(moment_of(met)[0])],
                other=int(thread_of(met)[0]),
            )
        )

    def _parts(self, values: Lanes) -> NDArray[np.uint8]:
        """Return what is stored to each granule, as bytes."""
        return np.ascontiguousarray(values)[:, None].view(np.uint8).reshape(-1, self._granule)

    def _elements(self) -> int:
        return -(-self.buffer.size // 16) * 16 // self._granule

    def _written(self) -> Numbers:
        if self._writers is None:
            self._writers = np.zeros(self._elements(), dtype=np.int64)
        return self._writers

    def _granules(self, place: Numbers, size: int) -> tuple[Numbers, int]:
        """Return the granules that accesses of `size` bytes touch, and how many each."""
        if not self._granule:
            self._granule = size
        elif size < self._granule:
            times, self._granule = self._granule // size, size
            if self._writers is not None:
                self._writers = np.repeat(self._writers, times)
            for accesses in self._others.values():
                accesses.refine(times)
        each = size // self._granule
        if each == 1:
            return place, 1
        return (place[:, None] * each + np.arange(each)).reshape(-1), each
