# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `st.async` and `red.async`: what threads send to blocks of their cluster, counted by mbarriers."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import ATOMICS, apply_in_turn, atomic_operation
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_accesses import MemoryRequest
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.bulk_places import by_number
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.distributed_shared import names_cluster
from gpuprof.executor.steps.mbarrier_steps import BarrierOperand
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand, parts_of
from gpuprof.executor.steps.spaces import SharedSpace

#: What a reduction may do: an `atom` may do more.
_REDUCTIONS = ATOMICS.keys() - {"exch", "cas"}


def send_async(coder: Coder, item: Instruction) -> Step:
    """`st.async`: one element or a vector of each lane; `red.async`: one is combined with what is there."""
    reduces, values = item.opcode[0] == "red", parts_of(item.operands[1])
    name = next((part for part in item.opcode[1:] if part in _REDUCTIONS), "")
    operation = atomic_operation(name, item.opcode[-1]) if reduces else None
    unknown = operation is None or len(values) > 1 if reduces else False
    if unknown or not names_cluster(item) or "complete_tx" not in item.opcode:
        raise UnsupportedInstruction(item.name, item.line)
    dtype, line = operation.dtype if operation else ARITHMETIC[item.opcode[-1]], item.line
    size = len(values) * dtype.itemsize
    memory, moved = memory_operand(item.operands[0], item), moved_dtype(size)
    coder.shared_granule = min(coder.shared_granule, size)
    start, site = memory.offset - coder.shared_start, coder.site("asynchronous store", item)
    space = SharedSpace(MemoryRequest(site, line, size, start, remote=True))
    barrier, address = BarrierOperand(coder, item, item.operands[2]), address_reader(coder, item, memory)
    reads = [coder.reader(value, dtype, item) for value in values]

    def step(batch: Batch, mask: Mask) -> None:
        packed = np.stack(np.broadcast_arrays(*(read(batch) for read in reads)), axis=-1).view(moved)[..., 0]
        given = np.broadcast_to(packed, (batch.blocks, batch.warps, WARP))

        def apply(content: Lanes, index: NDArray[np.intp], lanes: Bools, is_global: bool) -> Lanes:
            assert operation is not None
            operands = [given.view(dtype)[lanes]]
            return apply_in_turn(content.view(dtype), index, operation.elsewhere, operands)

        def land(pattern: SharedPattern) -> None:
            if reduces:
                batch.shared.update(pattern, apply)
            else:
                batch.shared.store(pattern, packed)

        for column, part in by_number(barrier.use(batch, mask), mask):
            pattern = space.examined(batch, address(batch), part, load=False)
            if batch.layout.several:
                home, stride = batch.mbarriers.offsets[column] // batch.layout.stride, batch.layout.stride
                text = f"stores to another block than that of its mbarrier, which is rank {home}"
                away = np.asarray(pattern.address // stride != home)
                batch.refuse(FaultKind.MBARRIER, pattern.mask, away, line, text)
            if not reduces and pattern.collides:  # which comes last is open
                text = "stores asynchronously, and so do other threads of its block to the same place at once"
                batch.fault(FaultKind.SHARED_RACE, text, line, pattern.mask.first())
            batch.bulk.store_async(pattern, partial(land, pattern), column, line, reduces=reduces)

    return where_active(coder, item, step)
