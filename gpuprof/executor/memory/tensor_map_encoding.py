# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: how a tensor copy finds a box of an array in global memory.

A kernel gets a map as a parameter of 128 bytes that only the copy engine reads. What the bytes mean is the
engine's own business: on a GPU the driver writes them, here `encode_tensor_map` does.
"""

import struct
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.copy_engine import GRANULE_BYTES, MOST_DIMENSIONS, TENSOR_MAP_BYTES, broken_rule
from gpuprof.executor.faults import LaunchRefused
from gpuprof.executor.lanes.scalars import ARITHMETIC

MAGIC = b"gpuprof\0"
_LAYOUT = struct.Struct("<8sQ4s3Bx5Q4Q5H5B")
#: Where fields that a kernel may write stand, by PTX's names, and the bytes of each or of one of a list.
FIELDS = {
    "global_address": (8, 8),
    "elemtype": (16, 4),
    "rank": (20, 1),
    "swizzle_mode": (21, 1),
    "fill_mode": (22, 1),
    "global_dim": (24, 8),
    "global_stride": (64, 8),
    "box_dim": (96, 2),
    "element_stride": (106, 1),
    "interleave_layout": (111, 1),
}
#: Types of elements that a map can have, as PTX calls them, and their bytes.
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64")
ITEM_BYTES = {kind: ARITHMETIC[kind].itemsize for kind in _TYPES}
_FLOATS = ("f16", "f32", "f64")
_NAN_FILL = b"\xf7\x7f"


class TensorDescriptor(Struct, frozen=True, dict=True):
    """An array in global memory, and the box of it that one copy moves. Lists start at the fastest dimension.

    Attributes:
        address: Device address of the first element.
        element: PTX type of an element, which says what reductions do: "u8", "f16", "s32" and so on.
        extents: Elements along each dimension.
        strides: Bytes from one element to the next along each dimension but the first.
        box: Elements of the box along each dimension.
        swizzle_bytes: Width of the swizzle pattern in shared memory: 0 (none), 32, 64 or 128.
        steps: Of how many elements along each dimension a copy takes one; along the first it takes all.
        fills_nan: Whether elements outside the array are loaded as NaN, and not as zeros.
    """

    address: int
    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    steps: tuple[int, ...] = ()
    fills_nan: bool = False

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES[self.element]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements that one copy takes along each dimension."""
        steps = (1, *self.steps[1:]) if self.steps else (1,) * len(self.box)
        return tuple(-(-size // step) for size, step in zip(self.box, steps, strict=True))

    @property
    def outside(self) -> int:
        """The bits of an element outside the array."""
        # As an H200 fills: in every 16 bits the same, whatever the element's size.
        return int.from_bytes(_NAN_FILL * (self.item_bytes // 2), "little") if self.fills_nan else 0

    @property
    def dimensions(self) -> int:
        """How many coordinates a copy names."""
        return len(self.extents)

    @cached_property
    def box_bytes(self) -> int:
        """Bytes that one copy moves."""
        return self.item_bytes * prod(self.counts)

    @cached_property
    def row_offsets(self) -> NDArray[np.int64]:
        """Bytes from the first row of the box to each, in global memory."""
        offsets = np.zeros(1, dtype=np.int64)
        for axis, stride in enumerate(self.strides, start=1):
            apart = stride * (self.steps[axis] if self.steps else 1)
            offsets = (np.arange(self.counts[axis])[:, None] * apart + offsets).ravel()
        return offsets

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of a row of the box."""
        return self.item_bytes * self.counts[0]

    @cached_property
    def shared_bytes(self) -> int:
        """Bytes of shared memory from a box's first to its last: a row takes the whole width of a swizzle."""
        return self.box_bytes // self.row_bytes * max(self.row_bytes, self.swizzle_bytes)


def encode_tensor_map(tensor: TensorDescriptor) -> bytes:
    """Return the 128 bytes of a map, or refuse one that the driver would refuse to make."""
    broken = _broken_rule(tensor)
    if broken:
        raise LaunchRefused(f"No tensor map can be made: {broken}.")
    rank = tensor.dimensions
    content = _LAYOUT.pack(
        MAGIC,
        tensor.address,
        tensor.element.encode(),
        rank,
        tensor.swizzle_bytes,
        tensor.fills_nan,
        *_padded(tensor.extents, MOST_DIMENSIONS),
        *_padded(tensor.strides, MOST_DIMENSIONS - 1),
        *_padded(tensor.box, MOST_DIMENSIONS),
        *_padded(tensor.steps, MOST_DIMENSIONS),
    )
    return content.ljust(TENSOR_MAP_BYTES, b"\0")


@lru_cache(maxsize=64)
def decode_tensor_map(content: bytes) -> TensorDescriptor:
    """Return the map that `encode_tensor_map` made; bytes that are none are a ValueError."""
    if len(content) != TENSOR_MAP_BYTES or not content.startswith(MAGIC):
        raise ValueError("these bytes are not a tensor map")
    _, address, element, rank, swizzle_bytes, fills_nan, *lists = _LAYOUT.unpack(content[: _LAYOUT.size])
    extents, strides, box, steps = lists[:5], lists[5:9], lists[9:14], lists[14:]
    return TensorDescriptor(
        address,
        element.rstrip(b"\0").decode(),
        tuple(extents[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[:rank]),
        swizzle_bytes,
        tuple(steps[:rank]) if any(steps) else (),
        bool(fills_nan),
    )


def _padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*values, *[0] * (count - len(values)))


def _broken_rule(tensor: TensorDescriptor) -> str | None:
    """Say which of the driver's rules a map breaks."""
    if tensor.element not in ITEM_BYTES:
        return f"elements are {', '.join(ITEM_BYTES)}, not {tensor.element}"
    if tensor.address % GRANULE_BYTES:
        return f"the array starts at {tensor.address:#x}, which is not a multiple of {GRANULE_BYTES}"
    if tensor.fills_nan and not tensor.element.endswith(_FLOATS):
        return f"only floating-point elements can be NaN, not {tensor.element}"
    lists = tensor.extents, tensor.strides, tensor.box
    return broken_rule(*lists, tensor.item_bytes, tensor.swizzle_bytes, tensor.steps)
