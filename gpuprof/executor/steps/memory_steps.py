# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode loads, stores, atomics and asynchronous copies to steps, also to those of control slices.

A slice counts what instructions cost and checks where they go, and moves no values.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.atomics import ATOMICS, apply_in_turn, atomic_operation, change_in_turn
from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes, reinterpret, uniform
from gpuprof.executor.lanes.tally import Costs
from gpuprof.executor.memory.global_accesses import Cache, Manner, MemoryRequest
from gpuprof.executor.memory.global_flights import LanePlaces
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.landing import (
    COPY_BYTES,
    Pieces,
    cached_copy_cost,
    from_line,
    landing_cost,
    zeros_conflicts,
)
from gpuprof.executor.memory.shared_groups import SharedGroup
from gpuprof.executor.program.means import STRONG, is_for_its_block
from gpuprof.executor.program.ptx import Imm, Instruction, Mem, Not, Operand, Reg, Sym, Vec
from gpuprof.executor.program.slicing import Accesses
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.cluster_steps import release_by_fence
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.distributed_shared import names_cluster, parameter_address
from gpuprof.executor.steps.spaces import (
    GenericSpace,
    GlobalSpace,
    LocalSpace,
    SharedSpace,
    Space,
)

_SPACES = ("global", "shared", "local", "const", "param")


def load(coder: Coder, item: Instruction) -> Step:
    """`ld`, `ld.global.nc`, `ldu`: one element or a vector per lane."""
    target, source = item.operands[0], item.operands[1]
    memory = memory_operand(source, item)
    if "param" in item.opcode and isinstance(memory.base, Sym):
        return _load_parameter(coder, item, memory)
    kind, parts = element_of(item), parts_of(target)
    dtype = ARITHMETIC[kind]
    space = space_of(coder, item, memory, dtype.itemsize * len(parts), "load")
    read_address = address_reader(coder, item, memory)
    if isinstance(space, SharedSpace):
        space.parts = _wanted(coder, item, space.request, parts, dtype.itemsize)
    writes = [coder.target(part, item) for part in parts]

    def step(batch: Batch, mask: Mask) -> None:
        loaded = space.read(batch, read_address(batch), mask)
        if len(writes) == 1:
            writes[0](batch, loaded.view(dtype), mask)
            return
        elements = loaded[..., None].view(dtype)
        for i, write in enumerate(writes):
            write(batch, elements[..., i], mask)

    return where_active(coder, item, step)


def _wanted(
    coder: Coder, item: Instruction, request: MemoryRequest, parts: tuple[Operand, ...], size: int
) -> tuple[SharedSpace, ...]:
    """Return the elements of a vector load that go to a register, if some do not."""
    wanted = [i for i, part in enumerate(parts) if isinstance(part, Reg)]
    if len(wanted) == len(parts):
        return ()
    coder.shared_granule = min(coder.shared_granule, size)
    return tuple(
        SharedSpace(
            replace(
                request,
                site=coder.site("part of a vector", item),
                size=size,
                offset=request.offset + i * size,
            )
        )
        for i in wanted
    )


def _load_parameter(coder: Coder, item: Instruction, memory: Mem) -> Step:
    assert isinstance(memory.base, Sym)
    dtype = ARITHMETIC[element_of(item)]
    start = coder.parameter_offset(memory.base.name, item.line) + memory.base.offset + memory.offset
    moves = []
    for i, part in enumerate(parts_of(item.operands[0])):
        slot = coder.slots.parameter(start + i * dtype.itemsize, dtype)
        moves.append((slot, coder.target(part, item)))
    masked = coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        for slot, write in moves:
            write(batch, batch.registers[slot], mask)

    return step


def store(coder: Coder, item: Instruction) -> Step:
    """`st`: one element or a vector per lane."""
    memory, parts = memory_operand(item.operands[0], item), parts_of(item.operands[1])
    dtype = ARITHMETIC[element_of(item)]
    space = space_of(coder, item, memory, dtype.itemsize * len(parts), "store")
    read_address = address_reader(coder, item, memory)
    reads = [coder.reader(part, dtype, item) for part in parts]
    moved = moved_dtype(dtype.itemsize * len(parts))
    releases = _releaser(coder, item)

    def step(batch: Batch, mask: Mask) -> None:
        releases(batch, mask)
        first, *others = (read(batch) for read in reads)
        if others:
            packed = np.stack(np.broadcast_arrays(first, *others), axis=-1).view(moved)[..., 0]
        else:
            packed = first.view(moved)
        space.write(batch, read_address(batch), mask, packed)

    return where_active(coder, item, step)


