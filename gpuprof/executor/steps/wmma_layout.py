# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the elements of `wmma` fragments lie, as ptxas lays them out, and by which accesses they move.

The layout of a fragment is nobody's business but the compiler's; the accesses are counted by the hardware,
so this follows the machine code. A fragment is made of the tiles of `mma.sync`. Where M is 8, the machine
code computes the transpose: B's fragment takes the place of A's. A fragment of halves has 16 elements a lane
for historical reasons; where the tiles need fewer, they are held several times.

A tile that lies in memory as lanes hold it moves by words. One that lies the other way moves by words too,
and is transposed in registers, where its elements have 16 bits; else element by element.
"""

from enum import Enum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.fragments import GROUPS, LANES
from gpuprof.executor.arithmetic.tensor_products import Product
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import ARITHMETIC

_GROUP, _LANE = np.divmod(np.arange(WARP), LANES)

Numbers = NDArray[np.int64]


class Form(Enum):
    """How a piece of a fragment comes from memory, or goes there."""

    PLAIN = "plain"
    #: Words whose tile is transposed in registers.
    EXCHANGED = "exchanged"
    #: The bytes of one register, each by an access of its own.
    BYTES = "bytes"


class Piece(Struct, frozen=True):
    """One access by all lanes, or several where a register is put together from bytes.

    Attributes:
        strided: For each lane how many strides its address lies from the fragment's.
        along: And how many elements.
    """

    registers: tuple[int, ...]
    strided: Numbers
    along: Numbers
    size: int
    form: Form = Form.PLAIN


class Shape(Struct, frozen=True):
    """A shape of `wmma`, with the product that its machine code is made of."""

    m: int
    n: int
    k: int
    product: Product

    @property
    def exchanged(self) -> bool:
        """Whether the transpose is computed, with B first."""
        return self.m == GROUPS < self.n

    @property
    def tall_tiles(self) -> int:
        """Tiles of the first factor, one below the other."""
        return max(self.m, self.n) // self.product.rows

    @property
    def flat_tiles(self) -> int:
        """Tiles of 8 columns of the second factor, side by side."""
        return min(self.m, self.n) // GROUPS

    @property
    def steps(self) -> int:
        """Instructions along k."""
        return self.k // self.product.depth


class Tile(Struct, frozen=True):
    """A register of a factor, and its tile's place.

    `major` counts rows of A before it, or columns of B, in tiles of 8; `depth` places along k, in tiles of 4
    words.
    """

    register: int
    major: int
    depth: int


def factor_tiles(shape: Shape, *, first: bool) -> list[Tile]:
    """Return where the registers of a factor lie; `major` counts rows of A or columns of B."""
    width = 4 * max(1, 32 // shape.product.element_bits)
    deep = shape.k // width
    if not first:
        return [Tile(i, i // deep, i % deep) for i in range(shape.flat_tiles * deep)]
    halves = shape.product.rows // GROUPS
    tiles: list[Tile] = []
    for tile in range(shape.tall_tiles):
        for i in range(deep * halves):
            tiles.append(Tile(len(tiles), tile * halves + i % halves, i // halves))
    return tiles


def factor_pieces(shape: Shape, *, first: bool, by_depth: bool) -> list[Piece]:
    """Return the accesses that move a factor between its fragment and memory.

    `first` is the first factor of the machine code; `by_depth` one whose elements along k follow one another.
    """
    bits = shape.product.element_bits
    per = max(1, 32 // bits)
    pieces = []
    for tile in factor_tiles(shape, first=first):
        majors, depths = tile.major * GROUPS, tile.depth * LANES * per
        if by_depth:
            pieces.append(_piece(tile, majors + _GROUP, depths + _LANE * per, per * bits // 8))
        elif bits == 16:
            pieces.append(_piece(tile, depths + _GROUP, majors + _LANE * per, 4, Form.EXCHANGED))
        else:
            form = Form.BYTES if per > 1 else Form.PLAIN
            pieces.append(_piece(tile, depths + _LANE * per, majors + _GROUP, bits // 8, form))
    return pieces


def sum_pieces(shape: Shape, *, by_columns: bool) -> list[Piece]:
    """Return the accesses that move an accumulator.

    `by_columns` says that elements of a row, in the machine code's order, follow one another in memory.
    """
    kind = shape.product.accumulator
    item, halves = ARITHMETIC[kind].itemsize, shape.product.rows // GROUPS
    pairs = 1 if kind == "f16" else 2
    pieces = []
    for number in range(shape.tall_tiles * shape.flat_tiles * halves):
        tile, half = divmod(number, halves)
        row = (tile // shape.flat_tiles * halves + half) * GROUPS
        column = tile % shape.flat_tiles * GROUPS
        registers = tuple(range(number * pairs, (number + 1) * pairs))
        if by_columns:
            pieces.append(Piece(registers, row + _GROUP, column + 2 * _LANE, 2 * item))
        elif kind == "f16":
            pieces.append(Piece(registers, column + _GROUP, row + 2 * _LANE, 2 * item, Form.EXCHANGED))
        else:
            pieces += [
                Piece((register,), column + 2 * _LANE + i, row + _GROUP, item)
                for i, register in enumerate(registers)
            ]
    return pieces


def _piece(tile: Tile, strided: Numbers, along: Numbers, size: int, form: Form = Form.PLAIN) -> Piece:
    return Piece((tile.register,), strided, along, size, form)
