# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode what reads textures (`tex`, `tld4`) and touches surfaces (`suld`, `sust`, `sured`), and queries.

A texture reads past what the same launch writes: its cache is filled once and never told.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import gcd
from typing import Any, NoReturn

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import apply_in_turn, atomic_operation
from gpuprof.executor.arithmetic.texels import (
    AxisTexels,
    Integers,
    as_read,
    corners,
    face_of,
    mean,
    nearest,
    neighbours,
    shares,
    texel_coordinate,
    with_all_channels,
    within,
)
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_accesses import Cache, Manner, MemoryRequest
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.texture_objects import TexelView
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.memory_steps import parts_of
from gpuprof.executor.steps.spaces import GlobalSpace
from gpuprof.texture_units import FACES, LAYOUTS, Texels

_U64, _U32, _S32 = ARITHMETIC["u64"], ARITHMETIC["u32"], ARITHMETIC["s32"]
#: What PTX calls each kind of texture.
GEOMETRIES = {
    **{"1d": "1d", "2d": "2d", "3d": "3d", "a1d": "1d_layered", "a2d": "2d_layered"},
    **{"cube": "cube", "acube": "cube_layered"},
}
#: Texels that `tld4` gathers, by their steps along x and y from the first of the four around a coordinate.
_GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))
_COMPONENTS = "rgba"


def sample(coder: Coder, item: Instruction) -> Step:
    """`tex` and `tld4`: a value of a texture at coordinates, or one channel of four texels."""
    form = _Form.of(item)
    coder.uncounted.add("global_load")
    place = item.operands[2 if form.tells_residence else 1]
    read_handle, parts = handle_and_coordinates(coder, place, item)
    if len(parts) < form.coordinates:
        raise UnsupportedInstruction(item.name, item.line)
    kinds = [_U32 if form.layered and i == 0 else form.taken for i in range(form.coordinates)]
    reads = [coder.reader(part, kind, item) for part, kind in zip(parts, kinds, strict=False)]
    target = item.operands[0]
    writes = [coder.target(part, item) for part in (target.items if isinstance(target, Vec) else (target,))]
    residence = coder.target(item.operands[1], item) if form.tells_residence else None

    def step(batch: Batch, mask: Mask) -> None:
        given = [read(batch) for read in reads]
        results: list[Lanes] | None = None
        for made, part in objects_of(batch, read_handle(batch), mask, item.line):
            if made.sampling is None:
                refuse_object(batch, part, item.line, "a surface, not a texture")
            if made.texels.kind != form.kind:
                refuse_object(batch, part, item.line, f"a {made.texels.kind} texture, not a {form.kind} one")
            values = _Reader(batch, made, part, form, item.line).read(given)
            if results is None:
                results = values
            else:
                results = [np.where(part.lanes, new, old) for new, old in zip(values, results, strict=True)]
        assert results is not None
        for write, value in zip(writes, results, strict=False):
            write(batch, value.view(form.given), mask)
        if residence is not None:
            residence(batch, np.ones((1, 1, 1), dtype=np.bool_), mask)

    return where_active(coder, item, step)


def query(coder: Coder, item: Instruction) -> Step:
    """`txq` and `suq`: extents of a texture or surface."""
    question, memory = item.opcode[1], item.operands[1]
    if question not in _ANSWERS or not isinstance(memory, Mem) or not isinstance(memory.base, Reg):
        raise UnsupportedInstruction(item.name, item.line)
    answer, read = _ANSWERS[question], coder.reader(memory.base, _U64, item)
    write = coder.target(item.operands[0], item)

    def step(batch: Batch, mask: Mask) -> None:
        value: Lanes = np.zeros((1, 1, 1), dtype=_U32)
        for made, part in objects_of(batch, read(batch), mask, item.line):
            value = np.where(part.lanes, np.uint32(answer(made.texels)), value)
        write(batch, value, mask)

    return where_active(coder, item, step)


def _layers(texels: Texels) -> int:
    return texels.extents[2] // (FACES if texels.layout.cube else 1) if texels.layout.layered else 1


