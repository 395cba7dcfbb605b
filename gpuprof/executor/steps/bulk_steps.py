# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode bulk copies and tensor copies to steps: to shared memory, from there, and their groups.

And what threads send to blocks of their cluster themselves, counted by mbarriers as such copies are.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.executor.arithmetic.atomics import ATOMICS, apply_in_turn, atomic_operation
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes, uniform_blocks
from gpuprof.executor.memory.bulk_stores import Combination, Targets
from gpuprof.executor.memory.global_accesses import MemoryRequest
from gpuprof.executor.memory.global_flights import BulkPlaces
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern, SharedPattern
from gpuprof.executor.memory.tensor_map_encoding import FIELDS, MAGIC, TensorDescriptor
from gpuprof.executor.program.ptx import Function, Imm, Instruction, Label, Mem, Operand, Reg
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
    gathered,
    in_shared,
    inside_of,
    of_chunks,
    outside,
    tell_of_reads,
)
from gpuprof.executor.steps.coding import Coder, Step, group_step, where_active
from gpuprof.executor.steps.distributed_shared import names_cluster
from gpuprof.executor.steps.mbarrier_steps import BarrierOperand
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand, parts_of
from gpuprof.executor.steps.spaces import SharedSpace

#: What the opcodes that are modelled may say.
_INWARD = {"cp", "async", "bulk", "shared", "cluster", "cta", "global", "mbarrier", "complete_tx", "bytes"}
_INWARD |= {"tensor", "tile", "multicast", *DIMENSIONS, *HINTS}
_BETWEEN = {"cp", "async", "bulk", "shared", "cluster", "cta", "mbarrier", "complete_tx", "bytes"}


_U16 = ARITHMETIC["u16"]


def _to_each_block(coder: Coder, item: Instruction, copy: Callable[[Batch, Mask, int | None], None]) -> Step:
    """Return the step that copies to the blocks, by rank, that the bits of a multicast's last operand name.

    Others copy where their addresses say.
    """
    if "multicast" not in item.opcode:
        return where_active(coder, item, lambda batch, mask: copy(batch, mask, None))
    read = coder.reader(item.operands[-1], _U16, item)

    def step(batch: Batch, mask: Mask) -> None:
        blocks, count = mask.joined(read(batch)).astype(np.int64), batch.layout.blocks
        text = f"copies to the blocks of mask {{:#x}}, but its cluster has {count}"
        beyond = (blocks >> count) != 0
        batch.refuse(FaultKind.OUT_OF_BOUNDS, mask, beyond, item.line, text, blocks)
        for rank in range(count):
            chosen = (blocks >> rank) & 1 == 1
            if chosen.all():
                copy(batch, mask, rank)
            elif (lanes := chosen & mask.lanes).any():
                copy(batch, mask.of(lanes), rank)

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
        return _load(coder, item)
    if spaces != ["shared", "global"] or not words <= _INWARD:
        raise UnsupportedInstruction(item.name, item.line)
    coder.uncounted |= {"global_load", "shared_store"}
    return (_tensor_load if "tensor" in words else _load)(coder, item)


class _Stretch:
    """The operands of a copy of bytes in a row: where to, where from, and how many."""

    def __init__(self, coder: Coder, item: Instruction) -> None:
        self._line = item.line
        spaces = [word for word in item.opcode if word in ("shared", "global")]
        self.in_shared = [space == "shared" for space in spaces]
        self._places = [
            BulkAddress(coder, item, operand, shared=shared)
            for operand, shared in zip(item.operands, self.in_shared, strict=False)
        ]
        self._size = coder.reader(item.operands[2], S32, item)

    def ends(self, batch: Batch, mask: Mask, rank: int | None = None) -> tuple[Lanes, Lanes, Lanes]:
        """Return where the bytes of each lane go and where from, and how many they are, once checked."""
        to, start = self._places[0](batch, mask, rank), self._places[1](batch, mask)
        length = mask.joined(self._size(batch)).astype(np.int64)
        for place, shared, way in zip((to, start), self.in_shared, ("to", "from"), strict=True):
            what = f"{way} byte {{}} of shared memory" if shared else f"{way} {{:#x}}"
            check_multiple(batch, self._line, mask, place, CHUNK_BYTES, what)
        check_multiple(batch, self._line, mask, length, CHUNK_BYTES, "of {} bytes")
        if self.in_shared[0]:
            to = in_shared(batch, self._line, mask, to, length, remote=True)
        return to, in_shared(batch, self._line, mask, start, length) if self.in_shared[1] else start, length


