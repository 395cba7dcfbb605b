# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the wrong elements of an array lie, in words: a row, a block of columns, every other one, an edge."""

from collections.abc import Sequence
from math import prod
from typing import Any

from msgspec import Struct

from gpuprof.problems.numpy_later import NDArray, np

Mask = NDArray[Any]

#: Longest period that a pattern along an axis is looked for with.
_LONGEST_PERIOD = 512
#: Tiles that an edge may be what is left of; a smaller one says nothing.
_TILES = (256, 128, 64, 32, 16, 8, 4)


class Axis(Struct, frozen=True):
    """What one step along an axis is called."""

    one: str
    many: str
    of: str = ""


def axes_of(rank: int) -> tuple[Axis, ...]:
    """The words for an array of some rank, as it is stored."""
    if rank == 1:
        return (Axis("element", "elements"),)
    if rank == 2:
        return Axis("row", "rows"), Axis("column", "columns")
    return tuple(Axis("index", "indices", f" of axis {axis}") for axis in range(rank))


def describe_places(wrong: Mask, axes: Sequence[Axis]) -> str:
    """Where the wrong elements lie: `rows 96 to 99, past the last multiple of 32`.

    Empty where all are wrong, or they lie in no order. Of a single axis no count is said: it is that of all.
    """
    if wrong.all():
        return ""
    sets = _along_axes(wrong)
    if _is_product(wrong, sets):
        return _product(sets, axes)
    if text := _beyond_a_box(wrong, axes):
        return text
    if text := _diagonal(wrong):
        return text
    return _within(sets, axes)


def _along_axes(mask: Mask) -> list[Mask]:
    """For each axis, at which of its indices there is any."""
    every = range(mask.ndim)
    return [np.asarray(mask.any(axis=tuple(other for other in every if other != axis))) for axis in every]


def _is_product(mask: Mask, sets: Sequence[Mask]) -> bool:
    """Whether an element is marked where the indices along all axes are."""
    return int(mask.sum()) == prod(int(chosen.sum()) for chosen in sets)


def _product(sets: Sequence[Mask], axes: Sequence[Axis]) -> str:
    several = len(sets) > 1
    parts = [
        _indices(chosen, axis, counted=several)
        for chosen, axis in zip(sets, axes, strict=True)
        if not chosen.all()
    ]
    return " of ".join(reversed(parts))


def _indices(chosen: Mask, axis: Axis, *, counted: bool) -> str:
    found, extent = np.flatnonzero(chosen), len(chosen)
    first, last, count = int(found[0]), int(found[-1]), len(found)
    if count == 1:
        return f"the last {axis.one}{axis.of}" if first == extent - 1 else f"{axis.one} {first}{axis.of}"
    if last - first + 1 == count:
        return f"{axis.many} {first} to {last}{axis.of}{_left_over(first, last, extent)}"
    share = f"{count} of {extent} " if counted else ""
    return _periodic(chosen, axis) or f"{share}{axis.many}{axis.of} between {first} and {last}"


def _left_over(first: int, last: int, extent: int) -> str:
    """What to add where indices are what is left behind the last full tile."""
    if last != extent - 1:
        return ""
    for tile in _TILES:
        if first and first % tile == 0 and extent - first < tile:
            return f", past the last multiple of {tile}"
    return ""


def _periodic(chosen: Mask, axis: Axis) -> str:
    """Indices that repeat; empty where they do not."""
    extent = len(chosen)
    for period in range(2, min(_LONGEST_PERIOD, extent // 2) + 1):
        head = chosen[:period]
        if not (chosen == np.resize(head, extent)).all():
            continue
        found = np.flatnonzero(head)
        first, last = int(found[0]), int(found[-1])
        if len(found) == 1:
            which = f"every other {axis.one}" if period == 2 else f"one {axis.one} in {period}"
            return f"{which}{axis.of}, from {first}"
        if last - first + 1 == len(found):
            return f"{axis.many} {first} to {last} of every {period}{axis.of}"
        return f"{len(found)} of every {period} {axis.many}{axis.of}"
    return ""


def _beyond_a_box(wrong: Mask, axes: Sequence[Axis]) -> str:
    """Everything but a box at the origin, as kernels leave that cover full tiles only."""
    sets = _along_axes(~wrong)
    if not _is_product(~wrong, sets) or not all(chosen[: int(chosen.sum())].all() for chosen in sets):
        return ""
    parts, left = [], []
    for chosen, axis in zip(sets, axes, strict=True):
        first, extent = int(chosen.sum()), len(chosen)
        if first < extent:
            parts.append(f"{axis.many} from {first}{axis.of}")
            left.append(_left_over(first, extent - 1, extent))
    if len(set(left)) == 1:
        return " and ".join(parts) + left[0]
    return " and ".join(f"{part}{over}" for part, over in zip(parts, left, strict=True))


def _diagonal(wrong: Mask) -> str:
    if wrong.ndim != 2 or wrong.shape[0] != wrong.shape[1]:
        return ""
    column = np.arange(len(wrong))
    row = column[:, None]
    shapes = {
        "the diagonal": row == column,
        "all but the diagonal": row != column,
        "all above the diagonal": row < column,
        "all below the diagonal": row > column,
        "the diagonal and all above it": row <= column,
        "the diagonal and all below it": row >= column,
    }
    return next((text for text, shape in shapes.items() if (wrong == shape).all()), "")


def _within(sets: Sequence[Mask], axes: Sequence[Axis]) -> str:
    """The box that holds them all, where it is not everything."""
    parts = []
    for chosen, axis in zip(sets, axes, strict=True):
        found = np.flatnonzero(chosen)
        first, last = int(found[0]), int(found[-1])
        if last - first + 1 < len(chosen):
            span = f"{axis.one} {first}" if first == last else f"{axis.many} {first} to {last}"
            parts.append(f"{span}{axis.of}")
    return f"within {' and '.join(parts)}" if parts else ""
