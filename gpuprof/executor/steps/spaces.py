# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing each state space: bounds and alignment checked, costs counted, data moved.

Each memory instruction owns one accessor per space that its addresses may point to. Data moves as raw
elements of the access size; what they mean is the instruction's business.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NoReturn, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes, differ
from gpuprof.executor.memory.accesses import ATOMIC_PHASE, Access
from gpuprof.executor.memory.coalescing import Footprint, atomic_sectors
from gpuprof.executor.memory.global_accesses import LocalLanes, Manner, MemoryRequest
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype
from gpuprof.executor.memory.shared_memory import Apply, SharedPattern
from gpuprof.executor.memory.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.distributed_shared import ClusterAccess

#: No array lies below it.
_NEAR_NULL = 1 << 16


class Space(Protocol):
    """A state space, as one instruction sees it."""

    def read(self, batch: Batch, address: Lanes, mask: Mask) -> Lanes:
        """Return the elements at `address`; of lanes outside `mask`, anything."""

    def write(self, batch: Batch, address: Lanes, mask: Mask, values: Lanes) -> None:
        """Store elements of the lanes in `mask`; where lanes collide, the last one wins."""

    def update(
        self, batch: Batch, address: Lanes, mask: Mask, apply: Apply, expected: Lanes | None = None
    ) -> Lanes:
        """Let `apply` change the elements of the lanes in `mask`; return (blocks, warps, 32) old ones.

        Lanes that find another value than `expected`, if that is given, leave it as it is.
        """


def scatter(index: NDArray[np.intp], values: Lanes, mask: Mask) -> tuple[NDArray[np.intp], Lanes]:
    """Return matching indices and values of the lanes in `mask` alone."""
    if mask.whole:
        shape = np.broadcast_shapes(index.shape, values.shape)
        return np.broadcast_to(index, shape), np.broadcast_to(values, shape)
    shape = np.broadcast_shapes(index.shape, values.shape, mask.lanes.shape)
    chosen = np.broadcast_to(mask.lanes, shape)
    return np.broadcast_to(index, shape)[chosen], np.broadcast_to(values, shape)[chosen]


def nothing(size: int) -> Lanes:
    """Return elements of `size` bytes that stand for values which an address-only access does not move."""
    return np.zeros((1, 1, 1), dtype=moved_dtype(size))


