# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode bulk copies and tensor copies to shared memory to steps."""

from collections.abc import Callable, Iterator

import numpy as np

from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_flights import BulkPlaces
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES
from gpuprof.executor.memory.tensor_map_encoding import TensorDescriptor
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.bulk_places import (
    DIMENSIONS,
    HINTS,
    S32,
    BoxOperands,
    BulkAddress,
    box_places,
    by_number,
    bytes_inside,
    check_multiple,
    gathered,
    in_shared,
    of_chunks,
    tell_of_reads,
)
from gpuprof.executor.steps.bulk_store_steps import bulk_store
from gpuprof.executor.steps.coding import Coder, Step, group_step, where_active
from gpuprof.executor.steps.mbarrier_steps import BarrierOperand

#: What the opcodes that are modelled may say.
_INWARD = {"cp", "async", "bulk", "shared", "cluster", "cta", "global", "mbarrier", "complete_tx", "bytes"}
_INWARD |= {"tensor", "tile", "multicast", *DIMENSIONS, *HINTS}
_BETWEEN = {"cp", "async", "bulk", "shared", "cluster", "cta", "mbarrier", "complete_tx", "bytes"}


_U16 = ARITHMETIC["u16"]


class Multicast:
    """The blocks that a copy goes to, by the bits of its last operand."""

    def __init__(self, read: Callable[[Batch], Lanes] | None, line: int) -> None:
        self._read = read
        self._line = line

    @classmethod
    def of(cls, coder: Coder, item: Instruction) -> "Multicast":
        """Decode the operand, if the instruction has one."""
        several = "multicast" in item.opcode
        return cls(coder.reader(item.operands[-1], _U16, item) if several else None, item.line)

    def __call__(self, batch: Batch, mask: Mask) -> Iterator[tuple[int | None, Mask]]:
        """Yield the rank of each block, and the lanes whose copies go there; None for where these say."""
        if self._read is None:
            yield None, mask
            return
        blocks, count = self._read(batch).astype(np.int64), batch.layout.blocks
        text = f"copies to the blocks of mask {{:#x}}, but its cluster has {count}"
        beyond = (blocks >> count) != 0
        batch.refuse(FaultKind.OUT_OF_BOUNDS, mask, beyond, self._line, text, blocks)
        for rank in range(count):
            lanes = ((blocks >> rank) & 1 == 1) & mask.lanes
            if lanes.any():
                yield rank, mask.of(lanes)

    def each(self, coder: Coder, item: Instruction, copy: Callable[[Batch, Mask, int | None], None]) -> Step:
        """Return the step that copies to each block."""

        def step(batch: Batch, mask: Mask) -> None:
            for rank, part in self(batch, mask):
                copy(batch, part, rank)

        return where_active(coder, item, step)


def bulk_copy(coder: Coder, item: Instruction) -> Step | None:
    """`cp.async.bulk`: copies by the copy engine, their groups, and prefetches, which do nothing here."""
    words = set(item.opcode)
    if words & {"commit_group", "wait_group"}:
        return group_step(coder, item, lambda batch: batch.bulk_stores)
    if "prefetch" in words:
        return None
    coder.phased = True
    coder.shared_granule = min(coder.shared_granule, CHUNK_BYTES)
    spaces = [word for word in item.opcode if word in ("shared", "global")]
    if spaces == ["global", "shared"]:
        coder.uncounted |= {"global_store", "shared_load"}
        return bulk_store(coder, item)
    if spaces == ["shared", "shared"] and words <= _BETWEEN:
        coder.uncounted |= {"shared_load", "shared_store"}
        return _copy_between_blocks(coder, item)
    if spaces != ["shared", "global"] or not words <= _INWARD:
        raise UnsupportedInstruction(item.name, item.line)
    coder.uncounted |= {"global_load", "shared_store"}
    return (_tensor_load if "tensor" in words else _load)(coder, item)


