# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the decoders of all bulk copies share: operands, what is checked, and global memory by chunks."""

from collections.abc import Iterator
from math import gcd
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.copy_engine import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_flights import BulkPlaces
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern
from gpuprof.executor.memory.tensor_map_encoding import TensorDescriptor, decode_tensor_map
from gpuprof.executor.program.ptx import Instruction, Operand, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder
from gpuprof.executor.steps.distributed_shared import ClusterAccess, in_block
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand

S32 = ARITHMETIC["s32"]
#: How opcodes say how many coordinates a tensor copy has.
DIMENSIONS = {f"{count}d": count for count in range(1, 6)}
#: Hints for the cache, which change nothing here.
HINTS = {"L2", "cache_hint"}
#: What the address in shared memory of a tensor copy must be a multiple of.
_TENSOR_ALIGNMENT = 128


#: An address in global memory for each chunk: shape (blocks or 1, chunks), then perhaps pieces of a chunk.
Addresses = NDArray[np.int64]


def box_places(
    pattern: ChunkPattern, tensor: TensorDescriptor, first: list[Addresses], *, stores: bool = False
) -> BulkPlaces:
    """Return where the pieces of boxes lie: chunks, or elements where chunks cross the array's edge.

    `first` has each coordinate of the box, for every chunk: shape (blocks or 1, chunks); the innermost ones
    are those of whole chunks. An H200 stores whole chunks of a row: of one that `stores`, what lies between
    the array's last element and the end of its chunk is written too.
    """
    item, extents, counts = tensor.item_bytes, tensor.extents, tensor.counts
    end = -(-extents[0] * item // CHUNK_BYTES) * CHUNK_BYTES // item if stores else extents[0]
    row_bytes = counts[0] * item
    offset = pattern.place * CHUNK_BYTES
    rest = offset // row_bytes
    address: Addresses = np.full((1, 1), tensor.address, dtype=np.int64)
    inside: Bools = np.ones((1, 1), dtype=np.bool_)
    for axis in range(1, tensor.dimensions):
        step = tensor.steps[axis] if tensor.steps else 1
        index = first[axis] + rest % counts[axis] * step
        rest = rest // counts[axis]
        address = address + index * tensor.strides[axis - 1]
        inside = inside & (index >= 0) & (index < extents[axis])
    x = (first[0] + offset % row_bytes // item)[..., None]
    each = CHUNK_BYTES // item
    crosses = ((x < 0) & (x + each > 0)) | ((x < end) & (x + each > end))
    if crosses.any():
        x, each = x + np.arange(each), 1
    inside = inside[..., None] & (x >= 0) & (x + each <= end)
    address = address[..., None] + x * item
    shape = np.broadcast_shapes(address.shape, inside.shape)
    address, inside = np.broadcast_to(address, shape), np.broadcast_to(inside, shape)
    return BulkPlaces(pattern, address, each * item, inside)


class BulkAddress:
    """An address operand of a bulk copy: in global memory, or counted from the start of shared memory."""

    def __init__(self, coder: Coder, item: Instruction, operand: Operand, *, shared: bool = False) -> None:
        memory = memory_operand(operand, item)
        self._offset = memory.offset - (coder.shared_start if shared else 0)
        self._read = address_reader(coder, item, memory)

    def __call__(self, batch: Batch, mask: Mask, rank: int | None = None) -> Lanes:
        """Return the address, or that of the same place in the block of a rank."""
        address = mask.joined(self._read(batch))
        address = address.astype(np.int64) if rank is None else in_block(address, rank)
        return address + self._offset if self._offset else address


class BoxOperands:
    """The operands of a tensor copy: its map, its coordinates and its place in shared memory."""

    def __init__(self, coder: Coder, item: Instruction, place: Operand, shared: Operand) -> None:
        if not isinstance(place, Vec) or not isinstance(place.items[1], Vec):
            raise UnsupportedInstruction(item.name, item.line)
        self._line = item.line
        self._dimensions = next((DIMENSIONS[word] for word in item.opcode if word in DIMENSIONS), 0)
        self._shared = BulkAddress(coder, item, shared, shared=True)
        self._map = BulkAddress(coder, item, place.items[0])
        self._reads = [coder.reader(operand, S32, item) for operand in place.items[1].items]

    def boxes(
        self, batch: Batch, mask: Mask, rank: int | None = None, *, remote: bool = False
    ) -> Iterator[tuple[TensorDescriptor, Lanes, Lanes, list[Lanes], Mask]]:
        """Yield for each map the box in shared memory, its bytes, its coordinates, and the lanes.

        `rank` is of the block in whose memory the box is, at the same place; None where its address says.
        """
        address_of_box, where = self._shared(batch, mask, rank), self._map(batch, mask)
        coordinates = [mask.joined(read(batch)).astype(np.int64) for read in self._reads]
        check_multiple(
            batch, self._line, mask, address_of_box, _TENSOR_ALIGNMENT, "at byte {} of shared memory"
        )
        for address, of_map in mask.divided(where):
            tensor = _tensor_map(batch, self._line, of_map, address)
            if tensor.dimensions != self._dimensions or len(coordinates) != self._dimensions:
                text = f"copies with {len(coordinates)} coordinates where the map's array has"
                text += f" {tensor.dimensions} dimensions"
                batch.fault(FaultKind.OUT_OF_BOUNDS, text, self._line, of_map.first(), address)
            _check_column(batch, self._line, of_map, tensor, coordinates[0])
            length = np.full((1, 1, 1), tensor.box_bytes, dtype=np.int64)
            room = np.full((1, 1, 1), tensor.shared_bytes, dtype=np.int64)
            place = in_shared(batch, self._line, of_map, address_of_box, room, remote=remote)
            yield tensor, place, length, coordinates, of_map


def _check_column(batch: Batch, line: int, mask: Mask, tensor: TensorDescriptor, column: Lanes) -> None:
    """Report the first lane whose box does not start at a whole chunk of a row; cards trap there."""
    each = CHUNK_BYTES // tensor.item_bytes
    start, apart = column * tensor.item_bytes, (column & (each - 1)) != 0
    text = "starts a bulk copy of a box at coordinate {} along the innermost dimension, byte {}, which is not"
    text += f" a multiple of {CHUNK_BYTES}: boxes of {tensor.element} start at multiples of {each} elements"
    batch.refuse(FaultKind.MISALIGNED, mask, apart, line, text, column, start, at=start)


def _tensor_map(batch: Batch, line: int, mask: Mask, address: int) -> TensorDescriptor:
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


def gathered(batch: Batch, line: int, places: BulkPlaces) -> Lanes:
    """Return what global memory holds where a bulk copy reads, anything for pieces that do not exist."""
    pattern, addresses, size, wanted = places.pattern, places.start, places.size, places.inside
    if not addresses.size:
        return np.zeros(addresses.shape, dtype=moved_dtype(size))
    used = addresses if wanted is None else addresses[wanted]
    buffer = batch.memory.holding(int(used.min()), int(used.max()) + size)
    shift = size.bit_length() - 1
    if buffer is not None:
        _judge(batch, line, pattern, buffer, addresses, size, wanted)
        index = (addresses - buffer.address) >> shift
        return buffer.view(size).take(index if wanted is None else np.where(wanted, index, 0))
    parts, left = batch.memory.divided(
        addresses, size, np.ones(addresses.shape, dtype=np.bool_) if wanted is None else wanted
    )
    values: Lanes = np.zeros(addresses.shape, dtype=moved_dtype(size))
    for buffer, inside in parts:
        _judge(batch, line, pattern, buffer, addresses, size, inside)
        values[inside] = buffer.view(size)[(addresses[inside] - buffer.address) >> shift]
    if left.any():
        outside(batch, line, pattern, addresses, left, "reads")
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
    if not batch.events.is_told(buffer):
        return
    order = batch.events.order
    who = batch.bulk.threads(pattern) + order.first * order.block_threads
    who = who.reshape(*who.shape, *(1,) * (addresses.ndim - who.ndim))
    shape = np.broadcast_shapes(who.shape, addresses.shape)
    who, place = np.broadcast_to(who, shape), np.broadcast_to((addresses - buffer.address) // size, shape)
    chosen = np.ones(shape, dtype=np.bool_) if wanted is None else np.broadcast_to(wanted, shape)
    place, who = place[chosen], who[chosen]
    batch.events.tell("read", buffer, index=place, mask=None, by=who, size=size, line=line)


def tell_of_reads(
    batch: Batch,
    line: int,
    mask: Mask,
    first: Lanes,
    size: Lanes | int,
    width: Lanes | int | None = None,
    rows: Lanes | None = None,
) -> None:
    """Tell who listens what the copy engine reads for each lane in the mask, though no value moves.

    `first` is the address of the first byte, `size` how many there are, or for all; of a box `width` those of
    a row, and `rows` where each begins after the first.
    """
    who = mask.held(batch.events.order.threads)
    sizes = [size] if isinstance(size, int) else np.unique(size).tolist()
    for each in filter(None, sizes):
        chosen = slice(None) if len(sizes) == 1 else size == each
        buffer = batch.memory.holding(int(first[chosen][0]), int(first[chosen][0]) + 1)
        if buffer is not None and batch.events.is_told(buffer):
            piece = gcd(each, CHUNK_BYTES)
            place, count = (first[chosen] - buffer.address) // piece, each // piece
            how = {"mask": None, "by": who[chosen], "size": piece, "pieces": count, "line": line}
            box = None if width is None else (np.broadcast_to(width, who.shape)[chosen], rows)
            batch.events.tell("read", buffer, index=place, rows=box, **how)


def inside_of(tensor: TensorDescriptor, first: list[Lanes]) -> tuple[Lanes, Lanes | int, Lanes | int]:
    """Return where what each lane's box has of the array begins, and bytes of it: all, and of a row.

    `first` has each coordinate of the box. Where all lanes have as many bytes, these are one number.
    """
    address: Lanes | int = tensor.address
    total: Lanes | int = tensor.item_bytes
    width, strides = total, (total, *tensor.strides)
    for axis, (start, count, extent) in enumerate(zip(first, tensor.counts, tensor.extents, strict=True)):
        step = tensor.steps[axis] if tensor.steps and axis else 1
        within: Lanes | int = count
        if start.min() < 0 or start.max() + (count - 1) * step >= extent:
            # Not np.clip, which takes several times as long for the few values that there are.
            before, end = (np.minimum(np.maximum(-(-(end - start) // step), 0), count) for end in (0, extent))
            start, within = np.minimum(start + before * step, extent - 1), end - before
        address = address + start * strides[axis]
        total = total * within
        width = width if axis else total
    return np.asarray(address), total, width


def outside(
    batch: Batch,
    line: int,
    pattern: ChunkPattern,
    addresses: Addresses,
    wrong: Bools,
    verb: str,
    kind: FaultKind = FaultKind.OUT_OF_BOUNDS,
) -> NoReturn:
    """Report the first of some addresses that a copy may not touch."""
    row, chunk, *_ = (int(i) for i in np.argwhere(wrong)[0])
    start = int(addresses[tuple(np.argwhere(wrong)[0])])
    block = int(pattern.block[chunk]) if pattern.leading > 1 else row
    buffer = batch.memory.nearest(start)
    where = buffer.described(start - buffer.address) if buffer else "where nothing is allocated"
    text = f"{verb} global memory by a bulk copy at {start & (1 << 64) - 1:#x}, {where}"
    position = (block, int(pattern.warp[chunk]), int(pattern.lane[chunk]))
    batch.fault(kind, text, line, position, start)


def of_chunks(pattern: ChunkPattern, value: Lanes) -> NDArray[np.int64]:
    """Return the value of each chunk's lane: shape (blocks or 1, chunks)."""
    leading = max(len(value), pattern.leading)
    spread = np.broadcast_to(value, (leading, pattern.mask.warps, 32))
    if pattern.leading == 1:
        return np.asarray(spread[:, pattern.warp, pattern.lane])
    return np.asarray(spread[pattern.block, pattern.warp, pattern.lane])[None]


def check_multiple(batch: Batch, line: int, mask: Mask, value: Lanes, unit: int, what: str) -> None:
    """Report the first lane whose number is not a multiple of `unit`."""
    text = f"starts a bulk copy {what}, which is not a multiple of {unit}"
    apart, shared = np.asarray((value & (unit - 1)) != 0), what.endswith("shared memory")
    batch.refuse(FaultKind.MISALIGNED, mask, apart, line, text, value, at=value, shared=shared)


def in_shared(
    batch: Batch, line: int, mask: Mask, start: Lanes, length: Lanes, *, remote: bool = False
) -> Lanes:
    """Return where a stretch lies in the shared memory of its batch, which must hold it.

    `start` counts from the kernel's own shared memory, which a `remote` one may leave for another block's.
    """
    limit = batch.layout.shared_bytes
    several = batch.layout.several
    outside = np.asarray(length < 0 if several else (length < 0) | (start < 0) | (start + length > limit))
    text = f"copies {{}} bytes at byte {{}} of shared memory, which has {limit} bytes"
    batch.refuse(FaultKind.OUT_OF_BOUNDS, mask, outside, line, text, length, start, at=start, shared=True)
    if not several:
        return start
    return ClusterAccess(batch, line, start, length, mask).places(remote=remote)
