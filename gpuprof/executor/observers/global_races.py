# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Find races: two threads touch one element of memory, one of them writes, and nothing orders them.

The rule is that of the PTX memory model (chapter "Memory Consistency Model"): two accesses that overlap, one
of them a write, must be ordered (see `thread_order`) or both be *strong*, that is volatile, relaxed, acquire,
release or atomic, with a scope that holds both threads, and of the same bytes: a word and its half are two
places. One exception: several threads may store the same value, as people do on purpose, since it does not
matter who comes last.

That the executor runs blocks in some order excuses nothing. Only blocks that run are judged, and only buffers
that kernels may write.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, KernelFault, SharedByte, race_clause
from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_accesses import (
    CONFLICTS,
    RELAXED_READS,
    STRONG,
    STRONG_READS,
    Manner,
    MemoryOperation,
    Named,
    Observer,
)
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.moments import (
    MOMENT_BITS,
    OF_BLOCK,
    OF_CLUSTER,
    OF_WARP,
    ONE,
    Numbers,
    Timeline,
    kind_of,
    moment_of,
    thread_of,
)
from gpuprof.executor.memory.releases import AcquiredPlace, Releases
from gpuprof.executor.memory.shared_memory import SharedBlocks
from gpuprof.executor.memory.thread_order import ThreadOrder
from gpuprof.executor.observers.concurrent_accesses import ConcurrentAccesses, LaneStores, of_others
from gpuprof.executor.observers.open_meetings import OpenMeetings
from gpuprof.executor.observers.races import OTHER_VALUE

#: A plain load beside an atomic operation, and what may be said for it.
_BESIDE = {Manner.READ, Manner.STRONG_WRITE}
_EITHER = ": benign only if either value will do; then read it as volatile, which is no race"
_THE_SAME = "writes the same to"