_ANSWERS: dict[str, Callable[[Texels], int]] = {
    "width": lambda texels: texels.extents[0],
    "height": lambda texels: texels.extents[1] if texels.layout.axes > 1 else 0,
    "depth": lambda texels: texels.extents[2] if texels.layout.axes > 2 else 0,
    "array_size": _layers,
    "num_mipmap_levels": lambda texels: 1,
    "num_samples": lambda texels: 1,
}


def handle_and_coordinates(
    coder: Coder, operand: Operand, item: Instruction
) -> tuple[Callable[[Batch], Lanes], Sequence[Operand]]:
    """Return a reader of the handle in `[handle, {x, y}]`, and the coordinates."""
    if not isinstance(operand, Vec) or len(operand.items) != 2:
        raise UnsupportedInstruction(item.name, item.line)
    memory, coordinates = operand.items
    if not isinstance(memory, Mem) or not isinstance(memory.base, Reg):
        raise UnsupportedInstruction(item.name, item.line)
    parts = coordinates.items if isinstance(coordinates, Vec) else (coordinates,)
    return coder.reader(memory.base, _U64, item), parts


def objects_of(batch: Batch, handles: Lanes, mask: Mask, line: int) -> Iterator[tuple[TexelView, Mask]]:
    """Yield each texture or surface that lanes name, with those lanes; a handle of none is a fault."""
    for handle, part in mask.divided(handles):
        made = batch.memory.objects.get(handle)
        if not isinstance(made, TexelView):
            refuse_object(batch, part, line, f"{handle:#x}, which is neither a texture nor a surface")
        yield made, part


def refuse_object(batch: Batch, mask: Mask, line: int, what: str) -> NoReturn:
    """Raise the fault of a thread that names something else than the instruction needs."""
    batch.fault(FaultKind.OUT_OF_BOUNDS, f"uses {what}", line, mask.first())


class _Form(Struct, frozen=True):
    """What a `tex` or `tld4` says of itself.

    Attributes:
        component: The channel that is gathered; None for `tex`.
        tells_residence: Whether a second result says that the texels are there.
    """

    kind: str
    given: np.dtype[Any]
    taken: np.dtype[Any]
    component: int | None
    tells_residence: bool

    @classmethod
    def of(cls, item: Instruction) -> "_Form":
        words = [word for word in item.opcode[1:] if word not in ("level", "grad", "base")]
        gathers = item.opcode[0] == "tld4"
        component = _COMPONENTS.index(words.pop(0)) if gathers and words[0] in _COMPONENTS else None
        known = len(words) == 4 and words[0] in GEOMETRIES and words[1] == "v4"
        if not known or words[2] not in ("f32", "u32", "s32") or words[3] not in ("f32", "s32"):
            raise UnsupportedInstruction(item.name, item.line)
        kind, taken = GEOMETRIES[words[0]], ARITHMETIC[words[3]]
        if (gathers and (kind != "2d" or taken == _S32)) or (LAYOUTS[kind].cube and taken == _S32):
            raise UnsupportedInstruction(item.name, item.line)
        residence = not isinstance(item.operands[1], Vec)
        if residence and len(item.operands) == 2:  # a sampler of its own
            raise UnsupportedInstruction(item.name, item.line)
        return cls(kind, ARITHMETIC[words[2]], taken, component, residence)

    @property
    def layered(self) -> bool:
        """Whether the first coordinate is a layer."""
        return LAYOUTS[self.kind].layered

    @property
    def coordinates(self) -> int:
        """How many coordinates count: the layer, and those of a texel or of a direction."""
        layout = LAYOUTS[self.kind]
        return layout.layered + (3 if layout.cube else layout.axes)


def _in_three(index: Sequence[Any], layer: Any) -> list[Any]:
    """Return x, y and z of coordinates along fewer axes: zeros, and the layer last."""
    missing = 3 - len(index)
    return [*index, *[np.zeros_like(layer)] * (missing - 1), *([layer] if missing else [])]


