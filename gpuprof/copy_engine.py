# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What CUDA says of the copy engine and its tensor maps: facts that headers, backends and the executor share.

They stand by themselves so that reading a kernel's header does not load the executor.
"""

from collections.abc import Sequence

#: Bytes of a tensor map as an argument, and their alignment.
TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 64
#: Bytes after which a swizzle pattern repeats its rows; 0 stands for no swizzle.
SWIZZLES = (0, 32, 64, 128)
#: Most dimensions of an array.
MOST_DIMENSIONS = 5
#: Most elements of a box along one axis.
MOST_BOX_ELEMENTS = 256
#: Of so many elements along a dimension it can still take one.
MOST_STEP = 8
#: Bytes that the engine moves at once: addresses, rows and strides are multiples of them.
GRANULE_BYTES = 16
_MOST_EXTENT, _MOST_STRIDE = 1 << 32, 1 << 40


def broken_rule(
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    item_bytes: int,
    swizzle_bytes: int = 0,
    steps: Sequence[int] = (),
) -> str | None:
    """The rule of the driver that a tensor map breaks; None if it can be made.

    Args:
        extents: Elements along each dimension, from the one whose elements are neighbours.
        strides: Bytes from one element to the next along each dimension but the first.
        box: Elements of what one copy moves, along each.
        item_bytes: Of an element.
        swizzle_bytes: Width of the pattern in which a row's 16-byte pieces are permuted; 0 for none.
        steps: Of how many elements along each dimension a copy takes one; none for all.
    """
    rank, row = len(extents), box[0] * item_bytes if box else 0
    if not 1 <= rank <= MOST_DIMENSIONS or len(box) != rank or len(strides) != rank - 1:
        return f"it takes 1 to {MOST_DIMENSIONS} extents, as many box sizes, and one stride fewer"
    if not all(1 <= extent <= _MOST_EXTENT for extent in extents):
        return f"extents are 1 to 2^32, not {_times(extents)}"
    if wrong := [one for one in strides if one % GRANULE_BYTES or not 0 < one < _MOST_STRIDE]:
        return f"rows are multiples of {GRANULE_BYTES} bytes apart, below 2^40, not {wrong[0]}"
    if not all(1 <= size <= MOST_BOX_ELEMENTS for size in box):
        return f"a box is 1 to {MOST_BOX_ELEMENTS} elements along each dimension, not {_times(box)}"
    if row % GRANULE_BYTES:
        return f"a row of the box is a multiple of {GRANULE_BYTES} bytes, not {row}"
    if swizzle_bytes not in SWIZZLES:
        return f"a swizzle is {', '.join(map(str, SWIZZLES))} bytes wide, not {swizzle_bytes}"
    if swizzle_bytes and row > swizzle_bytes:
        return f"a row of the box is at most the swizzle's {swizzle_bytes} bytes, not {row}"
    if steps and (len(steps) != rank or not all(1 <= step <= MOST_STEP for step in steps)):
        return f"it takes as many steps as extents, 1 to {MOST_STEP}, not {_times(steps)}"
    return None


def _times(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))
