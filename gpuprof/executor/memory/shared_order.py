# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races on shared memory by the rule for global memory: the PTX memory model's, access by access.

What `races` and `phased_races` know is quick to tell and enough for most kernels: barriers, `__syncwarp` of
whole warps, mbarriers. Flags, locks, fences, `__syncwarp` of some lanes, and barriers at which some threads
only arrive order accesses too. Where those two find a race in a kernel that has such means, the launch is run
again and judged here.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_accesses import STRONG_READS, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.global_races import GlobalRaces, Shadow
from gpuprof.executor.memory.shared_memory import SharedMemory, SharedPattern

_WORD_BYTES = 4


class SharedBlocks:
    """The shared memory of a batch's blocks, one after the other, as if it were one buffer."""

    address = 0
    item_bytes = _WORD_BYTES

    def __init__(self, shared: SharedMemory, layout: ClusterLayout) -> None:
        self._shared = shared
        self._layout = layout
        self.size = shared.content.size

    def index(self, pattern: SharedPattern) -> NDArray[np.intp]:
        """Return where the lanes of a pattern access it, in units of their size."""
        if pattern.per_block:
            return pattern.index
        elements = self._shared.block_bytes // pattern.size
        return pattern.index + (np.arange(len(self._shared.content)) * elements)[:, None, None]

    def view(self, size: int) -> NDArray[np.generic]:
        """Return the content as elements of `size` bytes."""
        return self._shared.content.reshape(-1).view(moved_dtype(size))

    def written_count(self) -> int:
        """Return how many elements were stored to, which nobody counts here."""
        return 0

    def place(self, byte: int) -> tuple[str, int]:
        """Return what a message calls a byte, and its address."""
        return self._layout.byte(byte % self._shared.block_bytes)


@dataclass(frozen=True)
class LuckyRead:
    """A volatile or relaxed load of what another lane of its warp stores so, with nothing to order them."""

    line: int
    thread: int
    store_line: int


class SharedOrder(Observer):
    """Judges every access to the shared memory of one batch.

    `polled` are the lines of loads that are repeated until they find what they wait for. `lucky` is the first
    other load that is no race, but finds what the card's order of lanes decides.
    """

    def __init__(self, blocks: SharedBlocks, races: GlobalRaces, polled: Collection[int] = ()) -> None:
        self.lucky: LuckyRead | None = None
        self._polled = polled
        self._shadow = Shadow(blocks, races, at_once=True)

    def wants(self, buffer: Any) -> bool:
        """As an observer."""
        return isinstance(buffer, SharedBlocks)

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        """As an observer: judge a load, perhaps of the parts of a vector."""
        asked = one.manner in STRONG_READS and self.lucky is None and one.line not in self._polled
        if asked and (met := self._shadow.stored_in_warp(one)) is not None:
            self.lucky = LuckyRead(one.line, *met)
        self._shadow.read(one)

    def write(self, buffer: Any, one: MemoryOperation, values: Lanes) -> None:
        """As an observer."""
        self._shadow.write(one, values)

    def update(self, buffer: Any, one: MemoryOperation, failed: Bools | None = None) -> None:
        """As an observer."""
        self._shadow.update(one, failed)
