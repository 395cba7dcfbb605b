# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tiles of data that some warps of a block bring, or have copied, and others wait for at mbarriers."""

from collections.abc import Sequence

from msgspec import Struct

from gpuprof.sm_model.path import hottest
from gpuprof.sm_model.played_launch import NotModelled, PlayedLaunch
from gpuprof.sm_model.step import Step, StepKind
from gpuprof.sm_model.traffic import SECTOR_BYTES

WORKING = "Some of its warps work for others in a way that is not modelled."
#: Of shared memory, that a pass stores.
_PASS_BYTES = 128
#: Who waits so often for each tile waits for something else, too.
_TWICE = 2


class BroughtTiles(Struct, frozen=True):
    """Who brings tiles, and how many a block has room for.

    Args:
        brings: Of each path of its warps whether they do; None of those that neither bring nor wait.
        ahead: How many tiles shared memory has room for.
        copies: Bulk copies of each; 0 of what warps load by themselves, who arrive at an mbarrier with each.
    """

    brings: tuple[bool | None, ...]
    ahead: int = 1
    copies: float = 0.0


def tiles_of(
    launch: PlayedLaunch,
    paths: Sequence[Sequence[int]],
    steps: Sequence[Sequence[Step]],
    times: Sequence[float],
) -> BroughtTiles | None:
    """Return what warps of a block wait for at mbarriers; None where nobody brings that.

    Args:
        launch: That they are of.
        paths: Of these warps.
        steps: Of the blocks of machine code.
        times: How often a warp executes each of these, on average.

    Raises:
        NotModelled: It does not tell who waits for what.
    """
    bulk = [
        (count * launch.warps, step.asked.sectors)
        for block, count in zip(steps, times, strict=True)
        for step in block
        if step.kind == StepKind.BULK
    ]
    loading = (StepKind.BULK,) if bulk else (StepKind.LOAD, StepKind.COPY)
    gone = [[step for number in path for step in steps[number]] for path in paths]
    loads = [sum(1 + step.asked.sectors for step in path if step.kind in loading) for path in gone]
    waits = [any(step.kind == StepKind.PHASE for step in path) for path in gone]
    busy = hottest(launch.code.blocks, times)
    brings = tuple(  # who does most of the work copies for himself, too
        not (bulk and busy in path) if load > max(loads) / 2 else False if wait else None
        for path, load, wait in zip(paths, loads, waits, strict=True)
    )
    warps = {side: launch.warps * brings.count(side) / len(brings) for side in (True, False)}

    def each(kind: StepKind, side: bool) -> float:
        """How often each warp of a side executes steps of a kind."""
        there = {number for path, one in zip(paths, brings, strict=True) if one is side for number in path}
        found = sum(times[number] * (step.kind == kind) for number in there for step in steps[number])
        return found * launch.warps / max(1.0, warps[side])

    awaited, given = each(StepKind.PHASE, False), each(StepKind.ARRIVAL, True)
    if bulk:
        if warps[True] and not awaited:
            raise NotModelled(WORKING)
        awaited = max(1.0, awaited)
        copies = sum(count for count, _ in bulk) / awaited
        tile = SECTOR_BYTES * sum(count * sectors for count, sectors in bulk) / awaited
    elif not (warps[True] and warps[False] and all(waits) and given):
        return None
    elif awaited >= _TWICE * given:
        raise NotModelled(WORKING)
    else:
        copies = 0.0
        bringing = gone[brings.index(True)]
        kept = sum(step.asked.passes for step in bringing if step.kind in (StepKind.COPY, StepKind.SHARED))
        tile = _PASS_BYTES * kept * warps[True] / sum(step.kind == StepKind.PHASE for step in bringing)
    return BroughtTiles(brings, max(1, int(launch.shared_bytes / max(1.0, tile))), copies)
