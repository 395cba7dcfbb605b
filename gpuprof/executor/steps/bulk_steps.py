# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode bulk copies and tensor copies to steps."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.copy_engine import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.bulk_copies import Targets
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype
from gpuprof.executor.memory.mbarriers import Columns
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern
from gpuprof.executor.memory.tensor_map_encoding import TensorDescriptor, decode_tensor_map
from gpuprof.executor.program.ptx import Imm, Instruction, Operand, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.mbarrier_steps import BarrierOperand
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand

_S32 = ARITHMETIC["s32"]
#: What the opcodes that are modelled may say, after `cp.async.bulk`. Hints for the cache change nothing here.
_HINTS = {"L2", "cache_hint"}
_OUTWARD = {"global", "shared", "cta", "bulk_group", *_HINTS}
_DIMENSIONS = {f"{count}d": count for count in range(1, 6)}
_INWARD = {"shared", "cluster", "cta", "global", "mbarrier", "complete_tx", "bytes", *_HINTS}
_INWARD |= {"tensor", "tile", *_DIMENSIONS}
#: What the address in shared memory of a tensor copy must be a multiple of.
_TENSOR_ALIGNMENT = 128

#: An address in global memory for each chunk: shape (blocks or 1, chunks), then perhaps elements of a chunk.
Addresses = NDArray[np.int64]


def bulk_copy(coder: Coder, item: Instruction) -> Step | None:
    """`cp.async.bulk`: copies by the copy engine, their groups, and prefetches, which do nothing here."""
    words = set(item.opcode[3:])
    if "commit_group" in words:
        masked = coder.mask(item)
        return lambda batch: batch.bulk.commit(masked(batch))
    if "wait_group" in words:
        return _wait_group(coder, item)
    if "prefetch" in words:
        return None
    coder.phased = True
    coder.shared_granule = min(coder.shared_granule, CHUNK_BYTES)
    spaces = [word for word in item.opcode if word in ("shared", "global")]
    if words <= _OUTWARD and spaces == ["global", "shared"]:
        coder.uncounted |= {"global_store", "shared_load"}
        return _store(coder, item)
    if spaces != ["shared", "global"] or not words <= _INWARD:
        raise UnsupportedInstruction(item.name, item.line)
    coder.uncounted |= {"global_load", "shared_store"}
    return (_tensor_load if "tensor" in words else _load)(coder, item)


def _wait_group(coder: Coder, item: Instruction) -> Step:
    count, masked = item.operands[0], coder.mask(item)
    if not isinstance(count, Imm):
        raise UnsupportedInstruction(item.name, item.line)
    newest = count.bits
    return lambda batch: batch.bulk.wait(masked(batch), newest)


class _Place:
    """An address operand of a bulk copy: in global memory, or counted from the start of shared memory."""

    def __init__(self, coder: Coder, item: Instruction, operand: Operand, *, shared: bool = False) -> None:
        memory = memory_operand(operand, item)
        self._offset = memory.offset - (coder.shared_start if shared else 0)
        self._read = address_reader(coder, item, memory)

    def __call__(self, batch: Batch) -> Lanes:
        address = self._read(batch).astype(np.int64)
        return address + self._offset if self._offset else address


def _load(coder: Coder, item: Instruction) -> Step:
    """From global to shared memory, counted by an mbarrier."""
    target, source = _Place(coder, item, item.operands[0], shared=True), _Place(coder, item, item.operands[1])
    size = coder.reader(item.operands[2], _S32, item)
    barrier, masked = BarrierOperand(coder, item, item.operands[3]), coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        if mask.empty:
            return
        to, start, length = target(batch), source(batch), size(batch).astype(np.int64)
        columns = barrier.barriers(batch, mask)
        _check_multiple(batch, item.line, mask, to, CHUNK_BYTES, "to byte {} of shared memory")
        _check_multiple(batch, item.line, mask, start, CHUNK_BYTES, "from {:#x}")
        _check_multiple(batch, item.line, mask, length, CHUNK_BYTES, "of {} bytes")
        _check_shared(batch, item.line, mask, to, length)
        if batch.hollow:
            batch.bulk.bring(columns, mask, length)
            return
        for column, part in _by_number(columns, mask):
            pattern = batch.bulk.pattern(to, length, part)
            addresses = _of_chunks(pattern, start) + pattern.place * CHUNK_BYTES
            batch.bulk.load(pattern, _gathered(batch, item.line, pattern, addresses), column, item.line)

    return step