def atomic(coder: Coder, item: Instruction) -> Step:
    """`atom` and `red`: read, combine and write, one lane after the other."""
    returns = item.opcode[0] == "atom"
    operands = item.operands if returns else (None, *item.operands)
    memory = memory_operand(operands[1], item)
    kind = element_of(item)
    operation = atomic_operation(next((part for part in item.opcode[1:] if part in ATOMICS), ""), kind)
    given = operands[2]
    if operation is None:
        raise UnsupportedInstruction(item.name, item.line)
    dtype = operation.dtype
    parts = parts_of(given) if isinstance(given, Vec) else ()
    width = max(1, len(parts))
    space = space_of(coder, item, memory, dtype.itemsize * width, "atomic")
    read_address = address_reader(coder, item, memory)
    sources = parts or tuple(operand for operand in operands[2:] if operand is not None)
    reads = [coder.reader(operand, dtype, item) for operand in sources]
    writes = [coder.target(part, item) for part in parts_of(operands[0])] if operands[0] is not None else []
    releases, compares = _releaser(coder, item), "cas" in item.opcode
    emulated = kind in ("f16", "bf16") and not parts
    update = change_in_turn if operation.seldom else apply_in_turn

    def step(batch: Batch, mask: Mask) -> None:
        releases(batch, mask)
        batch.tally.least |= emulated
        values = [batch.spread(read(batch)) for read in reads]

        def apply(content: Lanes, index: Lanes, lanes: Bools, is_global: bool) -> Lanes:
            how = operation.in_global if is_global else operation.elsewhere
            if not parts:
                return update(content.view(dtype), index, how, [value[lanes] for value in values])
            before = content[index]
            for i, value in enumerate(values):
                apply_in_turn(content.view(dtype), index * width + i, how, [value[lanes]])
            return before

        old = space.update(batch, read_address(batch), mask, apply, values[0] if compares else None)
        elements = old[..., None].view(dtype)
        for i, write in enumerate(writes):
            write(batch, elements[..., i], mask)

    return where_active(coder, item, step)


def _releaser(coder: Coder, item: Instruction) -> Callable[[Batch, Mask], None]:
    """Return what an instruction does first: one that releases is as if a fence came before it."""
    if not {"release", "acq_rel"} & set(item.opcode):
        return lambda batch, mask: None
    coder.fences = True
    near, line = is_for_its_block(item), item.line

    def release(batch: Batch, mask: Mask) -> None:
        batch.events.hear("fence", mask, near=near)
        release_by_fence(batch, mask, line, near=near)

    return release


def async_copy(coder: Coder, item: Instruction) -> Step:
    """`cp.async`: from global to shared memory, arriving when it is waited for."""
    target, source = memory_operand(item.operands[0], item), memory_operand(item.operands[1], item)
    size = item.operands[2]
    if not isinstance(size, Imm):
        raise UnsupportedInstruction(item.name, item.line)
    coder.shared_granule = min(coder.shared_granule, size.bits)
    past_cache = size.bits == COPY_BYTES and "cg" in item.opcode
    shared_site, global_site = coder.site("async_copy_shared", item), coder.site("async_copy", item)
    place = target.offset - coder.shared_start
    to_shared = SharedSpace(
        MemoryRequest(shared_site, item.line, size.bits, place, elsewhere=("wavefronts", "bank_conflicts"))
    )
    elsewhere = ("sectors",) if past_cache else ()
    from_global = GlobalSpace(
        MemoryRequest(global_site, item.line, size.bits, source.offset, elsewhere=elsewhere)
    )
    parts = _PartialRead(from_global, size.bits)
    read_target, read_source = address_reader(coder, item, target), address_reader(coder, item, source)
    length = _copied_bytes(coder, item, size.bits)

    def step(batch: Batch, mask: Mask) -> None:
        to, start = read_target(batch), read_source(batch)
        pattern = to_shared.pattern(batch, to, mask)
        reading, valid = mask, length(batch) if length is not None else None
        if valid is not None:  # bytes beyond the given length are zeros, and not read
            lanes = mask.lanes & (valid > 0)
            reading = mask if np.array_equal(lanes, mask.lanes) else mask.of(lanes)
        values: Lanes = np.zeros((1, 1, 1), dtype=moved_dtype(size.bits))
        whole = reading.lanes if valid is None else reading.lanes & (valid >= size.bits)
        if valid is not None and not np.array_equal(whole, reading.lanes):
            values = parts.read(batch, start, reading, np.where(reading.lanes, valid, 0))
        elif not reading.empty:
            values = from_global.read(batch, start, reading)
        places = from_line(start + source.offset), from_line(to + target.offset)

        def cost() -> dict[int, Costs]:
            pieces = Pieces(*places, mask, reading.lanes, whole)
            if not past_cache:
                wavefronts, conflicts = cached_copy_cost(pieces, size.bits)
                return {shared_site: {"wavefronts": wavefronts, "bank_conflicts": conflicts}}
            sectors, wavefronts = landing_cost(pieces)
            landing = {"wavefronts": wavefronts, "bank_conflicts": zeros_conflicts(pieces)}
            return {shared_site: landing, global_site: {"sectors": sectors}}

        decisive = places if valid is None else (*places, valid)
        for site, costs in batch.memo.copies[shared_site].of(decisive, mask, cost).items():
            batch.tally.charge(site, costs)
        if valid is not None:
            values = np.where(reading.lanes, values, values.dtype.type(0))
        given = uniform(size.bits, np.dtype(np.int64)) if valid is None else np.minimum(valid, size.bits)
        lanes = batch.spread(reading.lanes)
        read = LanePlaces(start.astype(np.int64) + source.offset, given.astype(np.int64), lanes)
        batch.copies.copy(pattern, values, item.line, read)

    return where_active(coder, item, step)


