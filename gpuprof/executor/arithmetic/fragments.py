# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which lane holds which element of a tensor core's operands, as the PTX ISA draws it for `mma.sync`.

A warp is 8 groups of 4 lanes. Operands are made of tiles of 8 rows and 16 bytes (32 bytes of f64): group g
holds row g, lane t of the group the t-th word. Of A the registers go down the rows first and then along k; B
is one tile of 8 columns, stored by columns; of an accumulator each lane holds two neighbours in a row.

Registers are arrays of shape (blocks or 1, warps or 1, 32 or 1); matrices have the warps, of all blocks in
turn, last.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import Lanes

GROUPS, LANES = 8, 4


class Packed(Struct, frozen=True):
    """Integers of 4 bits or 1, as many as fit in a register of 32, the first in its lowest bits."""

    bits: int
    signed: bool

    def split(self, words: Lanes) -> Lanes:
        """Return the integers of each word as bytes, in one more dimension."""
        places = np.arange(0, 32, self.bits, dtype=np.uint32)
        found = (words.view(np.uint32)[..., None] >> places & np.uint32((1 << self.bits) - 1)).astype(np.int8)
        return found - ((found >> self.bits - 1 << self.bits) if self.signed else np.int8(0))


#: How the elements of an operand lie in its registers.
Elements = np.dtype[Any] | Packed


def leading(registers: Sequence[Lanes]) -> tuple[int, int]:
    """Return the blocks and warps that are told apart among registers."""
    blocks, warps, _ = np.broadcast_shapes(*(register.shape for register in registers))
    return blocks, warps


def matrix_a(registers: Sequence[Lanes], dtype: Elements, rows: int, shape: tuple[int, int]) -> Lanes:
    """Return A, (k, rows, warps), from what lanes hold of it.

    `rows` is 8 or 16; `shape` says how many blocks and warps to tell apart.
    """
    halves = rows // GROUPS
    held = _elements(registers, dtype, shape)
    count, warps, _, _, per = held.shape
    tiles = held.reshape(count // halves, halves, warps, GROUPS, LANES, per)
    return tiles.transpose(0, 4, 5, 1, 3, 2).reshape(-1, rows, warps)


def matrix_b(registers: Sequence[Lanes], dtype: Elements, shape: tuple[int, int]) -> Lanes:
    """Return B, (k, 8, warps)."""
    held = _elements(registers, dtype, shape)
    return held.transpose(0, 3, 4, 2, 1).reshape(-1, GROUPS, held.shape[1])


def matrix_c(registers: Sequence[Lanes], dtype: np.dtype[Any], rows: int, shape: tuple[int, int]) -> Lanes:
    """Return C, (rows, 8, warps)."""
    held = _elements(registers, dtype, shape)
    count, warps, _, _, per = held.shape
    halves = rows // GROUPS
    tiles = held.reshape(halves, count // halves, warps, GROUPS, LANES, per)
    return tiles.transpose(0, 3, 4, 1, 5, 2).reshape(rows, GROUPS, warps)


def registers_of(matrix: Lanes, register: np.dtype[Any], shape: tuple[int, int]) -> list[Lanes]:
    """Return the registers that hold an accumulator, (rows, 8, warps): the inverse of `matrix_c`."""
    rows, _, warps = matrix.shape
    per = max(1, register.itemsize // matrix.dtype.itemsize)
    halves = rows // GROUPS
    tiles = matrix.reshape(halves, GROUPS, LANES, 2 // per, per, warps).transpose(0, 3, 5, 1, 2, 4)
    held = np.ascontiguousarray(tiles).view(register)
    return list(held.reshape(-1, *shape, WARP))


def transposed(words: Lanes) -> Lanes:
    """Return 8 x 8 elements of 16 bits, one tile a warp, with rows and columns exchanged (`movmatrix`)."""
    blocks, warps, _ = words.shape
    whole = np.ascontiguousarray(np.broadcast_to(words, (blocks, warps, WARP)))
    tiles = whole.view(np.uint16).reshape(blocks, warps, GROUPS, GROUPS).swapaxes(2, 3)
    return np.ascontiguousarray(tiles).reshape(blocks, warps, GROUPS * GROUPS).view(words.dtype)


def _elements(registers: Sequence[Lanes], dtype: Elements, shape: tuple[int, int]) -> Lanes:
    """Return the elements that registers hold: (registers, warps, 8 groups, 4 lanes, elements)."""
    # Stacked, registers lie in memory as they did before; a view needs neighbours side by side.
    whole = (*shape, WARP)
    each_whole = [each if each.shape == whole else np.broadcast_to(each, whole) for each in registers]
    held = np.ascontiguousarray(np.stack(each_whole))
    split = dtype.split(held) if isinstance(dtype, Packed) else held.view(dtype)
    return split.reshape(len(registers), shape[0] * shape[1], GROUPS, LANES, -1)