def _load(coder: Coder, item: Instruction) -> Step:
    """To shared memory, counted by an mbarrier: from global memory, or from that of another block."""
    stretch, barrier = _Stretch(coder, item), BarrierOperand(coder, item, item.operands[3])

    def copy(batch: Batch, mask: Mask, rank: int | None) -> None:
        columns = barrier.use(batch, mask, rank)
        to, start, length = stretch.ends(batch, mask, rank)
        if batch.events.address_only:
            if not stretch.in_shared[1]:
                tell_of_reads(batch, item.line, mask, mask.held(start), mask.held(length))
            batch.bulk.bring(columns, mask, length)
            return
        for column, part in mask.divided(columns):
            pattern = batch.bulk.pattern(to, length, part)
            if stretch.in_shared[1]:
                origin = batch.bulk.pattern(start, length, part)
                values = batch.shared.load_chunks(origin)
                values = values.reshape(1 if pattern.leading > 1 else batch.blocks, -1)
                batch.bulk.load_shared(pattern, origin, values, column, item.line)
            else:
                addresses = of_chunks(pattern, start) + pattern.place * CHUNK_BYTES
                places = BulkPlaces(pattern, addresses, CHUNK_BYTES)
                batch.bulk.load(pattern, gathered(batch, item.line, places), column, item.line, places)

    return _to_each_block(coder, item, copy)


def _tensor_load(coder: Coder, item: Instruction) -> Step:
    """A box of an array to shared memory, counted by an mbarrier; outside the array it is filled up."""
    operands = BoxOperands(coder, item, item.operands[1], item.operands[0])
    barrier = BarrierOperand(coder, item, item.operands[2])

    def copy(batch: Batch, mask: Mask, rank: int | None) -> None:
        columns = barrier.use(batch, mask, rank)
        for tensor, to, length, coordinates, of_map in operands.boxes(batch, mask, rank, remote=True):
            if batch.events.address_only:
                first = [of_map.held(coordinate) for coordinate in coordinates]
                tell_of_reads(batch, item.line, of_map, *inside_of(tensor, first), tensor.row_offsets)
                batch.bulk.bring(columns, of_map, length)
                continue
            for column, part in of_map.divided(columns):
                pattern = batch.bulk.pattern(to, length, part, tensor.swizzle_bytes, tensor.row_bytes)
                first = [of_chunks(pattern, coordinate) for coordinate in coordinates]
                places = box_places(pattern, tensor, first)
                values = _box(batch, item.line, tensor, places)
                batch.bulk.load(pattern, values, column, item.line, places)

    return _to_each_block(coder, item, copy)