class IdleReads:
    """Races of plain loads that end in guarded stores alone: a lane that makes none has loaded for nothing.

    Compilers that spread a tile over more lanes than it has elements let several lanes load an element, and
    one of them store (`program.guesses.idle_loads`). What the others find there is no matter, and no race: it
    is told once its thread, or one that a shuffle passes it to, has made a store that its value may have gone
    to. `ends` are these stores, by the load's line.
    """

    def __init__(self, ends: Mapping[int, frozenset[tuple[int, int]]], report: Callable[[Any], None]) -> None:
        self._ends, self._report = ends, report
        #: By a store's line and how many threads a group has: the groups that made it, and the first race of
        #: each that has not, with its turn.
        self._stored: dict[tuple[int, int], set[int]] = {end: set() for each in ends.values() for end in each}
        self._held: dict[tuple[int, int], dict[int, tuple[int, Callable[[], Any]]]] = {
            end: {} for end in self._stored
        }
        self._turns = count()

    def found(self, line: int, thread: int, writer: int, race: Callable[[], Any]) -> None:
        """A load of this line and thread races with another's store, which waits for their shuffle."""
        for end in self._ends[line]:
            group = end[1]
            if group > 1 and thread // group == writer // group:
                return
            if thread // group in self._stored[end]:
                self._report(race())
        for end in self._ends[line]:
            self._held[end].setdefault(thread // end[1], (next(self._turns), race))

    def stores(self, line: int, threads: Numbers) -> None:
        for end, stored in self._stored.items():
            if end[0] != line:
                continue
            groups = set((threads // end[1]).tolist())
            stored |= groups
            if met := self._held[end].keys() & groups:
                self._report(min(self._held[end][group] for group in met)[1]())


class GlobalRaces:
    """Judges the global memory accesses of one launch of a kernel: a shadow of each buffer observes them.

    `named` tells threadIdx and blockIdx of a thread, by its number in the launch.
    """

    def __init__(
        self,
        buffers: list[Buffer],
        kernel: str,
        named: Named,
        *,
        releases: bool,
        meetings: OpenMeetings | None = None,
        by_warps: bool = False,
        idle: Mapping[int, frozenset[tuple[int, int]]] = MappingProxyType({}),
    ) -> None:
        self._by_warps = by_warps
        self.idle = IdleReads(idle, self.report)
        self.timeline = Timeline()
        self.meetings = meetings or OpenMeetings()
        self.releases = Releases() if releases else None
        self.kernel, self.named = kernel, named
        #: By the address of the buffer.
        self.shadows = {buffer.address: Shadow(buffer, self) for buffer in buffers}

    def order(self, first: int, blocks: int, warps: int, layout: ClusterLayout = LONE_BLOCK) -> ThreadOrder:
        """Return the order of the threads of a batch that begins with block number `first` of the launch."""
        about = first, blocks, warps, self.releases, layout
        return ThreadOrder(self.timeline, *about, by_warps=self._by_warps)

    def report(self, race: KernelFault) -> None:
        """Tell of a race: it ends the launch."""
        raise race

    def finish(self) -> None:
        self.shadows.clear()  # they refer back, and hold the buffers


class Shadow(Observer):
    """Who touched what of one buffer in the present launch, or of the shared memory of one batch.

    What `races` and `phased_races` know of shared memory is quick to tell and enough for most kernels:
    barriers, of some warps too, `__syncwarp` of whole warps, mbarriers. Flags, locks, fences and `__syncwarp`
    of some lanes order accesses too: kernels that have such means are judged here.

    `variables` are what was released by strong writes to this buffer, by byte.
    """

    def __init__(self, buffer: Buffer | SharedBlocks, races: GlobalRaces) -> None:
        self.buffer = buffer
        self.races = races
        self.variables: dict[int, AcquiredPlace] = {}
        #: Bytes of an element of the arrays below: the smallest access so far.
        self._granule = 0
        #: Whether strong stores changed it, other than by atomic operations.
        self._stored = False
        #: By their manner and, of strong ones, the bytes of an element: plain stores first.
        self._others: dict[tuple[Manner, int], ConcurrentAccesses] = {}
        self._lane_stores: LaneStores | None = None

    def wants(self, buffer: Any) -> bool:
        return bool(buffer.address == self.buffer.address)

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        """As an observer: judge loads."""
        if one.manner in STRONG_READS:
            self._signal(one, reads=True, writes=False)
            self._note_luck(one)
        else:
            one.moment = one.order.timeline.moment(one.line)
        self._touch(one)

    def update(self, buffer: Any, one: MemoryOperation, failed: Bools | None = None) -> None:
        """As an observer: judge atomic operations.

        Those that are true in `failed` compared with another value than they found: they have only read.
        """
        if failed is not None and failed.any():
            read = one.of(failed, Manner.STRONG_READ)
            read.parts = 1
            self._signal(read, reads=True, writes=False)
            self._touch(read)
            one = one.of(~failed, one.manner)
        if not one.place.size:
            return
        self._signal(one, reads=True, writes=True)
        self._touch(one)
        if self._lane_stores is not None:
            self._lane_stores.forget(self._granules(one)[0])
        if one.near:
            self._judge_blocks(one)

    def write(self, buffer: Any, one: MemoryOperation, values: Lanes) -> None:
        """As an observer: judge stores that are about to happen."""
        if buffer.address:
            self.races.idle.stores(one.line, one.who)
        if one.manner is Manner.WRITE:
            # That ends what was released by the variables that it overwrites.
            for where in self.variables.keys() & set(
                (one.place * one.size).tolist() if self.variables else ()
            ):
                del self.variables[where]
            one.moment = one.order.timeline.moment(one.line)
            self._write(one, values)
            return
        self._stored = True
        self._signal(one, reads=False, writes=True)
        if self.races.meetings.wants() and one.place.size > 1:
            self._note_together(one)
        self._touch(one)
        if self._follows_lanes:
            granules, owners = self._granules(one)
            before = self.buffer.view(one.size).view(np.uint8).reshape(-1, self._granule)[granules]
            parts = self._parts(one, values)
            same = (before == parts).all(axis=1), parts
            if self._lane_stores is None:
                self._lane_stores = LaneStores(self._elements())
            self._lane_stores.store(one.order, granules, owners, one.moment, same)
            self._note_early(one, granules[~same[0]], owners[~same[0]])

    @property
    def _follows_lanes(self) -> bool:
        """Whether it is asked who stored what loads find in shared memory."""
        return self.buffer.address == 0 and not self.races.meetings.luck

    def _note_luck(self, one: MemoryOperation) -> None:
        """Note loads that find what another lane of their warp stored, with nothing to order the two."""
        if self._lane_stores is None or not self._follows_lanes:
            return
        granules, owners = self._granules(one)
        found, stamps = self._lane_stores.by_luck(one.order, granules, owners)
        if found.size:
            stored = one.order.timeline.lines[int(moment_of(stamps)[0])]
            self.races.meetings.note_luck(one.line, stored, int(owners[found[0]]))

    def _note_early(self, one: MemoryOperation, granules: Numbers, owners: Numbers) -> None:
        """Note stores that change what another lane of their warp has loaded, with nothing to order them."""
        for (other, _), accesses in self._others.items():
            if other not in STRONG_READS:
                continue
            for found, stamps in accesses.unordered(one.order, granules, owners):
                reader = thread_of(stamps)
                beside = (reader // WARP == owners[found] // WARP) & (kind_of(stamps) <= OF_WARP)
                for stamp in stamps[beside][:1].tolist():
                    line = one.order.timeline.lines[moment_of(stamp)]
                    self.races.meetings.note_luck(line, one.line, thread_of(stamp))

    def _parts(self, one: MemoryOperation, values: Lanes) -> NDArray[np.uint8]:
        """Return what is stored to each granule, as bytes."""
        return np.ascontiguousarray(one.each(values))[:, None].view(np.uint8).reshape(-1, self._granule)

    def _signal(self, one: MemoryOperation, *, reads: bool, writes: bool) -> None:
        """Threads use variables by strong operations, and may so release and acquire."""
        order = one.order
        if order.knowledge is not None:
            order.timeline.advance()
        one.moment = order.timeline.moment(one.line)
        if order.knowledge is None:
            return
        order.timeline.advance()
        order.knowledge.signal(
            self.variables,
            one.place * one.size,
            one.who - order.first * order.block_threads,
            one.moment,
            reads=reads,
            writes=writes,
            near=one.near,
            relaxed=one.manner in RELAXED_READS,
        )

    def _judge_blocks(self, one: MemoryOperation) -> None:
        """Judge atomic operations whose scope is the block: two blocks may not share a place."""
        granules, owners = self._granules(one)
        self._judge_together(one, granules, owners, owners[:, None] // one.order.block_threads)

    def _write(self, one: MemoryOperation, values: Lanes) -> None:
        """Judge plain stores over what is still as it was before."""
        order = one.order
        granules, owners = self._granules(one)
        parts = self._parts(one, values)

        def changes(rows: NDArray[np.intp], _: Numbers) -> Bools:
            before = self.buffer.view(one.size).view(np.uint8).reshape(-1, self._granule)
            return np.asarray((before[granules[rows]] != parts[rows]).any(axis=1))

        stores = self._accesses(Manner.WRITE)
        if (hit := stores.conflict(order, granules, owners, changes)) is not None:
            self._report(one, granules[hit.row], owners[hit.row], hit.stamp, text=OTHER_VALUE)
        self._meet(one, granules, owners)
        if stores.add(order, granules, owners << MOMENT_BITS | one.moment):
            # Several lanes store to one place in one instruction: which value stays is undefined.
            self._judge_together(one, granules, owners, parts, OTHER_VALUE)

    def _judge_together(
        self, one: MemoryOperation, granules: Numbers, owners: Numbers, told: NDArray[Any], text: str = ""
    ) -> None:
        """Report threads that meet at one place in one instruction, and have different rows in `told`."""
        first, second = _together(granules)
        for hit in np.flatnonzero((told[first] != told[second]).any(axis=1))[:1]:
            stamp = int(owners[first[hit]]) << MOMENT_BITS | one.moment
            self._report(one, granules[second[hit]], owners[second[hit]], stamp, one.manner, text=text)

    def _touch(self, one: MemoryOperation) -> None:
        """Judge and remember accesses that may happen together with others of their kind."""
        width = one.size // one.parts if one.manner in STRONG else 0
        granules, owners = self._granules(one)
        self._meet(one, granules, owners, width)
        accesses, stamps = self._accesses(one.manner, width), owners << MOMENT_BITS | one.moment
        if one.manner is Manner.IDLE_READ:
            accesses.keep(granules, stamps)
        else:
            accesses.add(one.order, granules, stamps)

    def _accesses(self, manner: Manner, width: int = 0) -> ConcurrentAccesses:
        if (manner, width) not in self._others:
            self._others[manner, width] = ConcurrentAccesses(self._elements())
        return self._others[manner, width]

    def _meet(self, one: MemoryOperation, granules: Numbers, owners: Numbers, width: int = 0) -> None:
        everywhere, elsewhere = CONFLICTS[one.manner]
        for (other, other_width), accesses in self._others.items():
            # Strong accesses of a word and of its half are in nobody's order.
            apart = 0 < width != other_width > 0 and (one.manner.writes or other.writes)
            if not (apart or other in everywhere) and self.races.meetings.wants():
                self._note(one, granules, owners, other, accesses)
            if not (apart or other in everywhere or other in elsewhere):
                continue
            if Manner.IDLE_READ in (one.manner, other):
                self._meet_idle(one, granules, owners, other, accesses)
                continue
            group = (WARP, OF_BLOCK) if other is Manner.EXCHANGED else (one.order.block_threads, OF_CLUSTER)
            anybody = apart or (other in everywhere and other is not Manner.EXCHANGED)
            counts = None if anybody else of_others(owners, *group)
            if (met := accesses.conflict(one.order, granules, owners, counts)) is not None:
                sizes = (width, other_width) if apart else (0, 0)
                did = _THE_SAME if met.again and other is Manner.WRITE else other.value
                self._report(one, granules[met.row], owners[met.row], met.stamp, other, did, sizes=sizes)

    def _meet_idle(
        self,
        one: MemoryOperation,
        granules: Numbers,
        owners: Numbers,
        other: Manner,
        accesses: ConcurrentAccesses,
    ) -> None:
        """Loads that may have been for nothing meet stores: each of them, for some of their threads."""
        lines, idle = one.order.timeline.lines, other is Manner.IDLE_READ
        for rows, stamps in accesses.unordered(one.order, granules, owners):
            for row, stamp in zip(rows.tolist(), stamps.tolist(), strict=True):
                start = int(granules[row]) * self._granule
                met = one, start, owners[row], stamp, Manner.READ if idle else other
                line, thread, writer = one.line, int(owners[row]), thread_of(stamp)
                if idle:
                    line, thread, writer = lines[moment_of(stamp)], writer, thread
                self.races.idle.found(line, thread, writer, partial(self._race, *met))

    def _note(
        self,
        one: MemoryOperation,
        granules: Numbers,
        owners: Numbers,
        other: Manner,
        accesses: ConcurrentAccesses,
    ) -> None:
        """Note strong accesses that meet others with nothing to order them."""
        if Manner.GUESS in (one.manner, other) or not {one.manner, other} <= {*STRONG}:
            return
        reads = (not one.manner.writes) + (not other.writes)
        if reads == 2 or (not reads and not (self._stored or self.races.meetings.keeps)):
            return
        for found, stamps in accesses.unordered(one.order, granules, owners):
            if self._stored and self.buffer.address and one.manner in STRONG_READS:
                self._note_unordered(one, owners[found], stamps)
            who, start = owners[found], granules[found] * self._granule
            self.races.meetings.add(self.buffer, one, who, stamps, start, other, reads=reads > 0)

    def _note_unordered(self, one: MemoryOperation, who: Numbers, stamps: Numbers) -> None:
        """Note loads that find what another block stored, though nothing orders the two."""
        threads = one.order.block_threads
        apart = np.flatnonzero((thread_of(stamps) // threads != who // threads) & (kind_of(stamps) == ONE))
        if apart.size:
            stored = one.order.timeline.lines[int(moment_of(stamps)[apart[0]])]
            self.races.meetings.note_luck(one.line, stored, int(who[apart[0]]), block=True)

    def _note_together(self, one: MemoryOperation) -> None:
        """Note strong stores of several warps to one place, in one instruction."""
        first, second = _together(one.place)
        stamps, start = one.who[first] << MOMENT_BITS | one.moment, one.place[second] * one.size
        self.races.meetings.add(self.buffer, one, one.who[second], stamps, start, one.manner, reads=False)

    def _report(self, one: MemoryOperation, granule: int, *met: Any, **how: Any) -> None:
        self.races.report(self._race(one, int(granule) * self._granule, *met, **how))

    def _race(
        self,
        one: MemoryOperation,
        start: int,
        who: int,
        stamp: int,
        other: Manner = Manner.WRITE,
        did: str = "",
        text: str = "",
        sizes: tuple[int, int] = (0, 0),
    ) -> KernelFault:
        where, address = self.buffer.place(start)
        lines, earlier = one.order.timeline.lines, thread_of(stamp)
        (thread, block), (other_thread, other_block) = map(self.races.named, (int(who), earlier))
        met = f"thread {other_thread}" if earlier != who else "another thread"
        line, did = lines[moment_of(stamp)], did or other.value
        ours, theirs = (f", {size} bytes at once" if size else "" for size in sizes)
        race = race_clause(f"{met} of block {other_block}", f"{did}{theirs}", line, text)
        benign = bool(self.buffer.address) and {one.manner, other} == _BESIDE
        found: SharedByte | None = None
        if self.buffer.address == 0:
            found = SharedByte(address, line, (not one.manner.writes, not other.writes), other_block != block)
        return KernelFault(
            FaultKind.SHARED_RACE if found else FaultKind.GLOBAL_RACE,
            f"{one.manner.value} {where}{ours}, {race}{_EITHER * benign}",
            kernel=self.races.kernel,
            source_line=lines[one.moment],
            block=block,
            thread=thread,
            address=address,
            other_block=other_block,
            shared=found,
        )

    def _elements(self) -> int:
        return -(-self.buffer.size // 16) * 16 // self._granule

    def _granules(self, one: MemoryOperation) -> tuple[Numbers, Numbers]:
        """Return the granules that an operation touches, and the thread that touches each."""
        size = one.size
        if not self._granule:
            self._granule = size
            self._accesses(Manner.WRITE)  # is met first
        elif size < self._granule:
            times, self._granule = self._granule // size, size
            for accesses in self._others.values():
                accesses.refine(times)
            if self._lane_stores is not None:
                self._lane_stores.refine(times)
        each = size // self._granule
        if each == 1:
            return one.place, one.who
        return (one.place[:, None] * each + np.arange(each)).reshape(-1), np.repeat(one.who, each)


def _together(place: Numbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return, of accesses of one instruction, each that is at the place of another, and the next there."""
    by_place = np.argsort(place, kind="stable")
    found = np.flatnonzero(place[by_place[1:]] == place[by_place[:-1]])
    return by_place[found], by_place[found + 1]