def _store(coder: Coder, item: Instruction) -> Step:
    """From shared to global memory, in the open group of its thread."""
    target, source = _Place(coder, item, item.operands[0]), _Place(coder, item, item.operands[1], shared=True)
    size, masked = coder.reader(item.operands[2], _S32, item), coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        if mask.empty:
            return
        to, start, length = target(batch), source(batch), size(batch).astype(np.int64)
        _check_multiple(batch, item.line, mask, to, CHUNK_BYTES, "to {:#x}")
        _check_multiple(batch, item.line, mask, start, CHUNK_BYTES, "from byte {} of shared memory")
        _check_multiple(batch, item.line, mask, length, CHUNK_BYTES, "of {} bytes")
        _check_shared(batch, item.line, mask, start, length)
        pattern = batch.bulk.pattern(start, length, mask)
        addresses = _of_chunks(pattern, to) + pattern.place * CHUNK_BYTES
        targets = _targets(batch, item.line, pattern, addresses)
        for buffer, which, _ in targets:
            block = pattern.block[which] if pattern.leading > 1 else which // len(pattern.start)
            batch.count_stored(buffer, np.bincount(block, minlength=batch.blocks) * CHUNK_BYTES)
        batch.bulk.store(pattern, targets, item.line, hollow=batch.hollow)

    return step


def _tensor_load(coder: Coder, item: Instruction) -> Step:
    """A box of an array to shared memory, counted by an mbarrier; what lies outside the array is zero."""
    dimensions = next((_DIMENSIONS[word] for word in item.opcode if word in _DIMENSIONS), 0)
    place = item.operands[1]
    if not isinstance(place, Vec) or not isinstance(place.items[1], Vec):
        raise UnsupportedInstruction(item.name, item.line)
    target = _Place(coder, item, item.operands[0], shared=True)
    map_address = _Place(coder, item, place.items[0])
    reads = [coder.reader(operand, _S32, item) for operand in place.items[1].items]
    barrier, masked = BarrierOperand(coder, item, item.operands[2]), coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        if mask.empty:
            return
        to, where = target(batch), map_address(batch)
        coordinates = [read(batch).astype(np.int64) for read in reads]
        columns = barrier.barriers(batch, mask)
        _check_multiple(batch, item.line, mask, to, _TENSOR_ALIGNMENT, "to byte {} of shared memory")
        for address, of_map in _by_number(where, mask):
            tensor = _tensor_map(batch, item.line, of_map, address)
            if tensor.dimensions != dimensions or len(coordinates) != dimensions:
                text = f"copies with {len(coordinates)} coordinates from an array of {tensor.dimensions}"
                text += " dimensions"
                batch.fault(FaultKind.OUT_OF_BOUNDS, text, item.line, of_map.first(), address)
            length = np.full((1, 1, 1), tensor.box_bytes, dtype=np.int64)
            _check_shared(batch, item.line, of_map, to, length)
            if batch.hollow:
                batch.bulk.bring(columns, of_map, length)
                continue
            for column, part in _by_number(columns, of_map):
                pattern = batch.bulk.pattern(to, length, part, tensor.swizzle_bytes)
                first = [_of_chunks(pattern, coordinate) for coordinate in coordinates]
                values = _box(batch, item.line, pattern, tensor, first)
                batch.bulk.load(pattern, values, column, item.line)

    return step


def _tensor_map(batch: Batch, line: int, mask: Mask, address: int) -> TensorDescriptor:
    """Read a map from memory."""
    problem = f"is not a multiple of {TENSOR_MAP_ALIGNMENT}"
    if address % TENSOR_MAP_ALIGNMENT == 0:
        buffer = batch.memory.holding(address, address + TENSOR_MAP_BYTES)
        problem = "holds none"
        if buffer is not None:
            first = address - buffer.address
            try:
                return decode_tensor_map(buffer.view(1)[first : first + TENSOR_MAP_BYTES].tobytes())
            except ValueError:
                pass
    text = f"takes a tensor map from {address:#x}, which {problem}"
    batch.fault(FaultKind.OUT_OF_BOUNDS, text, line, mask.first(), address)


