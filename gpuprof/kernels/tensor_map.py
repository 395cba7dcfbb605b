# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: how a kernel's header tells the copy engine to cut boxes out of an array.

A tensor map is a kernel argument of 128 opaque bytes. Each backend makes its own from the description here.
Lists start at the dimension whose elements are neighbours, as the copy engine's own do.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from math import prod
from operator import mul

from msgspec import Struct

from gpuprof.copy_engine import GRANULE_BYTES, MOST_DIMENSIONS, SWIZZLES, broken_rule
from gpuprof.errors import CaseSkipped
from gpuprof.problems.dtypes import ELEMENT_TYPES, is_float
from gpuprof.problems.problem import ArraySpec
from gpuprof.tables import TableReader

#: What elements outside the array are loaded as.
FILLS = ("zero", "nan")
#: Bytes to which the L2 cache may widen what it reads from memory for a copy; 0 for not at all.
L2_PROMOTIONS = (0, 64, 128, 256)


class TensorMapSpec(Struct, frozen=True):
    """What a header says of one tensor map.

    Args:
        arrays: Of these it describes the first that the copy engine can take as the other fields say.
        lists: Expressions by field. `box`; `extents`, those that the array is declared with when empty;
            `strides`, the elements from one to the next along each dimension but the first, those of an array
            without gaps when empty; `steps`, of how many elements along each dimension a copy takes one, 1
            when empty; `start`, the number of the array's element that the map begins with, 0 when empty;
            `l2_promotion_bytes`, 128 when empty.
        swizzle_bytes: Width of the pattern in which a row's 16-byte pieces are permuted; 0 for none.
        fill: What elements outside the array are loaded as: one of `FILLS`.
    """

    arrays: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]
    swizzle_bytes: int = 0
    fill: str = "zero"


class TensorMap(Struct, frozen=True):
    """One tensor map of a launch.

    Args:
        stride_bytes: Bytes from one element to the next along each dimension but the first.
        start_bytes: From the array's first element to the one that the map begins with.
        l2_promotion_bytes: One of `L2_PROMOTIONS`.
    """

    argument: str
    array: str
    dtype: str
    extents: tuple[int, ...]
    stride_bytes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    steps: tuple[int, ...] = ()
    fills_nan: bool = False
    start_bytes: int = 0
    l2_promotion_bytes: int = 128


def read_tensor_maps(reader: TableReader, arrays: Iterable[str]) -> dict[str, TensorMapSpec]:
    """The tensor maps that a header declares, by argument."""
    maps = {}
    known = tuple(arrays)
    for name, entry in reader.named_sections("tensor_maps"):
        described, box = _read_arrays(entry, known), entry.formulas("box")
        if not 1 <= len(box) <= MOST_DIMENSIONS:
            what = f"must be 1 to {MOST_DIMENSIONS} expressions: elements along a row, then rows, and so on"
            raise entry.error("box", what)
        swizzle = entry.take("swizzle_bytes", int, 0)
        entry.require("swizzle_bytes", swizzle, SWIZZLES)
        lists = {field: entry.formulas(field, []) for field in ("extents", "strides", "steps")}
        for field, texts in lists.items():
            wanted = len(box) - (field == "strides")
            if texts and len(texts) != wanted:
                raise entry.error(field, f"must be {wanted} expressions, as box has {len(box)}")
        for field in ("start", "l2_promotion_bytes"):
            text = entry.take(field, str, "")
            lists[field] = (text,) if text else ()
        fill = entry.choice("fill", FILLS, "zero")
        entry.finish()
        lists["box"] = box
        maps[name] = TensorMapSpec(described, lists, swizzle, fill)
    return maps


def _read_arrays(entry: TableReader, known: tuple[str, ...]) -> tuple[str, ...]:
    """The field `array`: a name, or several."""
    several = isinstance(entry.table.get("array"), list)
    arrays = entry.strings("array") if several else (entry.take("array", str),)
    for array in arrays:
        entry.require("array", array, known)
    if not arrays:
        raise entry.error("array", f"is empty; it may hold {', '.join(known)}")
    return arrays


def make_tensor_map(
    argument: str,
    spec: TensorMapSpec,
    lists: Mapping[str, tuple[int, ...]],
    find_array: Callable[[str], ArraySpec],
) -> TensorMap:
    """The tensor map of a launch.

    Raises:
        CaseSkipped: The copy engine can take none of the arrays; the message says which of its limits the
            last one breaks.
    """
    for name in spec.arrays[:-1]:
        try:
            return _map_of(argument, spec, lists, find_array(name))
        except CaseSkipped:
            continue
    return _map_of(argument, spec, lists, find_array(spec.arrays[-1]))


def _map_of(
    argument: str, spec: TensorMapSpec, lists: Mapping[str, tuple[int, ...]], array: ArraySpec
) -> TensorMap:
    box, item_bytes = lists["box"], ELEMENT_TYPES[array.dtype].nbytes
    extents = lists["extents"] or _extents(argument, array, len(box))
    strides = lists["strides"] or tuple(accumulate(extents[:-1], mul))
    start = lists["start"][0] if lists["start"] else 0
    made = TensorMap(
        argument,
        array.name,
        array.dtype,
        extents,
        tuple(stride * item_bytes for stride in strides),
        box,
        spec.swizzle_bytes,
        lists["steps"],
        spec.fill == "nan",
        start * item_bytes,
        *lists["l2_promotion_bytes"],
    )
    _check(made, array, (1, *strides), start)
    if broken := broken_rule(extents, made.stride_bytes, box, item_bytes, made.swizzle_bytes, made.steps):
        raise CaseSkipped(f"The tensor map {argument!r} of {array.name} cannot be made: {broken}.")
    return made


def _extents(argument: str, array: ArraySpec, dimensions: int) -> tuple[int, ...]:
    """The extents of an array, its outer dimensions taken as one where a box has fewer."""
    if dimensions > len(array.shape):
        raise CaseSkipped(
            f"The box of {argument} has {dimensions} dimensions and {array.name} has {len(array.shape)}.",
            fix=f"Say how to see it: extents = […] in [tensor_maps.{argument}].",
        )
    outer, inner = array.shape[: len(array.shape) - dimensions + 1], array.shape[-dimensions + 1 :]
    return (*reversed(inner if dimensions > 1 else ()), prod(outer))


def _check(made: TensorMap, array: ArraySpec, strides: tuple[int, ...], start: int) -> None:
    """Refuse what the driver would not: it does not know where an array ends."""
    if made.start_bytes % GRANULE_BYTES or start < 0:
        raise CaseSkipped(
            f"{made.argument} begins {made.start_bytes} bytes behind the first element of {made.array}; it"
            f" must be a multiple of {GRANULE_BYTES}."
        )
    last = start + sum((extent - 1) * stride for extent, stride in zip(made.extents, strides, strict=True))
    if last >= array.elements:
        raise CaseSkipped(
            f"The last element that {made.argument} describes is number {last}, counted from 0, and"
            f" {made.array} has {array.elements}."
        )
    if made.fills_nan and not is_float(made.dtype):
        raise CaseSkipped(f"Only floating-point elements can be NaN, and {made.array} is {made.dtype}.")
    if made.l2_promotion_bytes not in L2_PROMOTIONS:
        raise CaseSkipped(
            f"The L2 promotion of {made.argument} is {made.l2_promotion_bytes} bytes; it may be"
            f" {', '.join(map(str, L2_PROMOTIONS))}."
        )