@dataclass
class GlobalSpace:
    """Global memory: requests, sectors and useful bytes are counted."""

    request: MemoryRequest
    is_global: ClassVar[bool] = True

    def read(self, batch: Batch, address: Lanes, mask: Mask) -> Lanes:
        """Gather from the buffers that hold the addresses."""
        found, request = [], self.request
        for buffer, part in self._counted_parts(batch, address, mask, "reads"):
            index = self._index(buffer, address, part)
            buffer.loaded = True
            batch.events.tell("read", buffer, **request.access(index, part))
            moved = not batch.events.address_only
            found.append((part, buffer.view(request.size).take(index) if moved else nothing(request.size)))
        return _by_lanes(found)

    def write(self, batch: Batch, address: Lanes, mask: Mask, values: Lanes) -> None:
        """Scatter to the buffers that hold the addresses."""
        for target, part in self._counted_parts(batch, address, mask, "writes"):
            places, request = self._index(target, address, part), self.request
            if target.read_only:
                changed = differ(target.view(request.size).take(places), values) & part.lanes
                if changed.any() and not batch.events.address_only:
                    self._fault(batch, address, changed, "writes", FaultKind.READ_ONLY)
                continue  # what is stored stands there already: no card can tell
            batch.events.tell("write", target, values, **request.access(places, part))
            if batch.events.address_only:
                target.mark(batch.spread(places)[batch.spread(part.lanes)], request.size)
            else:
                target.store(*scatter(places, values, part), request.size)

    def update(
        self, batch: Batch, address: Lanes, mask: Mask, apply: Apply, expected: Lanes | None = None
    ) -> Lanes:
        """Change elements in place, counted as one access."""
        old = np.zeros(batch.shape, dtype=moved_dtype(self.request.size))
        for buffer, part in self._counted_parts(batch, address, mask, "updates", in_turn=True):
            lanes = np.broadcast_to(part.lanes, old.shape)
            places = self._index(buffer, address, part)
            index = np.broadcast_to(places, old.shape)[lanes]
            failed = None
            if not batch.events.address_only:
                known = buffer.view(self.request.size)
                content = known.copy() if buffer.read_only else buffer.changeable(self.request.size)
                old[lanes] = apply(content, index, lanes, self.is_global).view(old.dtype)
                if buffer.read_only:
                    changed = np.zeros_like(lanes)
                    changed[lanes] = differ(known[index], content[index])
                    if changed.any():
                        self._fault(batch, address, changed, "updates", FaultKind.READ_ONLY)
                else:
                    buffer.store(index, content[index], self.request.size)
                failed = _failed(old, lanes, expected)
            elif not buffer.read_only:
                buffer.mark(index, self.request.size)
            buffer.combined |= not buffer.read_only
            batch.events.tell("update", buffer, failed, **self.request.access(places, part))
        return old

    def count(self, batch: Batch, address: Lanes, mask: Mask, *, in_turn: bool = False) -> Footprint:
        """Count the access, and check alignment; lanes of one address come in turn, or together."""
        request = self.request
        found = batch.memo.footprints[request.size].of(address, request.offset, mask, request.size)
        if request.site is not None:
            # Lanes that all have an address of their own have no turns.
            in_turn = in_turn and bool((found.costs["useful_bytes"] < mask.thread_count * request.size).any())
            batch.tally.charge(request.site, found.costs, but=("sectors",) if in_turn else request.elsewhere)
            if in_turn:
                batch.tally.add(request.site, "sectors", atomic_sectors(address, request.offset, mask))
        if request.vector or not found.aligned:
            check_alignment(batch, request, address, mask)
        return found

    def _counted_parts(
        self, batch: Batch, address: Lanes, mask: Mask, verb: str, *, in_turn: bool = False
    ) -> list[tuple[Buffer | LocalLanes, Mask]]:
        """Count an access, and divide its lanes: mostly one buffer holds all."""
        print_of = self.count(batch, address, mask, in_turn=in_turn)
        buffer = batch.memory.holding(print_of.low, print_of.high)
        known = buffer is not None and buffer.allotted is None
        return [(buffer, mask)] if buffer and known else self._parts(batch, address, mask, verb)

    def _parts(
        self, batch: Batch, address: Lanes, mask: Mask, verb: str
    ) -> list[tuple[Buffer | LocalLanes, Mask]]:
        """Divide the lanes by the buffer that they point into; a lane that points into none is a fault."""
        lanes = np.broadcast_to(mask.lanes, np.broadcast_shapes(mask.lanes.shape, address.shape))
        parts, left = batch.memory.divided(address + self.request.offset, self.request.size, lanes)
        if left.any():
            self._fault(batch, address, left, verb)
        return [(buffer, mask.of(inside)) for buffer, inside in parts]

    def _index(self, buffer: Buffer | LocalLanes, address: Lanes, mask: Mask) -> NDArray[np.intp]:
        shift = self.request.size.bit_length() - 1
        index = (address - (buffer.address - self.request.offset)) >> shift
        return index if mask.whole else np.where(mask.narrowed_to(index.shape), index, 0)

    def _fault(
        self, batch: Batch, address: Lanes, bad: Bools, verb: str, kind: FaultKind = FaultKind.OUT_OF_BOUNDS
    ) -> NoReturn:
        bad, addresses = np.broadcast_arrays(bad, address)
        position = first_true(bad)
        start = int(addresses[position]) + self.request.offset
        buffer, where = batch.memory.nearest(start), "where nothing is allocated"
        if 0 <= start < _NEAR_NULL:
            where += ": a null pointer"
        if buffer is not None:
            past = start - buffer.address
            where = buffer.described(past)
            if buffer.allotted is not None and past < buffer.size:
                where = f"in {buffer.name}, where nothing is given out"
        detail = f"{verb} {self.request.size} bytes of global memory at {start & (1 << 64) - 1:#x}, {where}"
        batch.fault(kind, detail, self.request.line, position, start)


def check_alignment(
    batch: Batch, request: MemoryRequest, address: Lanes, mask: Mask, *, shared: bool = False
) -> None:
    """Report the first lane whose address is not a multiple of the access size."""
    offset, size = request.vector or (request.offset, request.size)
    start = address + offset
    wrong = np.asarray((start & (size - 1)) != 0)
    text = f"accesses {size} bytes at {{:#x}}, which is not a multiple of {size}"
    batch.refuse(FaultKind.MISALIGNED, mask, wrong, request.line, text, start, at=start, shared=shared)


