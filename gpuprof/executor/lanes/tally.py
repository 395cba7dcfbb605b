# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Event counts of one batch: per memory instruction, per basic block, and per thread block."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.loop_turns import LoopTurns
from gpuprof.executor.lanes.masks import Counts, Mask


@dataclass(frozen=True)
class Site:
    """A static instruction that is counted by itself.

    Its counters are named after its family ("global_load", "shared_store", "branch") and what is counted
    there ("requests"), unless `names` says otherwise. `ptx_line` is 0 for one that is in no text.
    """

    family: str
    line: int
    ptx_line: int = 0
    names: Mapping[str, str] = field(default_factory=dict)

    def counter(self, event: str) -> str:
        """Return the name under which an event is counted."""
        return self.names.get(event, f"{self.family}_{event}")


class Tally:
    """Counts of one batch.

    Args:
        sites: How many instructions are counted by themselves.
        basic_blocks: Of the program.
        blocks: Thread blocks.
        loops: Loops of one basic block whose turns are counted, each with the blocks before it.

    Attributes:
        events: For each site what was counted there, by event: shapes (blocks,).
        threads: Lanes that ran each basic block, shape (basic blocks, blocks).
        warps: Warps that ran each basic block with at least one lane, likewise.
        loops: Turns of the loops, by their basic blocks.
    """

    def __init__(
        self, sites: int, basic_blocks: int, blocks: int, loops: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        self._blocks = blocks
        self.events: list[dict[str, Counts]] = [{} for _ in range(sites)]
        self.threads: NDArray[np.int64] = np.zeros((basic_blocks, blocks), dtype=np.int64)
        self.warps: NDArray[np.int64] = np.zeros((basic_blocks, blocks), dtype=np.int64)
        # Views, because picking a row out of an array costs more than adding to it.
        self._threads, self._warps = list(self.threads), list(self.warps)
        self.loops = {number: LoopTurns() for number in loops or ()}
        self._before = [
            (before, self.loops[number]) for number, all in (loops or {}).items() for before in all
        ]

    def add(self, site: int, event: str, per_block: Counts) -> None:
        """Add counts of shape (blocks or 1,) to one event of one site."""
        rows = self.events[site]
        if event in rows:
            rows[event] += per_block
        else:
            rows[event] = np.zeros(self._blocks, dtype=np.int64) + per_block

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
