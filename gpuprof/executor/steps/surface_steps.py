# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `suld`, `sust` and `sured`: bytes of a surface by place, where x counts bytes.

What happens beyond the edges is the instruction's choice: it traps, takes the nearest place, or reads zeros
and writes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import apply_in_turn, atomic_operation
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_accesses import Manner
from gpuprof.executor.memory.global_memory import Buffer, moved_dtype
from gpuprof.executor.memory.texture_objects import SurfaceObject
from gpuprof.executor.program.ptx import Instruction, Operand
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.memory_steps import parts_of
from gpuprof.executor.steps.spaces import scatter
from gpuprof.executor.steps.texture_steps import (
    GEOMETRIES,
    handle_and_coordinates,
    objects_of,
    refuse_object,
)
from gpuprof.texture_units import LAYOUTS

_S32 = ARITHMETIC["s32"]
_MODES = ("trap", "clamp", "zero")
_CACHES = frozenset({"ca", "cg", "cs", "cv", "wb", "wt"})


def load(coder: Coder, item: Instruction) -> Step:
    """`suld.b`: one element or a vector per lane."""
    access = _SurfaceAccess(coder, item, item.operands[1], parts_of(item.operands[0]))
    coder.uncounted.add("global_load")
    writes = [coder.target(part, item) for part in access.parts]

    def step(batch: Batch, mask: Mask) -> None:
        result: Lanes = np.zeros((batch.blocks, batch.warps, 32, access.size), dtype=np.uint8)
        for place in access.places(batch, mask, "reads"):
            if not place.mask.empty:
                batch.events.tell("read", place.buffer, **place.access(0, item.line))
            lanes = np.broadcast_to(place.mask.lanes, result.shape[:-1])
            for part in range(access.size // place.granule):
                index = np.broadcast_to(place.index(part), lanes.shape)
                content = place.buffer.view(place.granule).take(np.where(lanes, index, 0))
                begin = part * place.granule
                whole = np.ascontiguousarray(content)[..., None].view(np.uint8)
                result[..., begin : begin + place.granule] = np.where(
                    lanes[..., None], whole, result[..., begin : begin + place.granule]
                )
        elements = result.view(access.dtype)
        for i, write in enumerate(writes):
            write(batch, elements[..., i], mask)

    return where_active(coder, item, step)


def store(coder: Coder, item: Instruction) -> Step:
    """`sust.b`: one element or a vector per lane."""
    access = _SurfaceAccess(coder, item, item.operands[0], parts_of(item.operands[1]))
    coder.uncounted.add("global_store")
    reads = [coder.reader(part, access.dtype, item) for part in access.parts]

    def step(batch: Batch, mask: Mask) -> None:
        values = np.stack(np.broadcast_arrays(*(read(batch) for read in reads)), axis=-1)
        content = np.ascontiguousarray(values).view(np.uint8)
        for place in access.places(batch, mask, "writes"):
            if place.buffer.read_only:
                place.fault(batch, item.line, "writes", f"{place.buffer.name}, which is read-only")
            for part in range(access.size // place.granule):
                begin = part * place.granule
                piece = np.ascontiguousarray(content[..., begin : begin + place.granule])
                place.write(batch, part, piece.view(moved_dtype(place.granule))[..., 0], item.line)

    return where_active(coder, item, step)


def update(coder: Coder, item: Instruction) -> Step:
    """`sured.b`: read, combine and write, one lane after the other."""
    name = item.opcode[2]
    operation = atomic_operation(name, next((word for word in item.opcode[3:] if word in ARITHMETIC), ""))
    if operation is None or name not in ("add", "min", "max", "and", "or"):
        raise UnsupportedInstruction(item.name, item.line)
    access = _SurfaceAccess(coder, item, item.operands[0], (item.operands[1],))
    read = coder.reader(item.operands[1], operation.dtype, item)

    def step(batch: Batch, mask: Mask) -> None:
        shape = (batch.blocks, batch.warps, 32)
        values = np.broadcast_to(read(batch), shape)
        for place in access.places(batch, mask, "updates"):
            if place.buffer.read_only:
                place.fault(batch, item.line, "updates", f"{place.buffer.name}, which is read-only")
            if place.granule != access.size:
                raise UnsupportedInstruction(item.name, item.line, batch.names(place.mask.first()))
            lanes = np.broadcast_to(place.mask.lanes, shape)
            index = np.broadcast_to(place.index(0), shape)[lanes]
            batch.events.tell(
                "update", place.buffer, **place.access(0, item.line), manner=Manner.STRONG_WRITE
            )
            content = place.buffer.view(access.size)
            place.buffer.combined = True
            apply_in_turn(content.view(operation.dtype), index, operation.in_global, [values[lanes]])
            place.buffer.store(index, content[index], access.size)

    return where_active(coder, item, step)


@dataclass(frozen=True)
class _Place:
    """What lanes of one instruction access of one surface.

    A piece of `granule` bytes is moved at once: accesses start at multiples of it.
    """

    buffer: Buffer
    start: NDArray[np.int64]
    granule: int
    mask: Mask

    def index(self, part: int) -> NDArray[np.int64]:
        """Return where a piece of the access lies, in units of its size; 0 for lanes without."""
        index = self.start // self.granule + part
        return np.asarray(np.where(self.mask.narrowed_to(index.shape), index, 0))

    def access(self, part: int, line: int) -> dict[str, Any]:
        """Return what is told of lanes that access a piece."""
        return {"index": self.index(part), "mask": self.mask, "size": self.granule, "line": line}

    def write(self, batch: Batch, part: int, values: Lanes, line: int) -> None:
        """Store a piece of each lane."""
        access = self.access(part, line)
        batch.events.tell("write", self.buffer, values, **access, manner=Manner.WRITE)
        where, chosen = scatter(access["index"], values, self.mask)
        self.buffer.store(where, chosen, self.granule)

    def fault(self, batch: Batch, line: int, verb: str, where: str) -> None:
        """Raise the fault of the first lane."""
        position = self.mask.first()
        start = int(np.broadcast_to(self.start, (batch.blocks, batch.warps, 32))[position])
        batch.fault(FaultKind.OUT_OF_BOUNDS, f"{verb} {where}", line, position, self.buffer.address + start)


class _SurfaceAccess:
    """An instruction that accesses surfaces."""

    def __init__(self, coder: Coder, item: Instruction, place: Operand, parts: tuple[Operand, ...]) -> None:
        words = [word for word in item.opcode[1:] if word not in _CACHES]
        geometry = next((word for word in words if word in GEOMETRIES), "")
        kind = next((word for word in words if word in ARITHMETIC), "")
        self.mode = words[-1]
        if words[0] != "b" or not geometry or not kind or self.mode not in _MODES:
            raise UnsupportedInstruction(item.name, item.line)
        self.kind, self.parts, self.dtype = GEOMETRIES[geometry], parts, ARITHMETIC[kind]
        self.size = self.dtype.itemsize * len(parts)
        self._line = item.line
        layout = LAYOUTS[self.kind]
        self._handle, given = handle_and_coordinates(coder, place, item)
        if layout.cube or len(given) < layout.axes + layout.layered:
            raise UnsupportedInstruction(item.name, item.line)
        self._reads = [coder.reader(part, _S32, item) for part in given[: layout.axes + layout.layered]]
        self._layered, self._axes = layout.layered, layout.axes

    def places(self, batch: Batch, mask: Mask, verb: str) -> Iterator[_Place]:
        """Yield what the lanes access, surface by surface, checked; lanes that are out are left out."""
        given = [read(batch).astype(np.int64) for read in self._reads]
        layer, axes = (given[0], given[1:]) if self._layered else (np.zeros((1, 1, 1), np.int64), given)
        for made, part in objects_of(batch, self._handle(batch), mask, self._line):
            if not isinstance(made, SurfaceObject):
                refuse_object(batch, part, self._line, "a texture, not a surface")
            yield self._place(batch, made, part, [*axes, *self._missing(axes, layer)], verb)

    @staticmethod
    def _missing(axes: Sequence[Any], layer: Any) -> list[Any]:
        missing = 3 - len(axes)
        return [*[np.zeros_like(layer)] * (missing - 1), layer] if missing else []

    def _place(self, batch: Batch, made: SurfaceObject, mask: Mask, where: list[Any], verb: str) -> _Place:
        texels = made.texels
        limits = (texels.row_bytes - self.size + 1, texels.extents[1], texels.extents[2])
        inside: Any = np.ones((1, 1, 1), dtype=np.bool_)
        for place, limit in zip(where, limits, strict=True):
            inside = inside & (place >= 0) & (place < limit)
        if (out := mask.lanes & ~inside).any():
            if self.mode == "trap":
                self._report(batch, made, first_true(out), where, verb)
            elif self.mode == "clamp":
                where = [np.clip(place, 0, limit - 1) for place, limit in zip(where, limits, strict=True)]
            else:
                mask = mask.of(mask.lanes & inside)
        crooked, at = np.asarray(where[0] % self.size != 0), made.buffer.address + where[0]
        text = f"accesses {self.size} bytes at x = {{}} of {made.buffer.name}, in bytes; that is no multiple"
        text += f" of {self.size}"
        batch.refuse(FaultKind.MISALIGNED, mask, crooked, self._line, text, where[0], at=at)
        start = (where[2] * texels.extents[1] + where[1]) * texels.row_bytes + where[0]
        return _Place(made.buffer, start, gcd(self.size, texels.texel_bytes), mask)

    def _report(
        self, batch: Batch, made: SurfaceObject, position: tuple[int, int, int], where: list[Any], verb: str
    ) -> None:
        shape = (batch.blocks, batch.warps, 32)
        x, y, z = (int(np.broadcast_to(place, shape)[position]) for place in where)
        extents = made.texels.extents
        detail = f"{verb} {self.size} bytes at x = {x} (bytes), y = {y}, z = {z} of the surface"
        detail += (
            f" {made.buffer.name}, which has {made.texels.row_bytes} bytes by {extents[1]} by {extents[2]}"
        )
        batch.fault(FaultKind.OUT_OF_BOUNDS, detail, self._line, position, made.buffer.address)