class _Reader:
    """Reads a texture for lanes of one instruction."""

    def __init__(self, batch: Batch, texture: TexelView, mask: Mask, form: _Form, line: int) -> None:
        assert texture.sampling is not None
        self.batch = batch
        self.texture = texture
        self.texels = texture.texels
        self.sampling = texture.sampling
        self.mask = mask
        self.form = form
        self.line = line
        self.content = texture.content()
        #: Linear memory without rows gives texels by their number, whatever else is said of it.
        self.in_line = self.texels.linear and self.texels.kind == "1d"
        #: Texels by their number have no address modes: beyond them are zeros.
        self.numbered = self.in_line or form.taken == _S32

    def read(self, given: Sequence[Lanes]) -> list[Lanes]:
        """Return the four results, as bits of 32 each."""
        form = self.form
        first, *axes = given if form.layered else (np.zeros((1, 1, 1), dtype=_U32), *given)
        # A layer beyond the last counts as the last; one that is negative as an integer is far beyond.
        layer: Integers = np.minimum(first.astype(np.int64), _layers(self.texels) - 1)
        if form.taken == _S32:
            return self._point(_in_three([axis.astype(np.int64) for axis in axes], layer))
        axes = [axis.astype(np.float64) for axis in axes]
        with np.errstate(all="ignore"):
            if self.texels.layout.cube:
                face, *axes = face_of(*axes)
                layer = layer * FACES + face
            if form.component is not None:
                return self._gathered(axes, form.component)
            if self.in_line:
                index = [np.floor(texel_coordinate(axes[0], 1, "clamp", normalized=False)).astype(np.int64)]
                return self._point(_in_three(index, layer))
            scaled = self._in_texels(axes)
            if self.sampling.filter == "point":
                index = [nearest(axis).index[0] for axis in scaled]
                return self._point(_in_three(index, layer))
            extents = [
                extent if mode == "clamp" else None
                for extent, mode in zip(self.texels.extents, self.sampling.address, strict=True)
            ]
            return self._filtered(
                [neighbours(axis, extent) for axis, extent in zip(scaled, extents, strict=False)], layer
            )

    def _in_texels(self, axes: Sequence[Any]) -> list[Any]:
        """Return coordinates along each axis in texels."""
        normalized = self.sampling.normalized or self.texels.layout.cube
        return [
            texel_coordinate(axis, extent, mode, normalized=normalized)
            for axis, extent, mode in zip(axes, self.texels.extents, self.sampling.address, strict=False)
        ]

    def _texel(self, place: Sequence[Integers]) -> tuple[Integers, Bools]:
        """Return the number of the texel at x, y and z, and whether it is one and no border."""
        texels, found = self.texels, [*place]
        inside: Bools = np.ones((1, 1, 1), dtype=np.bool_)
        for axis in range(texels.layout.axes):
            mode = "border" if self.numbered else self.sampling.address[axis]
            found[axis], there = within(found[axis], texels.extents[axis], mode)
            inside = inside & there
        x, y, z = found
        index = np.asarray((z * texels.extents[1] + y) * texels.extents[0] + x)
        self._judge(index, inside)
        return index, inside

    def _judge(self, index: Integers, inside: Bools) -> None:
        buffer, batch = self.texture.buffer, self.batch
        if buffer.read_only:
            return
        size = self.texels.texel_bytes
        shape = np.broadcast_shapes(index.shape, inside.shape, self.mask.lanes.shape)
        used = np.broadcast_to(self.mask.lanes & inside, shape)
        where = np.broadcast_to(index, shape)
        if used.any():
            told = {"index": np.where(used, where, 0), "mask": self.mask.of(used), "size": size}
            batch.events.tell("read", buffer, **told, line=self.line, cache=Cache.TEXTURE)

    def _point(self, place: Sequence[Integers]) -> list[Lanes]:
        index, inside = self._texel(place)
        values = as_read(self.content[index], self.texels, self.sampling)
        border = np.zeros(1) if self.numbered else np.array(self._border())
        return with_all_channels(np.where(inside[..., None], values, border.astype(values.dtype)))

    def _filtered(self, axes: Sequence[AxisTexels], layer: Integers) -> list[Lanes]:
        values: list[NDArray[Any]] = []
        present: list[Bools] = []
        dtype = self.content.dtype
        border = np.array(self._border())
        if dtype.kind != "f":
            border = np.rint(np.clip(border, -1 if dtype.kind == "i" else 0, 1) * np.iinfo(dtype).max)
        for corner in corners(len(axes)):
            place = [axis.index[side] for axis, side in zip(axes, corner, strict=True)]
            index, inside = self._texel(_in_three(place, layer))
            values.append(np.where(inside[..., None], self.content[index], border.astype(dtype)))
            weighs = [axis.weight[side] != 0 for axis, side in zip(axes, corner, strict=True)]
            present.append(reduce(np.logical_and, weighs))
        return with_all_channels(mean(values, shares(axes), present, self.texels))

    def _gathered(self, axes: Sequence[Any], component: int) -> list[Lanes]:
        first = [neighbours(axis).index[0] for axis in self._in_texels(axes)]
        none = np.zeros((1, 1, 1), np.int64)
        places = ([first[0] + step_x, first[1] + step_y] for step_x, step_y in _GATHERED)
        return [self._point(_in_three(place, none))[component] for place in places]

    def _border(self) -> tuple[float, ...]:
        return self.sampling.border[: self.texels.channels]


