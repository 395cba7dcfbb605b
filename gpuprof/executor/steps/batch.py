# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A batch: the thread blocks that run together, with their registers, memories and counts."""

from collections import defaultdict
from collections.abc import Collection
from functools import cached_property
from typing import Any, NoReturn, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, Index, KernelFault, SharedByte
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools, Mask, first_true
from gpuprof.executor.lanes.meetings import Meeting
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.tally import Costs, Tally
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.bulk_copies import BulkCopies
from gpuprof.executor.memory.bulk_stores import BulkStores, SourceReads
from gpuprof.executor.memory.coalescing import Footprints
from gpuprof.executor.memory.events import Events
from gpuprof.executor.memory.global_accesses import LocalLanes
from gpuprof.executor.memory.global_flights import AsyncCopies, GlobalFlights
from gpuprof.executor.memory.global_memory import GlobalMemory
from gpuprof.executor.memory.mbarriers import ClusterBarrier, Mbarriers, Stall
from gpuprof.executor.memory.moments import Timeline
from gpuprof.executor.memory.remembered import Remembered
from gpuprof.executor.memory.shared_groups import SharedGroup
from gpuprof.executor.memory.shared_memory import SharedBlocks, SharedMemory, SharedPattern
from gpuprof.executor.memory.thread_order import ThreadOrder
from gpuprof.executor.program.means import OrderingMeans
from gpuprof.executor.program.shared_layout import SharedLayout
from gpuprof.executor.steps.launch_state import Clock, Frames, Printed, SliceRun

#: Faults that a race, or a value that nobody wrote, may have led to.
_CONSEQUENCES = {FaultKind.OUT_OF_BOUNDS, FaultKind.MISALIGNED, FaultKind.READ_ONLY, FaultKind.TRAP}


