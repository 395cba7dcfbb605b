# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the pieces of a box lie in the array that a tensor map describes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern
from gpuprof.executor.memory.tensor_map_encoding import TensorDescriptor

#: An address in global memory for each chunk: shape (blocks or 1, chunks), then perhaps pieces of a chunk.
Addresses = NDArray[np.int64]


@dataclass(frozen=True)
class BoxPlaces:
    """Where the pieces of a box come from, or go to.

    Attributes:
        address: Of each piece: shape (blocks or 1, chunks, pieces of a chunk).
        inside: Which pieces lie in the array, likewise.
        size: Bytes of a piece: a chunk, or an element where chunks cross the array's edge.
    """

    address: Addresses
    inside: Bools
    size: int


def box_places(
    pattern: ChunkPattern, tensor: TensorDescriptor, first: list[Addresses], *, stores: bool = False
) -> BoxPlaces:
    """Return where the pieces of boxes lie.

    Args:
        pattern: The boxes in shared memory.
        tensor: What they are cut from.
        first: Each coordinate of the box, for every chunk: shape (blocks or 1, chunks). The innermost ones
            are those of whole chunks.
        stores: Whether they go to the array. An H200 stores whole chunks of a row: what lies between the
            array's last element and the end of its chunk is written too.
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
    return BoxPlaces(np.broadcast_to(address, shape), np.broadcast_to(inside, shape), each * item)
