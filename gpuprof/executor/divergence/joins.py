# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lanes that leave a join before others have reached it, because those cannot get there without them.

Warps never wait for each other at a join. Lanes of a warp do, as on hardware, until nothing else can run.
"""

import numpy as np

from gpuprof.executor.divergence.strands import Join, Strand, joins_from
from gpuprof.executor.lanes.masks import WARP, Bools
from gpuprof.executor.steps.batch import Batch


class Joins:
    """The joins of one batch at which lanes await strands that are stuck.

    Attributes:
        loose: Warps of which lanes have gone on without others: shape (blocks or 1, warps or 1, 1).
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.loose: Bools = np.zeros((1, 1, 1), dtype=np.bool_)

    def warps(self, stuck: list[Strand]) -> list[Strand]:
        """Let warps go on that have reached a join whole; return the strand that they are, if any."""
        for join in _inner_first(stuck):
            busy = np.zeros((self.batch.blocks, self.batch.warps, 1), dtype=np.bool_)
            for strand in stuck:
                if join in strand.joins():
                    busy |= strand.mask.active_warps
            if (going := join.lanes & self.batch.live.lanes & ~busy).any():
                return [self._leave(join, going)]
        return []

    def lanes(
        self, stuck: list[Strand], wanted: Bools | None = None, within: list[Strand] | None = None
    ) -> list[Strand]:
        """Let lanes go on without others of their warp; return the strand that they are, if any.

        Args:
            stuck: All strands that cannot run.
            wanted: The lanes that may go on; by default all.
            within: Strands whose joins they may leave; by default all stuck ones.
        """
        for join in _inner_first(stuck if within is None else within):
            busy = np.zeros((self.batch.blocks, self.batch.warps, WARP), dtype=np.bool_)
            for strand in stuck:
                if join in strand.joins():
                    busy |= strand.mask.lanes
            going = join.lanes & self.batch.live.lanes & ~busy
            going = going if wanted is None else going & wanted
            if going.any():
                self.loose = self.loose | going.any(axis=2, keepdims=True)
                return [self._leave(join, going)]
        return []

    def _leave(self, join: Join, going: Bools) -> Strand:
        join.lanes = join.lanes & ~going
        if join.above is not None:
            join.above.pending += 1
        return Strand(join.block, self.batch.live.of(going), join.rejoin, join.above)


def _inner_first(strands: list[Strand]) -> list[Join]:
    """Return the joins that strands will reach: who is free at one has not reached those around it."""
    joins = {id(join): join for strand in strands for join in strand.joins()}
    return sorted(joins.values(), key=lambda join: len(joins_from(join)), reverse=True)