def _copied_bytes(coder: Coder, item: Instruction, size: int) -> Callable[[Batch], Lanes] | None:
    """Return a reader of how many bytes each lane reads; None where all read the whole."""
    if len(item.operands) < 4:
        return None
    given = item.operands[3]
    name = getattr(given.of if isinstance(given, Not) else given, "name", "")
    if coder.slots.function.registers.get(name) != "pred":
        return coder.reader(given, ARITHMETIC["u32"], item)
    ignores = coder.predicate(given, item)
    return lambda batch: np.where(ignores(batch), np.uint32(0), np.uint32(size))


class _PartialRead:
    """Reads a vector in global memory of which some lanes want the first bytes alone, and zeros behind them.

    It counts as one access, as the hardware's does. Bytes that are not wanted need not exist.
    """

    def __init__(self, whole: GlobalSpace, size: int) -> None:
        self._whole, self._size = whole, size
        request = replace(whole.request, site=None)
        self._vector = GlobalSpace(request)
        self._bytes = [
            GlobalSpace(replace(request, size=1, offset=request.offset + place)) for place in range(size)
        ]

    def read(self, batch: Batch, address: Lanes, mask: Mask, length: Lanes) -> Lanes:
        """Read the first `length` bytes of each lane."""
        self._whole.count(batch, address, mask)
        shape = np.broadcast_shapes(mask.lanes.shape, length.shape, address.shape)
        content = np.zeros((*shape, self._size), dtype=np.uint8)
        whole = np.broadcast_to(mask.lanes & (length >= self._size), shape)
        if whole.any():
            read = np.broadcast_to(self._vector.read(batch, address, mask.of(whole)), shape)
            content[whole] = np.ascontiguousarray(read)[..., None].view(np.uint8)[whole]
        for place, space in enumerate(self._bytes):
            lanes = np.broadcast_to(mask.lanes & (length > place), shape) & ~whole
            if not lanes.any():
                break
            read = np.broadcast_to(space.read(batch, address, mask.of(lanes)), shape)
            content[lanes, place] = read.view(np.uint8)[lanes]
        return content.view(moved_dtype(self._size))[..., 0]


def memory_operand(operand: Operand | None, item: Instruction) -> Mem:
    """Return an operand that must be an address."""
    if not isinstance(operand, Mem):
        raise UnsupportedInstruction(item.name, item.line)
    return operand


def element_of(item: Instruction) -> str:
    """Return the type of what a load or store moves."""
    kind = item.opcode[-1]
    if kind not in ARITHMETIC:
        raise UnsupportedInstruction(item.name, item.line)
    return kind


def parts_of(operand: Operand) -> tuple[Operand, ...]:
    """Return the registers of a vector, or the one that is none."""
    return operand.items if isinstance(operand, Vec) else (operand,)


def address_reader(coder: Coder, item: Instruction, memory: Mem) -> Callable[[Batch], Lanes]:
    """Return a reader of the address operand, without its immediate offset."""
    is_shared = "shared" in item.opcode and item.opcode[0] != "cp"
    slot = coder.slots.source(memory.base, np.dtype(np.int64), item.line)
    kept = coder.slots.kept[slot]
    if "const" in item.opcode:
        window = coder.slots.constant_window()
        return lambda batch: batch.registers[slot].astype(np.int64) + batch.registers[window]
    if "param" in item.opcode:
        return parameter_address(coder, lambda batch: batch.registers[slot].astype(np.int64))
    if kept == np.int64 or is_shared or kept == np.int32:
        return lambda batch: batch.registers[slot]
    wide: np.dtype[Any] = np.dtype(np.int64)
    return lambda batch: reinterpret(batch.registers[slot], wide)