class Geometry(Struct, frozen=True):
    """The shape of a launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Warps of a block, the last one perhaps not full."""
        return -(-self.threads // WARP)

    def thread_index(self, warp: int, lane: int) -> tuple[int, int, int]:
        number = warp * WARP + lane
        x, y, _ = self.block
        return number % x, number // x % y, number // (x * y)


class AccessMemory(Struct):
    """What the instructions of one batch remember of their last accesses, by who asks, or by size."""

    patterns: defaultdict[object, Remembered[SharedPattern]] = field(
        default_factory=lambda: defaultdict(Remembered)
    )
    copies: defaultdict[int, Remembered[dict[int, Costs]]] = field(
        default_factory=lambda: defaultdict(Remembered)
    )
    footprints: defaultdict[int, Footprints] = field(default_factory=lambda: defaultdict(Footprints))
    products: defaultdict[int, Remembered[Any]] = field(default_factory=lambda: defaultdict(Remembered))
    #: Operands of products, by their descriptors, that are known to lie in shared memory.
    inside: defaultdict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    shared_groups: dict[int, SharedGroup] = field(default_factory=dict)


class OwnMemory(Struct, frozen=True):
    """What a program has of shared and local memory.

    Attributes:
        granule: Bytes of the smallest access to shared memory.
        reserved_bytes: Of its shared memory, how many at the start belong to the system; 0 where it does not
            use them. Where it does, addresses count from there.
        unmet_alignments: Of shared variables that lie at no multiple of the alignment that they ask for, by
            name: that alignment and their address, in bytes.
    """

    shared: SharedLayout
    granule: int
    start: int
    local_bytes: int
    reserved_bytes: int
    unmet_alignments: dict[str, tuple[int, int]]

    def reserved(self, layout: ClusterLayout) -> list[slice]:
        """Return where what belongs to the system lies, in each block of a cluster: it holds zeros."""
        starts = [rank * layout.stride for rank in range(layout.blocks)]
        return [slice(start, start + self.reserved_bytes) for start in starts]


class RegisterShadow(Protocol):
    """What an observer of steps keeps beside the registers of one batch.

    `absent` are the lanes that have read one that takes no part in a shuffle.
    """

    absent: Bools | None

    @property
    def passed_on(self) -> Collection[FaultKind]:
        """What is no fault by itself: the observer judges where it leads."""

    @property
    def remark(self) -> str:
        """What it found that is no fault."""

    def saved(self) -> Any:
        """Return what stands beside the registers now."""

    def restore(self, saved: Any, lanes: Bools) -> None:
        """Put back what some lanes had."""


class Batch:
    """The state of the thread blocks that run together.

    Of a launch in clusters of several blocks, what is called a block here is a whole cluster: see
    `ClusterLayout`.

    Attributes:
        alone: False when other lanes that still live are elsewhere, so that writes must spare them.
        indices: blockIdx of each block, or of the first one of each cluster: shape (blocks, 3).
        stall: The lanes whose last wait for an mbarrier failed and cannot succeed yet, for the scheduler.
        meeting: The lanes that exchange values at a warp operation, where they come from several places of
            the program.
        shadow: What the observer of its steps keeps, if the program has one.
        trap: What is said of a thread that executes a trap.
    """

    trap: str

    def __init__(
        self,
        kernel: str,
        geometry: Geometry,
        indices: NDArray[np.int64],
        memory: GlobalMemory,
        layout: ClusterLayout,
        own: OwnMemory,
        means: OrderingMeans,
        tally: Tally,
    ) -> None:
        self.kernel = kernel
        self.geometry = geometry
        self.indices = indices
        self.memory = memory
        self.tally = tally
        self.layout = layout
        self.blocks, self.warps = len(indices), geometry.warps * layout.blocks
        self.shape = self.blocks, self.warps, WARP
        self.registers: list[Lanes] = []
        self.mask = Mask(existing_lanes(geometry, layout.blocks), self.blocks, self.warps)
        self.live = self.mask
        self.alone = True
        self.means = means
        self.clock = Clock()
        self.stall: Stall | None = None
        self.meeting: Meeting | None = None
        self.shadow: RegisterShadow | None = None
        self.shared = SharedMemory(self.blocks, layout.all_bytes)
        self.local_bytes = -(-own.local_bytes // 16) * 16
        lanes = self.blocks * self.warps * WARP
        starts = self.local_bytes * np.arange(lanes).reshape(self.shape)
        self.local = LocalLanes(np.zeros(lanes * self.local_bytes, dtype=np.uint8), starts)
        order = ThreadOrder(Timeline(), 0, self.blocks, self.warps, layout=layout)
        self.events = Events(order, SharedBlocks(self.shared, layout), self.local, tally)
        self.flights = GlobalFlights(self.events, memory, self.fault, self.names)
        self.copies = AsyncCopies(self.shared, self.flights, self.events)
        self.memo = AccessMemory()
        self.printed = Printed()
        #: Where the batch runs its control slice alone.
        self.control_slice: SliceRun | None = None

    def settle(self) -> None:
        """Add to the tally what was counted apart from it."""
        for group in self.memo.shared_groups.values():
            group.settle(self.tally)
        self.tally.settle()

    def spread(self, value: Lanes) -> Lanes:
        """Return a value with an element for every lane of the batch."""
        return np.broadcast_to(value, self.shape)

    def passes_on(self, kind: FaultKind) -> bool:
        """Whether something is no fault by itself, as the observer of the steps judges where it leads."""
        return self.shadow is not None and kind in self.shadow.passed_on

    def close(self) -> None:
        """Let go of everything: parts refer back here, and Python looks for such rings only now and then."""
        self.mask.known.clear()
        vars(self).clear()

    @cached_property
    def every_block(self) -> Bools:
        """All thread blocks, those of clusters too: shape (blocks,)."""
        return np.ones(self.blocks * self.layout.blocks, dtype=np.bool_)

    @cached_property
    def mbarriers(self) -> Mbarriers:
        return Mbarriers(self.blocks, self.shared.size)

    @cached_property
    def cluster_barrier(self) -> ClusterBarrier:
        return ClusterBarrier(self.blocks, self.warps)

    @cached_property
    def frames(self) -> Frames:
        """What functions that call themselves keep."""
        return Frames(self.blocks, self.warps)

    @cached_property
    def bulk(self) -> BulkCopies:
        """What the copy engine moves to shared memory."""
        return BulkCopies(self.shared, self.events, self.mbarriers, self.warps, self.flights)

    @cached_property
    def bulk_stores(self) -> BulkStores:
        """What the copy engine moves to global memory."""
        return BulkStores(self.bulk, self.warps)

    @cached_property
    def products(self) -> SourceReads:
        """What `wgmma` multiplies."""
        return SourceReads(self.bulk, self.warps, Access.MULTIPLIED, Access.PRODUCT)

    def fault(
        self,
        kind: FaultKind,
        detail: str,
        line: int,
        position: tuple[int, int, int],
        address: int | SharedByte | None = None,
    ) -> NoReturn:
        """Raise the fault of the lane at `position` (block, warp, lane), or one before that led to it."""
        if kind in _CONSEQUENCES:
            self.events.hear("settle")  # an address, or what is asserted, may come of a race or of nothing
        thread, block = self.names(position)
        shared = address if isinstance(address, SharedByte) else None
        raise KernelFault(
            kind,
            detail,
            kernel=self.kernel,
            source_line=line,
            block=block,
            thread=thread,
            address=address.byte if isinstance(address, SharedByte) else address,
            shared=shared,
        )

    def refuse(
        self,
        kind: FaultKind,
        mask: Mask,
        wrong: Bools,
        line: int,
        text: str,
        *shown: Lanes,
        at: Lanes | None = None,
        shared: bool = False,
    ) -> None:
        """Raise the fault of the first lane in `mask` that is true in `wrong`, if any is.

        The text takes what that lane has of each of `shown`; `at` is its address, a byte of `shared` memory.
        """
        if not np.count_nonzero(wrong) or not (lanes := wrong & mask.lanes).any():
            return
        position = first_true(lanes)
        *held, place = (
            None if each is None else int(np.broadcast_to(each, lanes.shape)[position])
            for each in (*shown, at)
        )
        address = SharedByte(place) if shared and place is not None else place
        self.fault(kind, text.format(*held), line, position, address)

    def names(self, position: tuple[int, int, int]) -> tuple[Index, Index]:
        """Return threadIdx and blockIdx of the lane at `position` (block, warp, lane)."""
        block, warp, lane = position
        x, y, z = (int(i) for i in self.indices[block])
        rank, inside = divmod(warp, self.geometry.warps)
        return self.geometry.thread_index(inside, lane), self.layout.index_of((x, y, z), rank)


def existing_lanes(geometry: Geometry, blocks: int = 1) -> NDArray[np.bool_]:
    """Return which lanes of a cluster hold a thread: all, unless the last warp of its blocks is not full."""
    if geometry.threads % WARP == 0:
        return np.ones((1, 1, 1), dtype=np.bool_)
    lanes = (np.arange(geometry.warps * WARP) < geometry.threads).reshape(1, geometry.warps, WARP)
    return np.tile(lanes, (1, blocks, 1))