def _load(coder: Coder, item: Instruction) -> Step:
    """From global to shared memory, counted by an mbarrier."""
    target, source = (
        BulkAddress(coder, item, item.operands[0], shared=True),
        BulkAddress(coder, item, item.operands[1]),
    )
    size = coder.reader(item.operands[2], S32, item)
    barrier = BarrierOperand(coder, item, item.operands[3])
    blocks = Multicast.of(coder, item)

    def copy(batch: Batch, mask: Mask, rank: int | None) -> None:
        to, start, length = target.in_block(batch, rank), source(batch), size(batch).astype(np.int64)
        columns = barrier.use(batch, mask, rank)
        check_multiple(batch, item.line, mask, to, CHUNK_BYTES, "to byte {} of shared memory")
        check_multiple(batch, item.line, mask, start, CHUNK_BYTES, "from {:#x}")
        check_multiple(batch, item.line, mask, length, CHUNK_BYTES, "of {} bytes")
        to = in_shared(batch, item.line, mask, to, length, remote=True)
        if batch.events.address_only:
            tell_of_reads(batch, item.line, mask, start, length)
            batch.bulk.bring(columns, mask, length)
            return
        for column, part in by_number(columns, mask):
            pattern = batch.bulk.pattern(to, length, part)
            addresses = of_chunks(pattern, start) + pattern.place * CHUNK_BYTES
            places = BulkPlaces(pattern, addresses, CHUNK_BYTES)
            values = gathered(batch, item.line, places)
            batch.bulk.load(pattern, values, column, item.line, places)

    return blocks.each(coder, item, copy)


def _copy_between_blocks(coder: Coder, item: Instruction) -> Step:
    """From a block's shared memory to another's of its cluster, counted by an mbarrier there."""
    target, source = (BulkAddress(coder, item, operand, shared=True) for operand in item.operands[:2])
    size = coder.reader(item.operands[2], S32, item)
    barrier = BarrierOperand(coder, item, item.operands[3])

    def step(batch: Batch, mask: Mask) -> None:
        to, start, length = target(batch), source(batch), size(batch).astype(np.int64)
        columns = barrier.use(batch, mask)
        check_multiple(batch, item.line, mask, to, CHUNK_BYTES, "to byte {} of shared memory")
        check_multiple(batch, item.line, mask, start, CHUNK_BYTES, "from byte {} of shared memory")
        check_multiple(batch, item.line, mask, length, CHUNK_BYTES, "of {} bytes")
        to = in_shared(batch, item.line, mask, to, length, remote=True)
        start = in_shared(batch, item.line, mask, start, length)
        if batch.events.address_only:
            batch.bulk.bring(columns, mask, length)
            return
        for column, part in by_number(columns, mask):
            pattern, origin = (batch.bulk.pattern(place, length, part) for place in (to, start))
            values = batch.shared.load_chunks(origin)
            values = values.reshape(1 if pattern.leading > 1 else batch.blocks, -1)
            batch.bulk.load_shared(pattern, origin, values, column, item.line)

    return where_active(coder, item, step)


def _tensor_load(coder: Coder, item: Instruction) -> Step:
    """A box of an array to shared memory, counted by an mbarrier; outside the array it is filled up."""
    operands = BoxOperands(coder, item, item.operands[1], item.operands[0])
    barrier = BarrierOperand(coder, item, item.operands[2])
    blocks = Multicast.of(coder, item)

    def copy(batch: Batch, mask: Mask, rank: int | None) -> None:
        columns = barrier.use(batch, mask, rank)
        for tensor, to, length, coordinates, of_map in operands.boxes(batch, mask, rank, remote=True):
            if batch.events.address_only:
                inside = bytes_inside(tensor, coordinates)
                tell_of_reads(batch, item.line, of_map, np.full((1, 1, 1), tensor.address), inside)
                batch.bulk.bring(columns, of_map, length)
                continue
            for column, part in by_number(columns, of_map):
                pattern = batch.bulk.pattern(to, length, part, tensor.swizzle_bytes)
                first = [of_chunks(pattern, coordinate) for coordinate in coordinates]
                places = box_places(pattern, tensor, first)
                values = _box(batch, item.line, tensor, places)
                batch.bulk.load(pattern, values, column, item.line, places)

    return blocks.each(coder, item, copy)


def _box(batch: Batch, line: int, tensor: TensorDescriptor, places: BulkPlaces) -> Lanes:
    """Return the chunks of a box."""
    size, inside = places.size, places.inside
    assert inside is not None
    outside = np.full(size // tensor.item_bytes, tensor.outside, dtype=f"u{tensor.item_bytes}")
    filler = outside.view(moved_dtype(size))[0]
    if not inside.any():
        values: Lanes = np.full(inside.shape, filler, dtype=moved_dtype(size))
    else:
        values = np.where(inside, gathered(batch, line, places), filler)
    return values[..., 0] if size == CHUNK_BYTES else _joined(values)


def _joined(values: Lanes) -> Lanes:
    """Return the elements of each chunk as one value."""
    return np.ascontiguousarray(values).view(moved_dtype(CHUNK_BYTES))[..., 0]
