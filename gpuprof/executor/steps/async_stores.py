# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `st.async` and `red.async`: what threads send to blocks of their cluster, counted by mbarriers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import ATOMICS, AtomicOperation, apply_in_turn, atomic_operation
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.program.ptx import Instruction, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.bulk_places import by_number
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.distributed_shared import names_cluster
from gpuprof.executor.steps.mbarrier_steps import BarrierOperand
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand
from gpuprof.executor.steps.spaces import MemoryRequest, SharedSpace

#: What a reduction may do: an `atom` may do more.
_REDUCTIONS = ATOMICS.keys() - {"exch", "cas"}


@dataclass
class _Target:
    """Where lanes store to, and the mbarrier there that counts their bytes."""

    space: SharedSpace
    address: Callable[[Batch], Lanes]
    barrier: BarrierOperand

    @classmethod
    def of(cls, coder: Coder, item: Instruction, size: int) -> "_Target":
        """Decode the operands of an instruction that stores `size` bytes for each lane."""
        if not names_cluster(item) or "complete_tx" not in item.opcode:
            raise UnsupportedInstruction(item.name, item.line)
        memory = memory_operand(item.operands[0], item)
        coder.shared_granule = min(coder.shared_granule, size)
        start = memory.offset - coder.shared_start
        site = coder.site("asynchronous store", item)
        space = SharedSpace(MemoryRequest(site, item.line, size, start, remote=True))
        barrier = BarrierOperand(coder, item, item.operands[2])
        return cls(space, address_reader(coder, item, memory), barrier)

    def parts(self, batch: Batch, mask: Mask, line: int) -> list[tuple[int, SharedPattern]]:
        """Divide the lanes by the mbarrier that they name, with where they store to."""
        found = []
        for column, part in by_number(self.barrier.use(batch, mask), mask):
            pattern = self.space.examined(batch, self.address(batch), part, load=False)
            if batch.layout.several:
                self._require_home(batch, pattern, batch.mbarriers.offsets[column], line)
            found.append((column, pattern))
        return found

    @staticmethod
    def _require_home(batch: Batch, pattern: SharedPattern, barrier: int, line: int) -> None:
        """The mbarrier must lie in the same block's memory as what it counts."""
        stride = batch.layout.stride
        text = f"stores to another block than that of its mbarrier, which is rank {barrier // stride}"
        away = np.asarray(pattern.address // stride != barrier // stride)
        batch.refuse(FaultKind.MBARRIER, pattern.mask, away, line, text)


def store_async(coder: Coder, item: Instruction) -> Step:
    """`st.async`: one element or a vector per lane."""
    values = item.operands[1].items if isinstance(item.operands[1], Vec) else (item.operands[1],)
    dtype = ARITHMETIC[item.opcode[-1]]
    size = len(values) * dtype.itemsize
    target = _Target.of(coder, item, size)
    reads = [coder.reader(value, dtype, item) for value in values]
    line, moved = item.line, moved_dtype(size)

    def step(batch: Batch, mask: Mask) -> None:
        given = np.broadcast_arrays(*(read(batch) for read in reads))
        packed = np.stack(given, axis=-1).view(moved)[..., 0]
        for column, pattern in target.parts(batch, mask, line):
            _require_apart(batch, pattern, line)
            batch.bulk.store_async(pattern, _storing(batch, pattern, packed), column, line, reduces=False)

    return where_active(coder, item, step)


def _storing(batch: Batch, pattern: SharedPattern, values: Lanes) -> Callable[[], None]:
    return lambda: batch.shared.store(pattern, values)


def _require_apart(batch: Batch, pattern: SharedPattern, line: int) -> None:
    """Two lanes may not store to one place: which of them comes last is open."""
    if pattern.collides:
        text = "stores asynchronously, and so do other threads of its block to the same place at once"
        batch.fault(FaultKind.SHARED_RACE, text, line, pattern.mask.first())


def reduce_async(coder: Coder, item: Instruction) -> Step:
    """`red.async`: one element of each lane is combined with what is there."""
    kind = item.opcode[-1]
    name = next((part for part in item.opcode[1:] if part in _REDUCTIONS), "")
    operation = atomic_operation(name, kind)
    if operation is None:
        raise UnsupportedInstruction(item.name, item.line)
    target = _Target.of(coder, item, operation.dtype.itemsize)
    read, line = coder.reader(item.operands[1], operation.dtype, item), item.line

    def step(batch: Batch, mask: Mask) -> None:
        values = np.broadcast_to(read(batch), (batch.blocks, batch.warps, 32))
        for column, pattern in target.parts(batch, mask, line):
            land = _reducing(batch, pattern, operation, values)
            batch.bulk.store_async(pattern, land, column, line, reduces=True)

    return where_active(coder, item, step)


def _reducing(
    batch: Batch, pattern: SharedPattern, operation: AtomicOperation, values: Lanes
) -> Callable[[], None]:
    def apply(content: Lanes, index: NDArray[np.intp], lanes: Bools, is_global: bool) -> Lanes:
        view = content.view(operation.dtype)
        return apply_in_turn(view, index, operation.elsewhere, [values[lanes]])

    def land() -> None:
        batch.shared.update(pattern, apply)

    return land