_MODES = ("trap", "clamp", "zero")
_CACHES = frozenset({"ca", "cg", "cs", "cv", "wb", "wt"})


def load_surface(coder: Coder, item: Instruction) -> Step:
    """`suld.b`: one element or a vector per lane."""
    access = _SurfaceAccess(coder, item, item.operands[1], parts_of(item.operands[0]), Manner.READ)
    coder.uncounted.add("global_load")
    writes = [coder.target(part, item) for part in access.parts]

    def step(batch: Batch, mask: Mask) -> None:
        result: Lanes = np.zeros((*batch.shape, access.size), dtype=np.uint8)
        for pieces, address, part in access.places(batch, mask, "reads"):
            for space, where in pieces:
                content = np.ascontiguousarray(space.read(batch, address, part))[..., None].view(np.uint8)
                result[..., where] = np.where(part.lanes[..., None], content, result[..., where])
        elements = result.view(access.dtype)
        for i, write in enumerate(writes):
            write(batch, elements[..., i], mask)

    return where_active(coder, item, step)


def store_surface(coder: Coder, item: Instruction) -> Step:
    """`sust.b`: one element or a vector per lane."""
    access = _SurfaceAccess(coder, item, item.operands[0], parts_of(item.operands[1]), Manner.WRITE)
    coder.uncounted.add("global_store")
    reads = [coder.reader(part, access.dtype, item) for part in access.parts]

    def step(batch: Batch, mask: Mask) -> None:
        values = np.stack(np.broadcast_arrays(*(read(batch) for read in reads)), axis=-1)
        content = np.ascontiguousarray(values).view(np.uint8)
        for pieces, address, part in access.places(batch, mask, "writes"):
            for space, where in pieces:
                piece = np.ascontiguousarray(content[..., where]).view(moved_dtype(space.request.size))
                space.write(batch, address, part, piece[..., 0])

    return where_active(coder, item, step)


def update_surface(coder: Coder, item: Instruction) -> Step:
    """`sured.b`: read, combine and write, one lane after the other."""
    name = item.opcode[2]
    operation = atomic_operation(name, next((word for word in item.opcode[3:] if word in ARITHMETIC), ""))
    if operation is None or name not in ("add", "min", "max", "and", "or"):
        raise UnsupportedInstruction(item.name, item.line)
    access = _SurfaceAccess(coder, item, item.operands[0], (item.operands[1],), Manner.STRONG_WRITE)
    read = coder.reader(item.operands[1], operation.dtype, item)

    def step(batch: Batch, mask: Mask) -> None:
        values = batch.spread(read(batch))

        def apply(content: Lanes, index: Lanes, lanes: Bools, is_global: bool) -> Lanes:
            return apply_in_turn(content.view(operation.dtype), index, operation.in_global, [values[lanes]])

        for pieces, address, part in access.places(batch, mask, "updates"):
            if len(pieces) > 1:
                raise UnsupportedInstruction(item.name, item.line, batch.names(part.first()))
            pieces[0][0].update(batch, address, part, apply)

    return where_active(coder, item, step)