def _manner(coder: Coder, item: Instruction, kind: str) -> Manner:
    """Return how an instruction touches memory; kind is "load", "store" or "atomic"."""
    if kind == "atomic":
        return Manner.NEAR_WRITE if is_for_its_block(item) else Manner.STRONG_WRITE
    near = bool(STRONG & set(item.opcode)) and is_for_its_block(item)
    if kind == "load" and {"relaxed", "cg"} & set(item.opcode):
        return Manner.NEAR_RELAXED_READ if near else Manner.RELAXED_READ
    if near:
        return Manner.NEAR_READ if kind == "load" else Manner.NEAR_WRITE
    if STRONG & set(item.opcode):
        return Manner.STRONG_READ if kind == "load" else Manner.STRONG_WRITE
    if kind == "load" and id(item) in coder.idle:
        return Manner.IDLE_READ
    if kind == "load" and id(item) in coder.exchanged:
        return Manner.EXCHANGED
    if kind == "load":
        return Manner.GUESS if id(item) in coder.guesses else Manner.READ
    return Manner.WRITE


def space_of(coder: Coder, item: Instruction, memory: Mem, size: int, kind: str) -> Space:
    """Return the state space of an instruction as it sees it.

    A lane accesses `size` bytes; `kind` is "load", "store" or "atomic".
    """
    name = next((part for part in item.opcode[1:] if part in _SPACES), "generic")
    if size not in (1, 2, 4, 8, 16) and (size, name) != (32, "global"):
        raise UnsupportedInstruction(item.name, item.line)
    if name in ("shared", "generic"):
        coder.shared_granule = min(coder.shared_granule, size)
    line, offset, manner = item.line, memory.offset, _manner(coder, item, kind)
    remote = name == "generic" or names_cluster(item)
    parts = next((int(word[1:]) for word in item.opcode if word in ("v2", "v4", "v8")), 1)
    cache = Cache.READ_ONLY if "nc" in item.opcode or item.opcode[0] == "ldu" else Cache.COHERENT
    cache = Cache.CONSTANT if name == "const" else cache

    def request(family: str | None, start: int = 0) -> MemoryRequest:
        site = coder.site(family, item) if family else None
        vector = item.vector and (item.vector[0] - start, item.vector[1])
        return MemoryRequest(
            site, line, size, offset - start, manner, remote=remote, parts=parts, cache=cache, vector=vector
        )

    if name == "global":
        return GlobalSpace(request(f"global_{kind}"))
    if name == "shared":
        return SharedSpace(request(f"shared_{kind}", coder.shared_start))
    if name == "local":
        return LocalSpace(request(f"local_{kind}"))
    if name in ("const", "param"):
        return GlobalSpace(request("constant_load" if name == "const" else None))
    return GenericSpace(
        GlobalSpace(request(f"global_{kind}")),
        SharedSpace(request(f"shared_{kind}", coder.shared_start)),
        LocalSpace(request(f"local_{kind}")),
        offset,
    )


def address_only(step: Step) -> Step:
    """Return what runs a step without letting values move."""

    def run(batch: Batch) -> None:
        batch.events.address_only = True
        try:
            step(batch)
        finally:
            batch.events.address_only = False

    return run


def shared_accesses(coder: Coder, group: Accesses) -> Step:
    """Return what counts address-only accesses to shared memory around one address."""
    first, _ = group.items[0]
    number = coder.site("address-only accesses", first)
    members = [_request(coder, item, distance) for item, distance in group.items]
    spaces = [SharedSpace(member) for member in members]
    assert isinstance(group.base, Reg | Sym)
    kept = coder.slots.kept[coder.slots.source(group.base, ARITHMETIC["s64"], first.line)]
    read = coder.reader(group.base, kept, first)

    def step(batch: Batch) -> None:
        address, mask, groups = read(batch), batch.mask, batch.memo.shared_groups
        if number not in groups:
            groups[number] = SharedGroup(members, batch.shared.size)
        if not groups[number].count(address, mask):
            for space in spaces:
                space.pattern(batch, address, mask, load=not space.request.manner.writes)

    return step


def _request(coder: Coder, item: Instruction, distance: int) -> MemoryRequest:
    load = item.opcode[0] == "ld"
    size = ARITHMETIC[element_of(item)].itemsize * len(parts_of(item.operands[0 if load else 1]))
    site = coder.site("shared_load" if load else "shared_store", item)
    manner = Manner.READ if load else Manner.WRITE
    return MemoryRequest(site, item.line, size, distance - coder.shared_start, manner)
