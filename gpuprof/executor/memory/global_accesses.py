# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How instructions touch global memory: what observers are told, and what may not meet without order."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import Index
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype
from gpuprof.executor.memory.moments import Numbers
from gpuprof.executor.memory.thread_order import ThreadOrder


class Manner(Enum):
    """How an instruction touches global memory; the value is what a message calls it."""

    READ = "reads"
    #: A plain load whose value an atomic compare-and-swap of the same word checks (`program.guesses`).
    GUESS = "reads for a compare-and-swap"
    #: A plain load whose value only guarded stores may take (`program.guesses`).
    IDLE_READ = "reads for what it may store"
    #: A plain load whose value a shuffle takes: stores of its own warp behind it do not disturb it.
    EXCHANGED = "reads for a shuffle"
    WRITE = "writes"
    STRONG_READ = "makes a volatile or atomic read of"
    #: An explicit `ld.relaxed`: unlike a volatile load it lets nobody rely on what came before the store.
    RELAXED_READ = "reads as relaxed"
    STRONG_WRITE = "makes a volatile or atomic write to"
    #: Strong ones whose scope is the block.
    NEAR_READ = "reads for its own block alone"
    NEAR_RELAXED_READ = "reads as relaxed for its own block alone"
    NEAR_WRITE = "updates atomically for its own block"

    @property
    def writes(self) -> bool:
        return self not in (*PLAIN_READS, Manner.GUESS, *STRONG_READS)


PLAIN_READS = (Manner.READ, Manner.IDLE_READ, Manner.EXCHANGED)
NEAR_READS = (Manner.NEAR_READ, Manner.NEAR_RELAXED_READ)
RELAXED_READS = (Manner.RELAXED_READ, Manner.NEAR_RELAXED_READ)
STRONG_READS = (Manner.STRONG_READ, Manner.RELAXED_READ, *NEAR_READS)
STRONG = (Manner.GUESS, *STRONG_READS, Manner.STRONG_WRITE, Manner.NEAR_WRITE)

#: What each manner may not meet without order: with threads of any block, and of other blocks. Two plain
#: stores may, where they store the same.
CONFLICTS: dict[Manner, tuple[tuple[Manner, ...], tuple[Manner, ...]]] = {
    **dict.fromkeys(PLAIN_READS, ((Manner.WRITE, Manner.STRONG_WRITE, Manner.NEAR_WRITE), ())),
    Manner.WRITE: ((*PLAIN_READS, *STRONG), ()),
    **dict.fromkeys(
        (Manner.GUESS, Manner.STRONG_READ, Manner.RELAXED_READ), ((Manner.WRITE,), (Manner.NEAR_WRITE,))
    ),
    **dict.fromkeys(NEAR_READS, ((Manner.WRITE,), (Manner.STRONG_WRITE, Manner.NEAR_WRITE))),
    Manner.STRONG_WRITE: ((*PLAIN_READS, Manner.WRITE), (*NEAR_READS, Manner.NEAR_WRITE)),
    Manner.NEAR_WRITE: ((*PLAIN_READS, Manner.WRITE), STRONG),
}


class Cache(Enum):
    """What a load of global memory goes through."""

    COHERENT = "what the block stores too"
    READ_ONLY = "a cache for what does not change (ld.global.nc)"
    TEXTURE = "a texture"
    CONSTANT = "a cache that gives a warp one word at a time (ld.const)"


@dataclass(frozen=True, eq=False)
class MemoryRequest:
    """What a static memory instruction asks for.

    Attributes:
        site: Its number in the tally, or None when it is not counted.
        size: Bytes per lane, all elements of a vector together.
        elsewhere: What its decoder counts in another way.
        remote: Whether it may go to the shared memory of other blocks of its cluster.
        vector: Offset and bytes of what must be aligned, where that is more than what is accessed.
    """

    site: int | None
    line: int
    size: int
    offset: int
    manner: Manner = Manner.READ
    elsewhere: Collection[str] = ()
    remote: bool = False
    parts: int = 1
    cache: Cache = Cache.COHERENT
    vector: tuple[int, int] | None = None

    def access(self, index: NDArray[np.intp], mask: Mask) -> dict[str, Any]:
        """Return what is told of lanes that access one buffer."""
        return {"index": index, "mask": mask, "size": self.size, **self.how}

    @cached_property
    def how(self) -> dict[str, Any]:
        """What is told of any such access."""
        how = {"line": self.line, "manner": self.manner, "parts": self.parts, "site": self.site}
        return how | {"cache": self.cache}


