# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `wmma.load`, `wmma.mma` and `wmma.store`, which `nvcuda::wmma` compiles to.

The layout of a fragment is nobody's business but the compiler's; the accesses are counted by the hardware,
so this follows the machine code of ptxas. A fragment is made of the tiles of `mma.sync`. Where M is 8, the
machine code computes the transpose: B's fragment takes the place of A's. A fragment of halves has 16 elements
a lane for historical reasons; where the tiles need fewer, they are held several times.

A tile that lies in memory as lanes hold it moves by words. One that lies the other way moves by words too,
and is transposed in registers, where its elements have 16 bits; else element by element.
"""

from collections.abc import Callable
from enum import Enum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.fragments import GROUPS, LANES, transposed
from gpuprof.executor.arithmetic.halves import joined, words_of
from gpuprof.executor.arithmetic.mnemonic import ROUNDINGS
from gpuprof.executor.arithmetic.nans import canonical
from gpuprof.executor.arithmetic.tensor_products import BITWISE, Product
from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.program.ptx import Instruction, Reg
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.matrix_steps import Tiles
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand, parts_of, space_of
from gpuprof.executor.steps.mma_steps import by_registers, by_whole_warps, tensor_counter
from gpuprof.executor.steps.spaces import Space

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


#: What makes the registers of D of those of A, B and C.
Registers = Callable[[list[Lanes], list[Lanes], list[Lanes]], list[Lanes]]
_S32 = ARITHMETIC["s32"]
#: Shapes, the types that they multiply, and the product that their machine code is made of.
_SHAPES = {
    **{
        (shape, kind): "m16n8k16"
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for kind in ("f16", "bf16", "s8", "u8")
    },
    ("m16n16k8", "tf32"): "m16n8k4",
    ("m8n8k4", "f64"): "m8n8k4",
    ("m8n8k32", "s4"): "m8n8k32",
    ("m8n8k32", "u4"): "m8n8k32",
    ("m8n8k128", "b1"): "m8n8k128",
}
_ACCUMULATORS = {
    **dict.fromkeys(("f16", "bf16", "tf32"), "f32"),
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), "s32"),
    "f64": "f64",
}
#: A type of factors of shapes that have few.
_FACTORS = {"m16n16k8": "tf32", "m8n8k32": "s4", "m8n8k128": "b1"}


def _shape_of(item: Instruction) -> Shape:
    """Return the shape of an instruction, with the product that it is, or moves a part of."""
    words = item.opcode[2:]
    name = next((word for word in words if word[0] == "m" and word[1:2].isdigit()), "")
    kinds = [word for word in words if word in (*_ACCUMULATORS, "f32", "s32")]
    if len(kinds) == 4:
        accumulator, factor, other, last = kinds
    elif len(kinds) == 2:  # of halves the instruction names accumulators only
        accumulator, factor, other, last = kinds[0], "f16", "f16", kinds[1]
    elif words[0] in ("a", "b") and len(kinds) == 1:
        factor = other = kinds[0]
        accumulator = last = _ACCUMULATORS.get(factor, "")
    else:
        factor = other = _factor_of(name, kinds[0] if len(kinds) == 1 else "")
        accumulator = last = kinds[0] if kinds else ""
    small = _SHAPES.get((name, factor), "")
    if {accumulator, last} == {"f16", "f32"}:  # sums are f32
        accumulator = last = "f32"
    how = {
        "bitwise": next((word for word in words if word in BITWISE), ""),
        "rounding": next((word for word in words if word in ROUNDINGS), "rn"),
    }
    product = Product.of(small, factor, other, accumulator, saturates="satfinite" in words, **how)
    if product is None or accumulator != last or ("satfinite" in words and accumulator != "s32"):
        raise UnsupportedInstruction(item.name, item.line)
    m, rest = name[1:].split("n")
    n, k = rest.split("k")
    return Shape(int(m), int(n), int(k), product)


def _factor_of(shape: str, accumulator: str) -> str:
    """Return a type of factors that an accumulator may have: its layout is the same for all of them."""
    if shape in _FACTORS:
        return _FACTORS[shape]
    return {"f16": "f16", "f32": "f16", "s32": "s8", "f64": "f64"}.get(accumulator, "")


def multiply(coder: Coder, item: Instruction, *, spreads: bool = False) -> Step:
    """`wmma.mma`, or what it depends on, as of `mma_steps.multiply`."""
    shape = _shape_of(item)
    product, steps = shape.product, shape.steps
    _, a, b, c = (len(parts_of(operand)) for operand in item.operands)
    tall, flat, pairs = product.register_counts
    first, second = (b, a) if shape.exchanged else (a, b)
    kinds = [word for word in item.opcode if word in ("f16", "f32")]
    mixed = (kinds[0], kinds[-1]) if {*kinds[:1], *kinds[-1:]} == {"f16", "f32"} else None
    if c != shape.tall_tiles * shape.flat_tiles * (pairs // 2 if mixed and mixed[1] == "f16" else pairs):
        raise UnsupportedInstruction(item.name, item.line)
    if first < shape.tall_tiles * steps * tall or second < shape.flat_tiles * steps * flat:
        raise UnsupportedInstruction(item.name, item.line)
    count = tensor_counter(coder, item, product)

    def compute(a: list[Lanes], b: list[Lanes], c: list[Lanes]) -> list[Lanes]:
        of_tile = product.spread if spreads else product.compute
        return _by_tiles(shape, of_tile, *((b, a) if shape.exchanged else (a, b)), c)

    products = shape.tall_tiles * shape.flat_tiles * steps
    counted = lambda batch, mask: count(batch, mask, products)  # noqa: E731
    if mixed is None:
        return by_registers(coder, item, product, compute, counted)
    of_c = ARITHMETIC["b32" if mixed[1] == "f16" else "f32"]
    return by_registers(
        coder, item, product, _with_halves(compute, mixed, spreads=spreads), counted, of_c=of_c
    )


def _with_halves(compute: Registers, mixed: tuple[str, str], *, spreads: bool) -> Registers:
    """Return what takes C or gives D in halves: `mixed` has their types, in this order."""
    of_d, of_c = mixed

    def widened(half: Lanes) -> Lanes:
        if spreads:
            return np.where(half != 0, ~np.uint32(0), np.uint32(0))
        return half.view(np.float16).astype(np.float32)

    def narrowed(value: Lanes) -> Lanes:
        if spreads:
            return np.where(value != 0, ~np.uint16(0), np.uint16(0))
        with np.errstate(over="ignore"):
            return canonical(value.astype(np.float16)).view(np.uint16)

    def with_halves(a: list[Lanes], b: list[Lanes], c: list[Lanes]) -> list[Lanes]:
        made = compute(a, b, [widened(half) for word in c for half in words_of(word)] if of_c == "f16" else c)
        if of_d == "f32":
            return made
        return [joined(narrowed(x), narrowed(y)) for x, y in zip(made[::2], made[1::2], strict=True)]

    return with_halves


def _by_tiles(
    shape: Shape,
    compute: Registers,
    first: list[Lanes],
    second: list[Lanes],
    sums: list[Lanes],
) -> list[Lanes]:
    """Return the registers of D, made tile by tile.

    `compute` makes the registers of a tile of D from those of the factors of the machine code, and of C.
    """
    tall, flat, pairs = shape.product.register_counts
    found: list[Lanes] = []
    for tile in range(shape.tall_tiles * shape.flat_tiles):
        high, side = divmod(tile, shape.flat_tiles)
        total = sums[tile * pairs : (tile + 1) * pairs]
        for i in range(shape.steps):
            at, beside = (high * shape.steps + i) * tall, (side * shape.steps + i) * flat
            total = compute(first[at : at + tall], second[beside : beside + flat], total)
        found += total
    return found


class FragmentMove:
    """A fragment that moves between registers and memory: what `wmma.load` and `wmma.store` share."""

    def __init__(self, coder: Coder, item: Instruction, place: int, kind: str) -> None:
        if len(item.operands) not in (2, 3):
            raise UnsupportedInstruction(item.name, item.line)
        shape, part = _shape_of(item), item.opcode[2]
        is_row = "row" in item.opcode
        product = shape.product
        self.is_factor = part in ("a", "b")
        self.register = product.factor_register if self.is_factor else product.sum_register
        bits_of_sum = 8 * ARITHMETIC[product.accumulator].itemsize
        self.item_bits = product.element_bits if self.is_factor else bits_of_sum
        memory = memory_operand(item.operands[place], item)
        self._read_address = address_reader(coder, item, memory)
        default = {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(part, (shape.m, shape.n))
        self._stride = coder.reader(item.operands[2], _S32, item) if len(item.operands) == 3 else None
        self._packed_stride = default[1] if is_row else default[0]
        self.tiles: list[tuple[Tiles, list[int], Lanes, Lanes]] = []
        #: Accesses, each perhaps several for the bytes of a register.
        self.moves: list[tuple[Piece, Space]] = []
        first = (part == "a") != shape.exchanged
        if self.is_factor:
            by_depth = is_row == (part == "a")
            in_tiles = "shared" in item.opcode and (by_depth or self.item_bits == 16) and self.item_bits <= 16
            if in_tiles:
                self._by_tiles(coder, item, shape, memory.offset, first=first, by_depth=by_depth)
                return
            pieces = factor_pieces(shape, first=first, by_depth=by_depth)
        else:
            pieces = sum_pieces(shape, by_columns=is_row != shape.exchanged)
        for piece in pieces:
            self.moves.append((piece, space_of(coder, item, memory, piece.size, kind)))

    @property
    def register_count(self) -> int:
        """Registers that hold the fragment once."""
        if self.tiles:
            return sum(len(registers) for _, registers, _, _ in self.tiles)
        return 1 + max(register for piece, _ in self.moves for register in piece.registers)

    def _by_tiles(
        self, coder: Coder, item: Instruction, shape: Shape, offset: int, *, first: bool, by_depth: bool
    ) -> None:
        """Move the fragment as `ldmatrix` does: the tiles of one tall tile, or all flat ones, at once."""
        all_tiles = factor_tiles(shape, first=first)
        at_once = len(all_tiles) // (shape.tall_tiles if first else 1)
        per_word = 128 // self.item_bits
        for start in range(0, len(all_tiles), at_once):
            part = all_tiles[start : start + at_once]
            given = [part[min(lane // GROUPS, at_once - 1)] for lane in range(WARP)]
            row = np.arange(WARP) % GROUPS
            major, depth = np.array([t.major for t in given]), np.array([t.depth for t in given])
            if by_depth:
                strided, along = major * GROUPS + row, depth * per_word
            else:
                strided, along = depth * GROUPS + row, major * per_word
            tiles = Tiles(coder, item, at_once, offset, "load", in_window=False)
            self.tiles.append((tiles, [t.register for t in part], strided, along))
        self.exchanged = not by_depth

    def addresses(self, batch: Batch, strided: Lanes, along: Lanes) -> Lanes:
        """Return the address of each lane, without the immediate offset."""
        stride = self._stride(batch).astype(np.int64) if self._stride else np.int64(self._packed_stride)
        start = self._read_address(batch).astype(np.int64)
        return np.asarray(start + (strided * stride + along) * self.item_bits // 8)

    def load(self, batch: Batch, mask: Mask) -> dict[int, Lanes]:
        found: dict[int, Lanes] = {}
        value: Lanes
        for tiles, registers, strided, along in self.tiles:
            address = self.addresses(batch, strided, along)
            loaded = tiles.load(batch, address, mask, exchanged=self.exchanged)
            found |= dict(zip(registers, loaded, strict=True))
        for piece, space in self.moves:
            if piece.form is Form.BYTES:
                value = np.zeros((1, 1, 1), dtype=np.uint32)
                for i in range(4):
                    address = self.addresses(batch, piece.strided + i, piece.along)
                    byte = space.read(batch, address, mask).astype(np.uint32)
                    value = value | byte << np.uint32(8 * i)
                found[piece.registers[0]] = value
                continue
            value = space.read(batch, self.addresses(batch, piece.strided, piece.along), mask)
            if piece.form is Form.EXCHANGED:
                value = transposed(value)
            if len(piece.registers) == 1:
                found[piece.registers[0]] = value.view(self.register)
                continue
            both = value[..., None].view(self.register)
            found |= {register: both[..., i] for i, register in enumerate(piece.registers)}
        return found

    def store(self, batch: Batch, mask: Mask, registers: list[Lanes]) -> None:
        for piece, space in self.moves:
            values = [registers[i] for i in piece.registers]
            if len(values) > 1:
                pair = np.stack(np.broadcast_arrays(*values), axis=-1)
                value = pair.view(moved_dtype(piece.size))[..., 0]
            else:
                value = values[0].view(moved_dtype(piece.size))
            if piece.form is Form.EXCHANGED:
                value = transposed(value)
            space.write(batch, self.addresses(batch, piece.strided, piece.along), mask, value)


def load(coder: Coder, item: Instruction) -> Step:
    """`wmma.load`."""
    fragment = FragmentMove(coder, item, 1, "load")
    parts = parts_of(item.operands[0])
    count = fragment.register_count
    if len(parts) < count or len(parts) % count:
        raise UnsupportedInstruction(item.name, item.line)
    writes = [(i % count, coder.target(part, item)) for i, part in enumerate(parts) if isinstance(part, Reg)]

    def step(batch: Batch, mask: Mask) -> None:
        loaded = fragment.load(batch, mask)
        for register, write in writes:
            write(batch, loaded[register], mask)

    return by_whole_warps(coder, item, step)


def store(coder: Coder, item: Instruction) -> Step:
    """`wmma.store`."""
    fragment = FragmentMove(coder, item, 0, "store")
    parts = parts_of(item.operands[1])
    if len(parts) != fragment.register_count:
        raise UnsupportedInstruction(item.name, item.line)
    reads = [coder.reader(part, fragment.register, item) for part in parts]
    return by_whole_warps(
        coder, item, lambda batch, mask: fragment.store(batch, mask, [read(batch) for read in reads])
    )