def check_bounds(
    batch: Batch, request: MemoryRequest, address: Lanes, mask: Mask, limit: int, space: str
) -> None:
    """Report the first lane that leaves a space of `limit` bytes."""
    start = address.astype(np.int64) + request.offset
    wrong = np.asarray((start < 0) | (start + request.size > limit))
    text = f"accesses {request.size} bytes at byte {{}} of {space} memory, which has {limit} bytes"
    shared = space == "shared"
    batch.refuse(FaultKind.OUT_OF_BOUNDS, mask, wrong, request.line, text, start, at=start, shared=shared)


@dataclass
class SharedSpace:
    """Shared memory: wavefronts and bank conflicts are counted, and races looked for.

    Attributes:
        parts: Where a vector load has elements that nobody wants, the wanted ones: only they count as read.
    """

    request: MemoryRequest
    parts: tuple["SharedSpace", ...] = ()

    def read(self, batch: Batch, address: Lanes, mask: Mask) -> Lanes:
        """Gather from every block's shared memory."""
        pattern = self.pattern(batch, address, mask, load=True)
        if batch.events.address_only:
            return nothing(self.request.size)
        access = Access.EXCHANGED if self.request.manner is Manner.EXCHANGED else Access.READ
        for part in self.parts or (self,):
            read = part.examined(batch, address, mask, load=True) if self.parts else pattern
            batch.events.touch(access, read, **self.request.how)
        return batch.shared.load(pattern)

    def write(self, batch: Batch, address: Lanes, mask: Mask, values: Lanes) -> None:
        """Scatter to every block's shared memory."""
        pattern = self.pattern(batch, address, mask)
        batch.events.touch(Access.WRITE, pattern, values=values, **self.request.how)
        if not batch.events.address_only:
            batch.shared.store(pattern, values)

    def update(
        self, batch: Batch, address: Lanes, mask: Mask, apply: Apply, expected: Lanes | None = None
    ) -> Lanes:
        """Change elements in place."""
        pattern = self.pattern(batch, address, mask)
        if self.request.site is not None:
            batch.tally.add(self.request.site, "turns", pattern.turns)
        old: Lanes = np.zeros(batch.shape, dtype=moved_dtype(self.request.size))
        failed = None
        if not batch.events.address_only:
            old = batch.shared.update(pattern, apply)
            failed = _failed(old, np.broadcast_to(mask.lanes, old.shape), expected)
        batch.events.touch(Access.ATOMIC, pattern, values=failed, **self.request.how)
        if batch.means.phased and batch.means.fences:
            self._hand_on(batch, pattern)
        return old

    def _hand_on(self, batch: Batch, pattern: SharedPattern) -> None:
        """Each warp's atomic operation releases what was fenced, and acquires what those before it released.

        That is told of those at one address, such as a count of who has ended.
        """
        places = pattern.address if pattern.used is None else pattern.address[pattern.used]
        if places.min() < places.max():
            return
        phase = int(places.flat[0]), ATOMIC_PHASE
        lanes = batch.spread(pattern.mask.lanes)
        for warp in np.flatnonzero(lanes.any(axis=(0, 2))).tolist():
            own = lanes & (np.arange(batch.warps) == warp)[:, None]
            for access in (Access.RELAXED, Access.ACQUIRE):
                batch.events.synchronise(access, own, phase, self.request.line)

    def pattern(self, batch: Batch, address: Lanes, mask: Mask, *, load: bool = False) -> SharedPattern:
        site, tally, pattern = self.request.site, batch.tally, self.examined(batch, address, mask, load=load)
        assert site is not None
        tally.charge(site, pattern.costs, but=self.request.elsewhere)
        return pattern

    def examined(self, batch: Batch, address: Lanes, mask: Mask, *, load: bool) -> SharedPattern:
        """Return an access's pattern, checked when it is new."""
        known = batch.memo.patterns[self.request]
        return known.of((address,), mask, lambda: self.checked(batch, address, mask, load=load))

    def checked(self, batch: Batch, address: Lanes, mask: Mask, *, load: bool) -> SharedPattern:
        """Return the pattern of an access that nobody has made before."""
        request, place = self.request, None
        if batch.layout.several:
            start = address.astype(np.int64) + request.offset
            access = ClusterAccess(batch, request.line, start, request.size, mask)
            place = access.places(remote=request.remote, whole=not self.parts)
            access.require_aligned()
            away = mask.lanes & (place // batch.layout.stride != batch.layout.rank_of_warp)
            if request.site is not None and away.any():
                batch.tally.remote.add(request.site)
        elif not self.parts:
            check_bounds(batch, request, address, mask, batch.shared.size, "shared")
        if request.vector or not batch.layout.several:
            check_alignment(batch, request, address, mask, shared=True)
        return SharedPattern(
            address, request.offset, mask, request.size, batch.shared.block_bytes, load=load, place=place
        )


def _failed(old: Lanes, lanes: Bools, expected: Lanes | None) -> Bools | None:
    """Return which of these lanes of an atomic operation found another value than they expected."""
    return None if expected is None else differ(old[lanes], expected.view(old.dtype)[lanes])


@dataclass
class LocalSpace(GlobalSpace):
    """Local memory: each lane's own bytes, which no other lane can see; requests are counted."""

    is_global = False

    def _counted_parts(
        self, batch: Batch, address: Lanes, mask: Mask, verb: str, *, in_turn: bool = False
    ) -> list[tuple[Buffer | LocalLanes, Mask]]:
        request, local = self.request, batch.local
        check_bounds(batch, request, address, mask, batch.local_bytes, "local")
        check_alignment(batch, request, address, mask)
        if request.site is not None:
            batch.tally.add(request.site, "requests", mask.warp_count)
        passes_on = batch.events.address_only or batch.passes_on(FaultKind.UNINITIALISED_LOCAL)
        if verb == "reads" and not passes_on:
            written = local.written.reshape(-1, request.size).take(self._index(local, address, mask), axis=0)
            text = "reads a variable or array of its own to which nothing had been written"
            missing = np.asarray(~written.all(axis=-1))
            batch.refuse(FaultKind.UNINITIALISED_LOCAL, mask, missing, request.line, text)
        return [(local, mask)]

    def _index(self, buffer: Buffer | LocalLanes, address: Lanes, mask: Mask) -> NDArray[np.intp]:
        assert isinstance(buffer, LocalLanes)
        index = (address.astype(np.int64) + self.request.offset) // self.request.size
        index = index if mask.whole else np.where(mask.narrowed_to(index.shape), index, 0)
        return buffer.starts // self.request.size + index


class GenericSpace(Struct):
    """Generic addresses: each lane's address says which space it means."""

    to_global: Space
    to_shared: Space
    to_local: Space
    offset: int

    def read(self, batch: Batch, address: Lanes, mask: Mask) -> Lanes:
        parts = self.parts(address, mask)
        return _by_lanes((part, space.read(batch, inner, part)) for space, part, inner in parts)

    def write(self, batch: Batch, address: Lanes, mask: Mask, values: Lanes) -> None:
        for space, part, inner in self.parts(address, mask):
            space.write(batch, inner, part, values)

    def update(
        self, batch: Batch, address: Lanes, mask: Mask, apply: Apply, expected: Lanes | None = None
    ) -> Lanes:
        parts = self.parts(address, mask)
        how = apply, expected
        return _by_lanes((part, space.update(batch, inner, part, *how)) for space, part, inner in parts)

    def parts(self, address: Lanes, mask: Mask) -> list[tuple[Space, Mask, Lanes]]:
        """Divide the lanes by the space that their address means, with their address in it."""
        start = address + self.offset
        shared = (start >= SHARED_WINDOW) & (start < SHARED_WINDOW + WINDOW_BYTES)
        local = (start >= LOCAL_WINDOW) & (start < LOCAL_WINDOW + WINDOW_BYTES)
        parts: list[tuple[Space, Mask, Lanes]] = []
        for space, inside, window in (
            (self.to_shared, shared, SHARED_WINDOW),
            (self.to_local, local, LOCAL_WINDOW),
            (self.to_global, ~shared & ~local, 0),
        ):
            lanes = mask.lanes & inside
            if lanes.any():
                part = mask if mask.whole and lanes.all() else mask.of(lanes)
                parts.append((space, part, address - window if window else address))
        return parts


def _by_lanes(found: Iterable[tuple[Mask, Lanes]]) -> Lanes:
    (_, result), *others = found
    for part, value in others:
        result = np.where(part.lanes, value, result)
    return result