def _box(
    batch: Batch, line: int, pattern: ChunkPattern, tensor: TensorDescriptor, first: list[Addresses]
) -> Lanes:
    """Return the chunks of a box.

    Args:
        batch: Reads its memory.
        line: Source line.
        pattern: The chunks.
        tensor: What the box is cut from.
        first: Each coordinate of the box, for every chunk: shape (blocks or 1, chunks).
    """
    item, extents = tensor.item_bytes, tensor.extents
    row_bytes = tensor.box[0] * item
    offset = pattern.place * CHUNK_BYTES
    rest = offset // row_bytes
    address: Addresses = np.full((1, 1), tensor.address, dtype=np.int64)
    inside: Bools = np.ones((1, 1), dtype=np.bool_)
    for axis in range(1, tensor.dimensions):
        index = first[axis] + rest % tensor.box[axis]
        rest = rest // tensor.box[axis]
        address = address + index * tensor.strides[axis - 1]
        inside = inside & (index >= 0) & (index < extents[axis])
    x = first[0] + offset % row_bytes // item
    each = CHUNK_BYTES // item
    straddles = ((x < 0) & (x + each > 0)) | ((x < extents[0]) & (x + each > extents[0]))
    if (x * item % CHUNK_BYTES).any() or straddles.any():
        each = 1
        x = x[..., None] + np.arange(CHUNK_BYTES // item)
        address, inside = address[..., None], inside[..., None]
    address = address + x * item
    inside = np.broadcast_to(inside & (x >= 0) & (x + each <= extents[0]), address.shape)
    if not inside.any():
        shape = (*address.shape[:1], len(pattern.start))
        return np.zeros(shape, dtype=moved_dtype(CHUNK_BYTES))
    size = each * item
    values = _gathered(batch, line, pattern, address, size, inside)
    values = np.where(inside, values, np.zeros((), dtype=values.dtype))
    return values if each > 1 or size == CHUNK_BYTES else _joined(values)


def _joined(values: Lanes) -> Lanes:
    """Return the elements of each chunk as one value."""
    return np.ascontiguousarray(values).view(moved_dtype(CHUNK_BYTES))[..., 0]


def _gathered(
    batch: Batch,
    line: int,
    pattern: ChunkPattern,
    addresses: Addresses,
    size: int = CHUNK_BYTES,
    wanted: Bools | None = None,
) -> Lanes:
    """Return what global memory holds at the addresses that are wanted, anything at the others."""
    if not addresses.size:
        return np.zeros(addresses.shape, dtype=moved_dtype(size))
    used = addresses if wanted is None else addresses[wanted]
    buffer = batch.memory.holding(int(used.min()), int(used.max()) + size)
    shift = size.bit_length() - 1
    if buffer is not None:
        _judge(batch, line, pattern, buffer, addresses, size, wanted)
        index = (addresses - buffer.address) >> shift
        return buffer.view(size).take(index if wanted is None else np.where(wanted, index, 0))
    left = np.ones(addresses.shape, dtype=np.bool_) if wanted is None else wanted.copy()
    values: Lanes = np.zeros(addresses.shape, dtype=moved_dtype(size))
    for buffer in batch.memory.buffers:
        inside = left & (addresses >= buffer.address) & (addresses + size <= buffer.address + buffer.size)
        _judge(batch, line, pattern, buffer, addresses, size, inside)
        values[inside] = buffer.view(size)[(addresses[inside] - buffer.address) >> shift]
        left &= ~inside
    if left.any():
        _outside(batch, line, pattern, addresses, left, "reads")
    return values


def _judge(
    batch: Batch,
    line: int,
    pattern: ChunkPattern,
    buffer: Buffer,
    addresses: Addresses,
    size: int,
    wanted: Bools | None,
) -> None:
    """Look for races of the threads that asked for a copy with those that wrote what it reads."""
    shadow = batch.shadows.get(buffer.address)
    if shadow is None:
        return
    who = batch.bulk.threads(pattern) + batch.order.first * batch.order.block_threads
    who = who.reshape(*who.shape, *(1,) * (addresses.ndim - who.ndim))
    shape = np.broadcast_shapes(who.shape, addresses.shape)
    who, place = np.broadcast_to(who, shape), np.broadcast_to((addresses - buffer.address) // size, shape)
    chosen = np.ones(shape, dtype=np.bool_) if wanted is None else np.broadcast_to(wanted, shape)
    shadow.read_at(batch.order, place[chosen], who[chosen], size, line)


def _targets(batch: Batch, line: int, pattern: ChunkPattern, addresses: Addresses) -> Targets:
    """Divide the chunks of a store by the buffer that they go to."""
    rows = batch.blocks if pattern.leading == 1 else 1
    addresses = np.broadcast_to(addresses, (rows, addresses.shape[1]))
    left = np.ones(addresses.shape, dtype=np.bool_)
    targets: Targets = []
    for buffer in batch.memory.buffers:
        inside = left & (addresses >= buffer.address)
        inside &= addresses + CHUNK_BYTES <= buffer.address + buffer.size
        if inside.any():
            if buffer.read_only:
                _outside(batch, line, pattern, addresses, inside, "writes", "which is read-only")
            which = np.flatnonzero(inside)
            targets.append((buffer, which, (addresses[inside] - buffer.address) // CHUNK_BYTES))
            left &= ~inside
    if left.any():
        _outside(batch, line, pattern, addresses, left, "writes")
    return targets


def _outside(
    batch: Batch,
    line: int,
    pattern: ChunkPattern,
    addresses: Addresses,
    wrong: Bools,
    verb: str,
    why: str = "where nothing is allocated",
) -> NoReturn:
    row, chunk, *_ = (int(i) for i in np.argwhere(wrong)[0])
    start = int(addresses[tuple(np.argwhere(wrong)[0])])
    block = int(pattern.block[chunk]) if pattern.leading > 1 else row
    buffer = batch.memory.nearest(start)
    if buffer is not None and not buffer.read_only:
        why = f"at byte {start - buffer.address} of {buffer.name}, which has {buffer.size} bytes"
    text = f"{verb} global memory by a bulk copy at {start:#x}, {why}"
    position = (block, int(pattern.warp[chunk]), int(pattern.lane[chunk]))
    batch.fault(FaultKind.OUT_OF_BOUNDS, text, line, position, start)


def _of_chunks(pattern: ChunkPattern, value: Lanes) -> NDArray[np.int64]:
    """Return the value of each chunk's lane: shape (blocks or 1, chunks)."""
    leading = max(len(value), pattern.leading)
    spread = np.broadcast_to(value, (leading, pattern.mask.warps, 32))
    if pattern.leading == 1:
        return np.asarray(spread[:, pattern.warp, pattern.lane])
    return np.asarray(spread[pattern.block, pattern.warp, pattern.lane])[None]


def _by_number(numbers: NDArray[Any] | Columns, mask: Mask) -> list[tuple[int, Mask]]:
    """Divide the lanes in `mask` by what they hold: usually all hold the same."""
    if numbers.size == 1:
        return [(int(numbers.flat[0]), mask)]
    shape = np.broadcast_shapes(numbers.shape, mask.lanes.shape)
    spread, lanes = np.broadcast_to(numbers, shape), np.broadcast_to(mask.lanes, shape)
    different = np.unique(spread[lanes]).tolist()
    if len(different) == 1:
        return [(different[0], mask)]
    return [(number, mask.of(lanes & (spread == number))) for number in different]


def _check_multiple(batch: Batch, line: int, mask: Mask, value: Lanes, unit: int, what: str) -> None:
    wrong = ((value & (unit - 1)) != 0) & mask.lanes
    if wrong.any():
        position = first_true(wrong)
        number = int(np.broadcast_to(value, wrong.shape)[position])
        text = f"starts a bulk copy {what.format(number)}, which is not a multiple of {unit}"
        batch.fault(FaultKind.MISALIGNED, text, line, position, number)


def _check_shared(batch: Batch, line: int, mask: Mask, start: Lanes, length: Lanes) -> None:
    limit = batch.shared.size
    wrong = ((start < 0) | (length < 0) | (start + length > limit)) & mask.lanes
    if wrong.any():
        position = first_true(wrong)
        first, count = (int(np.broadcast_to(value, wrong.shape)[position]) for value in (start, length))
        text = f"copies {count} bytes at byte {first} of shared memory, which has {limit} bytes"
        batch.fault(FaultKind.OUT_OF_BOUNDS, text, line, position, first)