@dataclass(eq=False)
class MemoryOperation:
    """What threads of a batch do to memory in one instruction: who, where, how, and when.

    `index` counts in units of `size` bytes, a whole vector's: for the lanes in `mask`, of a shape that
    broadcasts to (blocks, warps, 32); or for the threads in `by`, one each, in the order in which they take
    effect. A vector's `parts` count as so many operations. It happens at a `moment` that who judges it gives
    it. An `address_only` one moves no values: of a bulk copy it may tell the first of so many `pieces` alone,
    and of a box the bytes of its `rows`, and where each begins after the first.
    """

    order: ThreadOrder
    index: NDArray[np.intp]
    mask: Mask | None
    size: int
    line: int
    manner: Manner = Manner.READ
    parts: int = 1
    cache: Cache = Cache.COHERENT
    by: Numbers | None = None
    moment: int = 0
    address_only: bool = False
    pieces: int = 1
    rows: tuple[Numbers, Numbers] | None = None
    site: int | None = None
    tally: Tally | None = None

    @cached_property
    def place(self) -> Numbers:
        """The place of each thread that takes part."""
        return self.each(self.index)

    @cached_property
    def who(self) -> Numbers:
        return self.by if self.by is not None else self.each(self.order.threads)

    @property
    def strong(self) -> bool:
        """Whether it is volatile, relaxed or atomic."""
        return self.manner in STRONG and self.manner is not Manner.GUESS

    @property
    def near(self) -> bool:
        """Whether its scope is the block."""
        return self.manner in (*NEAR_READS, Manner.NEAR_WRITE)

    def each(self, values: Lanes) -> Lanes:
        """Return the value of each, of those that the lanes, or the threads, have."""
        if self.mask is None:
            return values
        shape = (self.order.blocks, self.order.warps, WARP)
        spread = np.broadcast_to(values, shape)
        return spread.reshape(-1) if self.mask.whole else spread[np.broadcast_to(self.mask.lanes, shape)]

    def count(self, event: str, chosen: Bools) -> None:
        """Count threads that are true in `chosen`: an event "words" of a global load as `global_load_words`.

        Blocks that run stand for others: count only what a block does by itself. Of instructions that the
        hardware's counters do not see, nothing is counted.
        """
        if self.tally is not None and self.site is not None:
            blocks = self.who[chosen] // self.order.block_threads - self.order.first
            self.tally.add(self.site, event, np.bincount(blocks, minlength=self.order.blocks))

    def of(self, chosen: Bools, manner: Manner) -> "MemoryOperation":
        """Return what some of its threads do, in another manner."""
        place, who = self.place[chosen], self.who[chosen]
        return replace(self, index=place, mask=None, by=who, manner=manner)


class LocalLanes:
    """The local memory of all lanes of a batch, one after the other, as if it were one buffer.

    Those of a lane start at one of `starts`. `written` tells the bytes to which something has been written.
    """

    address, item_bytes, name = 1, 1, "local memory"
    read_only = combined = loaded = False

    def __init__(self, content: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self.content, self.size, self.starts = content, content.size, starts
        self.written = np.zeros(self.size, dtype=np.bool_)

    def view(self, size: int) -> NDArray[Any]:
        """Return the content as elements of `size` bytes."""
        return self.content.view(moved_dtype(size))

    changeable = view

    def store(self, index: NDArray[np.intp], values: Lanes, size: int) -> None:
        """Store `values` at `index`, both in elements of `size` bytes."""
        self.view(size)[index] = values
        self.mark(index, size)

    def mark(self, index: NDArray[np.intp], size: int) -> None:
        """Remember that something was written there, though perhaps not its value."""
        self.written.reshape(-1, size)[index] = True


#: The names of a thread of a launch, by its number: threadIdx and blockIdx.
Named = Callable[[int], tuple[Index, Index]]


class Observer:
    """What is told of a launch as it runs, and changes nothing in it: a checker is one of these, in one file.

    One that nobody asked for costs nothing.
    """

    def begin(self, named: Named) -> None:
        """A launch begins, of whose threads `named` tells the names."""

    def wants(self, buffer: Any) -> bool:
        """Whether it is to be told who touches a buffer: of global memory, or that of the blocks of a batch.

        What each batch has of its own comes as `SharedBlocks` and `LocalLanes`.
        """
        return isinstance(buffer, Buffer)

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        """Threads load."""

    def write(self, buffer: Buffer, one: MemoryOperation, values: Lanes) -> None:
        """Threads are about to store values."""

    def update(self, buffer: Buffer, one: MemoryOperation, failed: Bools | None = None) -> None:
        """Threads have changed what is there by atomic operations, but for those that `failed` to compare."""