def _box(batch: Batch, line: int, tensor: TensorDescriptor, places: BulkPlaces) -> Lanes:
    size, inside = places.size, places.inside
    assert inside is not None
    outside = np.full(size // tensor.item_bytes, tensor.outside, dtype=f"u{tensor.item_bytes}")
    filler = outside.view(moved_dtype(size))[0]
    if not inside.any():
        values: Lanes = np.full(inside.shape, filler, dtype=moved_dtype(size))
    else:
        values = np.where(inside, gathered(batch, line, places), filler)
    # The elements of each chunk as one value.
    return np.ascontiguousarray(values).view(moved_dtype(CHUNK_BYTES))[..., 0]


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
    stretch = _Stretch(coder, item)

    def step(batch: Batch, mask: Mask) -> None:
        to, start, length = stretch.ends(batch, mask)
        pattern = batch.bulk.pattern(start, length, mask)
        addresses = of_chunks(pattern, to) + pattern.place * CHUNK_BYTES
        _send(batch, item.line, pattern, addresses, combine)

    return where_active(coder, item, step)


def _send(
    batch: Batch, line: int, pattern: ChunkPattern, addresses: Addresses, combine: Combination | None
) -> None:
    """Put pieces of shared memory on their way to addresses of shape (blocks or 1, pieces)."""
    places = BulkPlaces(pattern, addresses, pattern.size)
    start, size, who = places.accesses(batch.blocks)
    batch.flights.require_apart(start, size, lambda: who, line, writes=True)
    targets = _targets(batch, line, pattern, addresses)
    batch.bulk_stores.start(pattern, targets, places, line, combine, address_only=batch.events.address_only)


def _targets(batch: Batch, line: int, pattern: ChunkPattern, addresses: Addresses) -> Targets:
    """Divide the pieces of a store by the buffer that they go to."""
    rows = batch.blocks if pattern.leading == 1 else 1
    addresses = np.broadcast_to(addresses, (rows, addresses.shape[1]))
    parts, left = batch.memory.divided(addresses, pattern.size, np.ones(addresses.shape, dtype=np.bool_))
    for buffer, inside in parts:
        if buffer.read_only:
            outside(batch, line, pattern, addresses, inside, "writes", FaultKind.READ_ONLY)
    if left.any():
        outside(batch, line, pattern, addresses, left, "writes")
    return [
        (buffer, np.flatnonzero(inside), (addresses[inside] - buffer.address) // pattern.size)
        for buffer, inside in parts
    ]


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
            pattern = batch.bulk.pattern(start, length, part, tensor.swizzle_bytes, tensor.row_bytes)
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

    def checked(batch: Batch, column: int, mask: Mask) -> SharedPattern:
        pattern = space.examined(batch, address(batch), mask, load=False)
        if batch.layout.several:
            home, stride = batch.mbarriers.offsets[column] // batch.layout.stride, batch.layout.stride
            text = f"stores to another block than that of its mbarrier, which is rank {home}"
            away = np.asarray(pattern.address // stride != home)
            batch.refuse(FaultKind.MBARRIER, pattern.mask, away, line, text)
        return pattern

    def step(batch: Batch, mask: Mask) -> None:
        columns = barrier.use(batch, mask)
        parts = [(column, checked(batch, column, part)) for column, part in mask.divided(columns)]
        if batch.events.address_only:
            batch.bulk.bring(columns, mask, np.full((1, 1, 1), size))
            return
        packed = np.stack(np.broadcast_arrays(*(read(batch) for read in reads)), axis=-1).view(moved)[..., 0]
        given = batch.spread(packed)

        def apply(content: Lanes, index: NDArray[np.intp], lanes: Bools, is_global: bool) -> Lanes:
            assert operation is not None
            operands = [given.view(dtype)[lanes]]
            return apply_in_turn(content.view(dtype), index, operation.elsewhere, operands)

        def land(pattern: SharedPattern) -> None:
            if reduces:
                batch.shared.update(pattern, apply)
            else:
                batch.shared.store(pattern, packed)

        for column, pattern in parts:
            if not reduces and pattern.collides:  # which comes last is open
                text = "stores asynchronously, and so do other threads of its block to the same place at once"
                batch.fault(FaultKind.SHARED_RACE, text, line, pattern.mask.first())
            batch.bulk.store_async(pattern, partial(land, pattern), column, line, reduces=reduces)

    return where_active(coder, item, step)


#: What numbers stand for: types of elements, and bytes of a swizzle.
_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16")
_SWIZZLES = (0, 32, 64, 128)
#: Registers that a copy goes through.
_THROUGH = ("tensormap@0", "tensormap@1")


def with_maps_as_stores(function: Function) -> list[Instruction | Label]:
    """Return a body in which these instructions are stores and loads; what is not known stays as it is."""
    made: list[Instruction | Label] = []
    for item in function.body:
        if isinstance(item, Instruction) and item.opcode[0] == "tensormap":
            function.registers |= dict.fromkeys(_THROUGH, "b64")
            made += [*(_copied(item) if item.opcode[1] == "cp_fenceproxy" else _replaced(item))] or [item]
        else:
            made.append(item)
    return made


def makes_maps(function: Function) -> bool:
    """Whether a kernel whose body was looked at makes maps."""
    return _THROUGH[0] in function.registers


def _replaced(item: Instruction) -> Iterator[Instruction]:
    """`tensormap.replace.tile.FIELD.SPACE.b1024.TYPE [map], (which,) value`."""
    place, *which, value = item.operands
    field, space = item.opcode[3], "shared" if "shared" in item.opcode[4] else "global"
    number = which[0].bits if which and isinstance(which[0], Imm) else 0
    if not isinstance(place, Mem) or field not in FIELDS or not (known := _value(field, value)):
        return
    offset, nbytes = FIELDS[field]

    def store(offset: int, nbytes: int, value: Operand) -> Instruction:
        goal = Mem(place.base, place.offset + offset)
        return replace(item, opcode=("st", space, f"u{8 * nbytes}"), operands=(goal, value))

    if field == "global_address":
        yield store(0, len(MAGIC), Imm(int.from_bytes(MAGIC, "little")))
    yield store(offset + number * nbytes, 4 if field == "global_dim" else nbytes, known)


def _value(field: str, value: Operand) -> Operand | None:
    """What is stored for the value of a field; None for one that is not known."""
    if field in ("rank", "elemtype", "swizzle_mode", "interleave_layout"):
        if not isinstance(value, Imm) or (field == "interleave_layout" and value.bits):
            return None
        if field == "interleave_layout":
            return value
        if field == "rank":
            return Imm(value.bits + 1)
        table = _ELEMENTS if field == "elemtype" else _SWIZZLES
        if value.bits >= len(table):
            return None
        found = table[value.bits]
        return Imm(
            found if isinstance(found, int) else struct.unpack("<I", found.encode().ljust(4, b"\0"))[0]
        )
    return value


def _copied(item: Instruction) -> Iterator[Instruction]:
    """`tensormap.cp_fenceproxy.global.shared::cta… [to], [from], 128`."""
    to, source = item.operands[:2]
    if not (isinstance(to, Mem) and isinstance(source, Mem)):
        return
    # `.sync`: the warp's lanes copy what any of them wrote before.
    yield replace(item, opcode=("bar", "warp", "sync"), operands=(Imm(0xFFFF_FFFF),))
    for offset in range(0, TENSOR_MAP_BYTES, 8):
        through = Reg(_THROUGH[offset // 8 % 2])
        ours, theirs = (Mem(one.base, one.offset + offset) for one in (source, to))
        yield replace(item, opcode=("ld", "shared", "b64"), operands=(through, ours))
        yield replace(item, opcode=("st", "global", "b64"), operands=(theirs, through))
