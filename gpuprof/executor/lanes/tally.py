# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Event counts of one batch: per memory instruction, per basic block, and per thread block."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.loop_turns import LoopTurns
from gpuprof.executor.lanes.masks import Counts, Mask


class Event(IntEnum):
    """What is counted for a site, an instruction whose cost depends on its operands."""

    REQUESTS = 0
    SECTORS = 1
    USEFUL_BYTES = 2
    WAVEFRONTS = 3
    CONFLICTS = 4
    THREADS = 5
    DIVERGED = 6
    OPERATIONS = 7


@dataclass(frozen=True)
class Site:
    """A static instruction that is counted by itself.

    Attributes:
        family: What its events add up to: "global_load", "shared_store", "branch" and so on.
        line: Source line.
        ptx_line: Line of the PTX text; 0 for one that is in no text.
    """

    family: str
    line: int
    ptx_line: int = 0


class Tally:
    """Counts of one batch.

    Args:
        sites: How many instructions are counted by themselves.
        basic_blocks: Of the program.
        blocks: Thread blocks.
        loops: Loops of one basic block whose turns are counted, each with the blocks before it.

    Attributes:
        events: Shape (sites, events, blocks).
        threads: Lanes that ran each basic block, shape (basic blocks, blocks).
        warps: Warps that ran each basic block with at least one lane, likewise.
        loops: Turns of the loops, by their basic blocks.
    """

    def __init__(
        self, sites: int, basic_blocks: int, blocks: int, loops: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        self.events: NDArray[np.int64] = np.zeros((sites, len(Event), blocks), dtype=np.int64)
        self.threads: NDArray[np.int64] = np.zeros((basic_blocks, blocks), dtype=np.int64)
        self.warps: NDArray[np.int64] = np.zeros((basic_blocks, blocks), dtype=np.int64)
        # Views, because picking a row out of an array costs more than adding to it.
        self._events = [list(site) for site in self.events]
        self._threads, self._warps = list(self.threads), list(self.warps)
        self.loops = {number: LoopTurns() for number in loops or ()}
        self._before = [
            (before, self.loops[number]) for number, all in (loops or {}).items() for before in all
        ]

    def add(self, site: int, event: Event, per_block: Counts) -> None:
        """Add counts of shape (blocks or 1,) to one event of one site."""
        row = self._events[site][event]
        row += per_block

    def add_together(self, first: int, counts: NDArray[np.int64]) -> None:
        """Add counts of shape (sites, events, blocks or 1) to the sites from number `first` on."""
        self.events[first : first + len(counts)] += counts

    def ran(self, basic_block: int, mask: Mask) -> None:
        """Count one pass of the lanes in `mask` through a basic block."""
        threads, warps = self._threads[basic_block], self._warps[basic_block]
        threads += mask.thread_count
        warps += mask.warp_count
        if self.loops:
            self._follow(basic_block, mask)

    def _follow(self, basic_block: int, mask: Mask) -> None:
        for before, loop in self._before:
            if before == basic_block:
                loop.enter(mask)
        if basic_block in self.loops:
            self.loops[basic_block].turn(mask)
