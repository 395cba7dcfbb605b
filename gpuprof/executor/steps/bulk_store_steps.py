# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode bulk copies from shared to global memory, and their groups, to steps."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import ATOMICS, apply_in_turn, atomic_operation
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks
from gpuprof.executor.memory.bulk_stores import Combination, Targets
from gpuprof.executor.memory.global_flights import BulkPlaces
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.bulk_places import (
    DIMENSIONS,
    HINTS,
    S32,
    Addresses,
    BoxOperands,
    BulkAddress,
    box_places,
    check_multiple,
    in_shared,
    of_chunks,
    outside,
)
from gpuprof.executor.steps.coding import Coder, Step, where_active

#: What the opcodes that are modelled may say besides what they do with the target.
_KNOWN = {"async", "bulk", "global", "shared", "cta", "bulk_group", *HINTS}


_HALVES = ("f16", "bf16")
_INTEGERS = ("u32", "s32", "u64", "s64")
_BITS = ("b32", "b64", *_INTEGERS)
#: The types of elements that each operation takes. Those of tensor maps have signs where bits need none.
_TYPES: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f64", *_HALVES),
    "min": (*_INTEGERS, *_HALVES),
    "max": (*_INTEGERS, *_HALVES),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
}


@cache
def combination(name: str, kind: str) -> Combination | None:
    """Return an operation on elements of a PTX type, or None where the copy engine has no such one."""
    operation = atomic_operation(name, kind) if kind in _TYPES.get(name, ()) else None
    if operation is None:
        return None
    # Unlike an atomic instruction, the engine adds float32 numbers that are subnormal.
    compute = operation.elsewhere if (name, kind) == ("add", "f32") else operation.in_global

    def apply(content: Lanes, place: NDArray[np.intp], given: Lanes) -> None:
        apply_in_turn(content, place, compute, [given])

    return Combination(operation.dtype, apply)


def bulk_store(coder: Coder, item: Instruction) -> Step:
    """From shared to global memory, in the open group of its thread, perhaps combined with what is there."""
    words = set(item.opcode[1:]) - _KNOWN
    reduces = "reduce" in words
    if "tensor" in words:
        words -= {"tensor", "tile", "reduce", *DIMENSIONS}
        operation = next(iter(words & ATOMICS.keys()), "") if reduces else None
        if operation == "" or words - {operation}:
            raise UnsupportedInstruction(item.name, item.line)
        return _tensor_store(coder, item, operation)
    if not reduces and not words:
        return _store(coder, item, None)
    name, kind = item.opcode[-2 - ("noftz" in words)], item.opcode[-1]
    combine = combination(name, kind)
    if combine is None or words - {"reduce", "noftz", name, kind}:
        raise UnsupportedInstruction(item.name, item.line)
    return _store(coder, item, combine)


def _store(coder: Coder, item: Instruction, combine: Combination | None) -> Step:
    """A stretch of bytes."""
    target, source = (
        BulkAddress(coder, item, item.operands[0]),
        BulkAddress(coder, item, item.operands[1], shared=True),
    )
    size = coder.reader(item.operands[2], S32, item)

    def step(batch: Batch, mask: Mask) -> None:
        to, start, length = target(batch), source(batch), size(batch).astype(np.int64)
        check_multiple(batch, item.line, mask, to, CHUNK_BYTES, "to {:#x}")
        check_multiple(batch, item.line, mask, start, CHUNK_BYTES, "from byte {} of shared memory")
        check_multiple(batch, item.line, mask, length, CHUNK_BYTES, "of {} bytes")
        start = in_shared(batch, item.line, mask, start, length)
        pattern = batch.bulk.pattern(start, length, mask)
        addresses = of_chunks(pattern, to) + pattern.place * CHUNK_BYTES
        _send(batch, item.line, pattern, addresses, combine)

    return where_active(coder, item, step)


def _send(
    batch: Batch, line: int, pattern: ChunkPattern, addresses: Addresses, combine: Combination | None
) -> None:
    """Put pieces of shared memory on their way to addresses of shape (blocks or 1, pieces)."""
    places = BulkPlaces(pattern, addresses, pattern.size)
    batch.flights.require_apart(*places.accesses(batch.blocks), line, writes=True)
    targets = _targets(batch, line, pattern, addresses)
    batch.bulk_stores.start(pattern, targets, places, line, combine, address_only=batch.events.address_only)


def _targets(batch: Batch, line: int, pattern: ChunkPattern, addresses: Addresses) -> Targets:
    """Divide the pieces of a store by the buffer that they go to."""
    rows = batch.blocks if pattern.leading == 1 else 1
    addresses = np.broadcast_to(addresses, (rows, addresses.shape[1]))
    left = np.ones(addresses.shape, dtype=np.bool_)
    targets: Targets = []
    for buffer in batch.memory.buffers:
        inside = left & (addresses >= buffer.address)
        inside &= addresses + pattern.size <= buffer.address + buffer.size
        if inside.any():
            if buffer.read_only:
                outside(batch, line, pattern, addresses, inside, "writes", "which is read-only")
            which = np.flatnonzero(inside)
            targets.append((buffer, which, (addresses[inside] - buffer.address) // pattern.size))
            left &= ~inside
    if left.any():
        outside(batch, line, pattern, addresses, left, "writes")
    return targets


def _check_before(batch: Batch, line: int, mask: Mask, coordinates: list[Lanes]) -> None:
    """Report the first lane whose box starts before the array: an H200 traps where such a box is stored."""
    for axis, coordinate in enumerate(coordinates):
        text = f"stores a box that starts at coordinate {{}} along dimension {axis}, counted from the"
        text += " innermost, 0: only loads may start before the array"
        batch.refuse(FaultKind.TRAP, mask, coordinate < 0, line, text, coordinate)


def _tensor_store(coder: Coder, item: Instruction, operation: str | None) -> Step:
    """A box of shared memory to an array; what would lie outside the array goes nowhere."""
    operands = BoxOperands(coder, item, item.operands[0], item.operands[1])

    def step(batch: Batch, mask: Mask) -> None:
        for tensor, start, length, coordinates, part in operands.boxes(batch, mask):
            combine = None
            if operation is not None:
                combine = combination(operation, tensor.element)
                if combine is None:
                    text = f"reduces by {operation}, which the copy engine cannot do with {tensor.element}"
                    batch.fault(FaultKind.TRAP, text, item.line, part.first())
            pattern = batch.bulk.pattern(start, length, part, tensor.swizzle_bytes)
            _check_before(batch, item.line, part, coordinates)
            first = [of_chunks(pattern, value) for value in coordinates]
            places = box_places(pattern, tensor, first, stores=True)
            assert places.inside is not None
            if places.inside.any():
                pieces = batch.bulk.pieces(pattern, uniform_blocks(places.inside))
                # Those inside the array: shape (blocks or 1, pieces).
                several = pieces.leading > 1
                inside = places.start[places.inside][None] if several else places.start[:, places.inside[0]]
                _send(batch, item.line, pieces, inside, combine)

    return where_active(coder, item, step)
