# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode what orders threads: arrivals at the barrier of a cluster, and fences, also for the copy engine."""

from functools import partial

from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.accesses import CLUSTER_PHASES, FENCE_PHASE, NEAR_FENCE_PHASE, Access
from gpuprof.executor.memory.mbarriers import by_parity
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, where_active


def arrive(coder: Coder, item: Instruction) -> Step:
    """`barrier.cluster.arrive`: the threads have come to the barrier of their cluster, and go on."""
    if "arrive" not in item.opcode:
        raise UnsupportedInstruction(item.name, item.line)
    line = item.line
    relaxed, aligned = "relaxed" in item.opcode, "aligned" in item.opcode

    def step(batch: Batch, mask: Mask) -> None:
        barrier = batch.cluster_barrier
        if aligned:
            missing = mask.active_warps & ~mask.lanes
            text = "is not at the barrier of its cluster where others of its warp arrive: it is in divergent"
            text += " code"
            batch.refuse(FaultKind.BARRIER, batch.live, missing, line, text)
        text = "arrives at the barrier of its cluster again, before it has waited there"
        batch.refuse(FaultKind.BARRIER, mask, barrier.pending, line, text)
        lanes = batch.spread(mask.lanes)
        for parity, part in by_parity(lanes, barrier.phase[:, None, None]):
            access = Access.RELAXED if relaxed else Access.RELEASE
            batch.events.synchronise(access, part, CLUSTER_PHASES[parity], line)
        barrier.arrive(lanes)
        end_phases(batch, line)

    return where_active(coder, item, step)


def end_phases(batch: Batch, line: int) -> None:
    """End the phases of cluster barriers at which all threads have arrived, or ended."""
    live = batch.spread(batch.live.lanes)
    barrier = batch.cluster_barrier
    before = barrier.phase
    ended = ~live & barrier.complete(live)[:, None, None]
    for parity, part in by_parity(ended, before[:, None, None]):
        batch.events.synchronise(Access.RELEASE, part, CLUSTER_PHASES[parity], line)


def release_by_fence(batch: Batch, mask: Mask, line: int, *, near: bool = False) -> None:
    """Threads execute a fence: relaxed arrivals at the barrier of their cluster release what was before it.

    So do atomic operations in shared memory, also behind a fence that is `near`, for the block alone. A fence
    for mbarriers that were set up releases too, though it promises less: that these alone are seen.
    """
    if (batch.means.phased or batch.means.partial) and not mask.empty:
        lanes = batch.spread(mask.lanes)
        phase = NEAR_FENCE_PHASE if near else FENCE_PHASE
        batch.events.synchronise(Access.FENCED, lanes, phase, line)


#: Proxies that nothing here tells from that of ordinary accesses.
_SAME = {"alias", "tensormap"}


def fence(coder: Coder, item: Instruction) -> Step | None:
    """`membar` and `fence`: order what their thread does before for whoever observes what it does after."""
    words = set(item.opcode)
    masked, line = coder.mask(item), item.line
    if "mbarrier_init" in words:
        return lambda batch: release_by_fence(batch, masked(batch), line)
    if "proxy" in words:
        near = "shared" in words or not words & {"global", *_SAME}
        return where_active(coder, item, partial(_between_proxies, line)) if near else None
    coder.fences = True
    near = "cta" in item.opcode

    def step(batch: Batch) -> None:
        mask = masked(batch)
        batch.events.hear("fence", mask, near=near)
        release_by_fence(batch, mask, line, near=near)

    return step


def _between_proxies(line: int, batch: Batch, mask: Mask) -> None:
    if batch.means.phased:
        batch.bulk.fence(mask, line)
