# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode fences to steps: those between threads, and those between threads and the copy engine."""

from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.cluster_steps import release_by_fence
from gpuprof.executor.steps.coding import Coder, Step

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
        return _between_proxies(coder, item) if near else None
    coder.fences = True
    near = "cta" in item.opcode

    def step(batch: Batch) -> None:
        mask = masked(batch)
        batch.order.fence(mask, near=near)
        release_by_fence(batch, mask, line, near=near)

    return step


def _between_proxies(coder: Coder, item: Instruction) -> Step:
    masked = coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        if batch.phased and not mask.empty:
            batch.bulk.fence(mask, item.line)

    return step
