# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: how a tensor copy finds a box of an array in global memory.

A kernel gets a map as a parameter of 128 bytes that only the copy engine reads. What the bytes mean is the
engine's own business: on a GPU the driver writes them, here `encode_tensor_map` does.
"""

import struct
from dataclasses import dataclass

from gpuprof.copy_engine import GRANULE_BYTES, MOST_BOX_ELEMENTS, SWIZZLES, TENSOR_MAP_BYTES
from gpuprof.executor.faults import LaunchRefused

_MAGIC = b"gpuprof\0"
_LAYOUT = struct.Struct("<8sQIII4x5Q4Q5I")
_MOST_DIMENSIONS = 5
_LARGEST_STRIDE = 1 << 40


@dataclass(frozen=True)
class TensorDescriptor:
    """An array in global memory, and the box of it that one copy moves. Lists start at the fastest dimension.

    Attributes:
        address: Device address of the first element.
        item_bytes: Bytes of an element: 1, 2, 4 or 8.
        extents: Elements along each dimension.
        strides: Bytes from one element to the next along each dimension but the first.
        box: Elements of the box along each dimension.
        swizzle_bytes: Width of the swizzle pattern in shared memory: 0 (none), 32, 64 or 128.
    """

    address: int
    item_bytes: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: int = 0

    @property
    def dimensions(self) -> int:
        """How many coordinates a copy names."""
        return len(self.extents)

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy writes."""
        result = self.item_bytes
        for size in self.box:
            result *= size
        return result


def encode_tensor_map(
    address: int,
    item_bytes: int,
    extents: tuple[int, ...],
    strides: tuple[int, ...],
    box: tuple[int, ...],
    swizzle_bytes: int = 0,
) -> bytes:
    """Return the 128 bytes of a map; see `TensorDescriptor` for the arguments.

    Raises:
        LaunchRefused: The driver would refuse to make this map.
    """
    tensor = TensorDescriptor(address, item_bytes, tuple(extents), tuple(strides), tuple(box), swizzle_bytes)
    broken = _broken_rule(tensor)
    if broken:
        raise LaunchRefused(f"No tensor map can be made: {broken}.")
    rank = tensor.dimensions
    content = _LAYOUT.pack(
        _MAGIC,
        address,
        item_bytes,
        rank,
        swizzle_bytes,
        *_padded(tensor.extents, _MOST_DIMENSIONS),
        *_padded(tensor.strides, _MOST_DIMENSIONS - 1),
        *_padded(tensor.box, _MOST_DIMENSIONS),
    )
    return content.ljust(TENSOR_MAP_BYTES, b"\0")


def decode_tensor_map(content: bytes) -> TensorDescriptor:
    """Return the map that `encode_tensor_map` made.

    Raises:
        ValueError: The bytes are no map.
    """
    if len(content) != TENSOR_MAP_BYTES or not content.startswith(_MAGIC):
        raise ValueError("these bytes are no tensor map")
    _, address, item_bytes, rank, swizzle_bytes, *lists = _LAYOUT.unpack(content[: _LAYOUT.size])
    extents, strides, box = lists[:5], lists[5:9], lists[9:]
    return TensorDescriptor(
        address,
        item_bytes,
        tuple(extents[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[:rank]),
        swizzle_bytes,
    )


def _padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*values, *[0] * (count - len(values)))


def _broken_rule(tensor: TensorDescriptor) -> str | None:
    """Say which of the driver's rules a map breaks."""
    rank, item = tensor.dimensions, tensor.item_bytes
    if not 1 <= rank <= _MOST_DIMENSIONS or len(tensor.box) != rank or len(tensor.strides) != rank - 1:
        return "it takes 1 to 5 extents, as many box sizes, and one stride fewer"
    if item not in (1, 2, 4, 8):
        return f"elements have 1, 2, 4 or 8 bytes, not {item}"
    if tensor.address % GRANULE_BYTES:
        return f"the array starts at {tensor.address:#x}, which is not a multiple of {GRANULE_BYTES}"
    if not all(1 <= extent <= 1 << 32 for extent in tensor.extents):
        return f"extents go from 1 to 2^32, and these are {tensor.extents}"
    if not all(stride % GRANULE_BYTES == 0 and 0 < stride < _LARGEST_STRIDE for stride in tensor.strides):
        return f"strides are multiples of {GRANULE_BYTES} bytes below 2^40, and these are {tensor.strides}"
    if not all(1 <= size <= MOST_BOX_ELEMENTS for size in tensor.box):
        return f"a box has 1 to {MOST_BOX_ELEMENTS} elements along a dimension, and this one has {tensor.box}"
    row = tensor.box[0] * item
    if row % GRANULE_BYTES:
        return f"a row of the box has {row} bytes, which is not a multiple of {GRANULE_BYTES}"
    if tensor.swizzle_bytes not in SWIZZLES:
        return f"a swizzle is 0, 32, 64 or 128 bytes wide, not {tensor.swizzle_bytes}"
    if tensor.swizzle_bytes and row > tensor.swizzle_bytes:
        return f"a row of the box has {row} bytes, more than the swizzle's {tensor.swizzle_bytes}"
    return None