#: Parts of an access, each moved at once, and which of its bytes they are.
_Pieces = list[tuple[GlobalSpace, slice]]


class _SurfaceAccess:
    """An instruction that accesses surfaces."""

    def __init__(
        self, coder: Coder, item: Instruction, place: Operand, parts: tuple[Operand, ...], manner: Manner
    ) -> None:
        words = [word for word in item.opcode[1:] if word not in _CACHES]
        geometry = next((word for word in words if word in GEOMETRIES), "")
        kind = next((word for word in words if word in ARITHMETIC), "")
        self.mode = words[-1]
        if words[0] != "b" or not geometry or not kind or self.mode not in _MODES:
            raise UnsupportedInstruction(item.name, item.line)
        self.kind, self.parts, self.dtype = GEOMETRIES[geometry], parts, ARITHMETIC[kind]
        self.size = self.dtype.itemsize * len(parts)
        self._line = item.line
        self._manner = manner
        self._pieces: dict[int, _Pieces] = {}
        layout = LAYOUTS[self.kind]
        self._handle, given = handle_and_coordinates(coder, place, item)
        if layout.cube or len(given) < layout.axes + layout.layered:
            raise UnsupportedInstruction(item.name, item.line)
        self._reads = [coder.reader(part, _S32, item) for part in given[: layout.axes + layout.layered]]
        self._layered = layout.layered

    def places(
        self, batch: Batch, mask: Mask, verb: str
    ) -> Iterator[tuple[_Pieces, NDArray[np.int64], Mask]]:
        """Yield what the lanes access, surface by surface, checked; lanes that are out are left out."""
        given = [read(batch).astype(np.int64) for read in self._reads]
        layer, axes = (given[0], given[1:]) if self._layered else (np.zeros((1, 1, 1), np.int64), given)
        for made, part in objects_of(batch, self._handle(batch), mask, self._line):
            if made.sampling is not None:
                refuse_object(batch, part, self._line, "a texture, not a surface")
            address, part = self._place(batch, made, part, _in_three(axes, layer), verb)
            if self._manner.writes and made.buffer.read_only:
                text, everywhere = f"{verb} {made.buffer.name}", part.lanes
                batch.refuse(FaultKind.READ_ONLY, part, everywhere, self._line, text, at=address)
            if not part.empty:
                yield self._pieces_of(gcd(self.size, made.texels.texel_bytes)), address, part

    def _pieces_of(self, size: int) -> _Pieces:
        """Return what moves the access in pieces of so many bytes, at multiples of which it starts."""
        if size not in self._pieces:
            self._pieces[size] = [
                (
                    GlobalSpace(MemoryRequest(None, self._line, size, start, self._manner)),
                    slice(start, start + size),
                )
                for start in range(0, self.size, size)
            ]
        return self._pieces[size]

    def _place(
        self, batch: Batch, made: TexelView, mask: Mask, where: list[Any], verb: str
    ) -> tuple[NDArray[np.int64], Mask]:
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
        return np.asarray(made.buffer.address + start), mask

    def _report(
        self, batch: Batch, made: TexelView, position: tuple[int, int, int], where: list[Any], verb: str
    ) -> None:
        x, y, z = (int(batch.spread(place)[position]) for place in where)
        extents = made.texels.extents
        detail = f"{verb} {self.size} bytes at x = {x} (bytes), y = {y}, z = {z} of the surface"
        detail += (
            f" {made.buffer.name}, which has {made.texels.row_bytes} bytes by {extents[1]} by {extents[2]}"
        )
        batch.fault(FaultKind.OUT_OF_BOUNDS, detail, self._line, position, made.buffer.address)
