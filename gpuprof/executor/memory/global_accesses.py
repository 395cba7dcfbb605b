# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How instructions touch global memory, which of that may not meet without order, and who touches what."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.moments import OF_BLOCK, OF_CLUSTER, OF_WARP, Numbers
from gpuprof.executor.memory.thread_order import ThreadOrder


class Manner(Enum):
    """How an instruction touches global memory; the value is what a message calls it."""

    READ = "reads"
    #: A plain load whose value an atomic compare-and-swap of the same word checks (`program.guesses`).
    GUESS = "reads for a compare-and-swap"
    WRITE = "writes"
    #: A plain store of the value that another thread has stored without order.
    REPEATED = "writes the same to"
    STRONG_READ = "reads as volatile or atomic"
    #: An explicit `ld.relaxed`: unlike a volatile load it lets nobody rely on what came before the store.
    RELAXED_READ = "reads as relaxed"
    STRONG_WRITE = "writes as volatile or atomic"
    #: Strong ones whose scope is the block.
    NEAR_READ = "reads for its own block alone"
    NEAR_RELAXED_READ = "reads as relaxed for its own block alone"
    NEAR_WRITE = "updates atomically for its own block"

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self not in (Manner.READ, Manner.GUESS, *STRONG_READS)


NEAR_READS = (Manner.NEAR_READ, Manner.NEAR_RELAXED_READ)
RELAXED_READS = (Manner.RELAXED_READ, Manner.NEAR_RELAXED_READ)
STRONG_READS = (Manner.STRONG_READ, Manner.RELAXED_READ, *NEAR_READS)
STRONG = (Manner.GUESS, *STRONG_READS, Manner.STRONG_WRITE, Manner.NEAR_WRITE)

#: What each manner may not meet without order: with threads of any block, and of other blocks.
CONFLICTS: dict[Manner, tuple[tuple[Manner, ...], tuple[Manner, ...]]] = {
    Manner.READ: ((Manner.REPEATED, Manner.STRONG_WRITE, Manner.NEAR_WRITE), ()),
    Manner.GUESS: ((Manner.REPEATED,), (Manner.NEAR_WRITE,)),
    Manner.WRITE: ((Manner.READ, *STRONG), ()),
    Manner.STRONG_READ: ((Manner.REPEATED,), (Manner.NEAR_WRITE,)),
    Manner.RELAXED_READ: ((Manner.REPEATED,), (Manner.NEAR_WRITE,)),
    **dict.fromkeys(NEAR_READS, ((Manner.REPEATED,), (Manner.STRONG_WRITE, Manner.NEAR_WRITE))),
    Manner.STRONG_WRITE: ((Manner.READ, Manner.REPEATED), (*NEAR_READS, Manner.NEAR_WRITE)),
    Manner.NEAR_WRITE: (
        (Manner.READ, Manner.REPEATED),
        STRONG,
    ),
}


def spread(order: ThreadOrder, index: NDArray[np.intp], mask: Mask) -> tuple[Numbers, Numbers]:
    """Return the place and the number of every thread in `mask`."""
    shape = (order.blocks, order.warps, WARP)
    place, threads = np.broadcast_to(index, shape), order.threads
    if mask.whole:
        return place.reshape(-1), threads.reshape(-1)
    lanes = np.broadcast_to(mask.lanes, shape)
    return place[lanes], threads[lanes]


def values_of(values: Lanes, order: ThreadOrder, mask: Mask) -> Lanes:
    """Return the value of every thread in `mask`."""
    shape = (order.blocks, order.warps, WARP)
    spread = np.broadcast_to(values, shape)
    return spread.reshape(-1) if mask.whole else spread[np.broadcast_to(mask.lanes, shape)]


def merged(order: ThreadOrder, index: NDArray[np.intp]) -> tuple[Numbers, Numbers, Numbers, int]:
    """Return for a load by all lanes each place, the first and the last thread there, and their kind."""
    _, warps, width = index.shape
    threads = order.threads
    first, last = threads[:, :warps, :width], threads[:, -warps:, -width:]
    whole = OF_CLUSTER if order.layout.several else OF_BLOCK
    kind = whole if warps < order.warps else OF_WARP if width < WARP else 0
    place = np.broadcast_to(index, first.shape)
    return place.reshape(-1), first.reshape(-1), last.reshape(-1), kind
