# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is told of accesses to shared memory, and of what orders threads."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.block_kinds import Kinds, kinds_of, rows_of
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks
from gpuprof.executor.memory.moments import Phase
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedPattern, next_serial

_REMEMBERED_SIGNALS = 1 << 14


class Access(Enum):
    """What an entry of the log did."""

    READ = "read"
    EXCHANGED = "read of what a shuffle takes"
    WRITE = "write"
    ATOMIC = "atomic"
    COPY = "start of an asynchronous copy"
    LANDED = "end of an asynchronous copy"
    SYNCWARP = "syncwarp"
    SYNCLANES = "syncwarp of some lanes"
    MBARRIER = "operation on an mbarrier"
    ARRIVED = "arrival at an mbarrier, which releases"
    RELEASE = "arrival at an mbarrier"
    ACQUIRE = "successful wait for an mbarrier"
    BULK = "start of a bulk copy, or of an asynchronous store, to shared memory"
    REDUCTION = "start of an asynchronous reduction in shared memory"
    OBSERVED = "wait for a bulk copy"
    SOURCE = "start of a bulk copy from shared memory"
    SOURCED = "end of a bulk copy from shared memory"
    MEET = "barrier of whole blocks"
    FENCED = "fence"
    RELAXED = "arrival, or atomic operation, that releases what a fence did"
    MULTIPLIED = "start of a product of matrices in shared memory"
    PRODUCT = "end of a product of matrices in shared memory"
    FENCE = "fence between threads and the copy engine"
    STARTED = "start of a copy, in a cluster, that a phase of an mbarrier waits for"
    PASSED = "start of a copy from the shared memory of one block to that of another"
    ENDED = "end of blocks of a cluster"


#: What orders warps: see `WarpClocks.hear`.
ORDERING = frozenset(
    {
        *(Access.SYNCWARP, Access.SYNCLANES, Access.RELEASE, Access.ACQUIRE, Access.MEET),
        *(Access.FENCED, Access.RELAXED),
    }
)


@dataclass(frozen=True, eq=False)
class Signal:
    """What a wait for an mbarrier, or an arrival at it, orders, or a `__syncwarp`.

    `phase` is the barrier, and the parity of its phase; `copy` the one that an `OBSERVED` waited for.
    """

    serial: int
    lanes: Bools
    phase: Phase
    copy: ChunkPattern | SharedPattern | None = None

    @property
    def leading(self) -> int:
        """Blocks that are told apart: 1 when all do the same."""
        return max(len(self.lanes), self.copy.leading if self.copy else 1)

    @property
    def kinds(self) -> Kinds:
        """Which blocks have the same lanes come, for the same."""
        return kinds_of(self.lanes, *([self.copy.kinds[:, None]] if self.copy else []))

    def of_blocks(self, blocks: NDArray[np.intp]) -> "Signal":
        copy = self.copy.of_blocks(blocks) if self.copy else None
        return replace(self, lanes=rows_of(self.lanes, blocks), copy=copy)


#: The phases by which arrivals at the barrier of a cluster are known, by parity, and fences: those that reach
#: other blocks, and those for a block. No mbarrier has their number.
CLUSTER_PHASES = ((0, 0), (0, 1))
FENCE_PHASE, NEAR_FENCE_PHASE = (0, 2), (0, 3)
#: In the place of a parity: what atomic operations at an address hand on.
ATOMIC_PHASE = 4


class Signals:
    """Signals that are the same object for the same threads, so that verdicts hold."""

    def __init__(self) -> None:
        self._known: Kept[Signal] = Kept(_REMEMBERED_SIGNALS)

    def of(self, lanes: Bools, phase: Phase, copy: ChunkPattern | SharedPattern | None = None) -> Signal:
        """Return the signal of some threads, of shape (blocks or 1, warps, 32), at a phase."""
        lanes = uniform_blocks(lanes)
        key = (lanes.tobytes(), lanes.shape, phase, copy.serial if copy else None)
        return self._known.of(key, lambda: Signal(next_serial(), lanes.copy(), phase, copy))


class Entry(NamedTuple):
    """One logged access.

    `changed` is, of a write, whether each lane found another value than it wrote.
    """

    access: Access
    pattern: SharedPattern | ChunkPattern | Signal
    line: int
    changed: Bools | None = None


class Listener:
    """What hears of accesses to the shared memory of batches, and of what orders threads: see `Events`."""

    def touch(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern,
        line: int,
        values: Lanes | None = None,
    ) -> None:
        """Threads access shared memory, or a copy for them."""

    def synchronise(self, access: Access, signal: Signal, line: int) -> None:
        """Threads arrive somewhere, or go on past it."""

    def fence(self, mask: Mask, *, near: bool) -> None:
        """Threads execute a fence."""

    def settle(self) -> None:
        """What was done so far is to be judged now.

        It is in order with what comes, or something else would be reported first.
        """
