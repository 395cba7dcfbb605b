# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `ldmatrix`, `stmatrix` and `movmatrix`: tiles of 8 x 8 elements of 16 bits and a warp's registers.

A tile is 8 rows of 16 bytes in shared memory, at addresses that 8 lanes give: the first tile's by lanes 0 to
7, the next one's by lanes 8 to 15. A row counts as accessed by the lane that gives its address. Each tile
takes a pass of its own through shared memory, and more where its rows share banks.
"""

from collections.abc import Callable

import numpy as np

from gpuprof.executor.arithmetic.fragments import GROUPS, transposed
from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_accesses import MemoryRequest
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.memory.windows import SHARED_WINDOW
from gpuprof.executor.program.ptx import Instruction, Operand
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand, parts_of
from gpuprof.executor.steps.mma_steps import by_whole_warps
from gpuprof.executor.steps.spaces import SharedSpace

ROW_BYTES = 16
_B32 = ARITHMETIC["b32"]
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_LANE = np.arange(WARP)


class Tiles:
    """Tiles in shared memory that one instruction moves: at most 4.

    `kind` is "load" or "store"; `in_window` says that addresses are generic ones.
    """

    def __init__(
        self, coder: Coder, item: Instruction, count: int, offset: int, kind: str, *, in_window: bool
    ) -> None:
        coder.shared_granule = min(coder.shared_granule, ROW_BYTES)
        start = coder.shared_start + (SHARED_WINDOW if in_window else 0)
        request = MemoryRequest(coder.site(f"shared_{kind}", item), item.line, ROW_BYTES, offset - start)
        self.count = count
        self.space = TileSpace(request)
        #: The lanes that give addresses.
        self._giving = (GROUPS * count > _LANE)[None, None]

    def _rows_mask(self, mask: Mask) -> Mask:
        """Return the lanes whose addresses count."""
        return mask.of(mask.lanes & self._giving)

    def load(self, batch: Batch, address: Lanes, mask: Mask, *, exchanged: bool) -> list[Lanes]:
        """Return the registers that get the tiles: (blocks, warps, 32) each."""
        rows = self.space.read(batch, address, self._rows_mask(mask))
        return words_of(rows, self.count, exchanged=exchanged)

    def store(
        self, batch: Batch, address: Lanes, mask: Mask, registers: list[Lanes], *, exchanged: bool
    ) -> None:
        self.space.write(batch, address, self._rows_mask(mask), rows_of(registers, exchanged=exchanged))


class TileSpace(SharedSpace):
    """Shared memory as these instructions see it: no two tiles share a pass, as those of wide loads may."""

    def examined(self, batch: Batch, address: Lanes, mask: Mask, *, load: bool) -> SharedPattern:
        """Return an access's pattern, checked when it is new."""
        return super().examined(batch, address, mask, load=False)


def words_of(rows: Lanes, count: int, *, exchanged: bool) -> list[Lanes]:
    """Return what lanes get of rows of 16 bytes, (blocks, warps or 1, 32 or 1): a word of each tile."""
    blocks, warps, _ = rows.shape
    whole = np.ascontiguousarray(np.broadcast_to(rows, (blocks, warps, WARP)))
    words = whole.view(np.uint32).reshape(blocks, warps, 4, WARP)
    tiles = [np.ascontiguousarray(words[:, :, i]) for i in range(count)]
    return [transposed(tile) for tile in tiles] if exchanged else tiles


def rows_of(registers: list[Lanes], *, exchanged: bool) -> Lanes:
    """Return the rows that registers hold of tiles, as the inverse of `words_of`; (blocks, warps, 32)."""
    shape = np.broadcast_shapes(*(register.shape for register in registers))[:2]
    words = np.zeros((*shape, 4, WARP), dtype=np.uint32)
    for i, register in enumerate(registers):
        words[:, :, i] = transposed(register) if exchanged else register
    return words.reshape(*shape, 4 * WARP).view(np.complex128)


def load_matrix(coder: Coder, item: Instruction) -> Step:
    """`ldmatrix.sync.aligned.m8n8.xN[.trans][.shared].b16`."""
    tiles, read_address, exchanged = _tiles_of(coder, item, item.operands[1], item.operands[0], "load")
    writes = [coder.target(part, item) for part in parts_of(item.operands[0])]

    def load(batch: Batch, mask: Mask) -> None:
        loaded = tiles.load(batch, read_address(batch), mask, exchanged=exchanged)
        for write, value in zip(writes, loaded, strict=True):
            write(batch, value, mask)

    return by_whole_warps(coder, item, load)


def store_matrix(coder: Coder, item: Instruction) -> Step:
    """`stmatrix.sync.aligned.m8n8.xN[.trans][.shared].b16`."""
    tiles, read_address, exchanged = _tiles_of(coder, item, item.operands[0], item.operands[1], "store")
    reads = [coder.reader(part, _B32, item) for part in parts_of(item.operands[1])]

    def store(batch: Batch, mask: Mask) -> None:
        registers = [read(batch) for read in reads]
        tiles.store(batch, read_address(batch), mask, registers, exchanged=exchanged)

    return by_whole_warps(coder, item, store)


def move_matrix(coder: Coder, item: Instruction) -> Step:
    """`movmatrix.sync.aligned.m8n8.trans.b16`: exchange rows and columns of a tile in registers."""
    if item.opcode[1:] != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise UnsupportedInstruction(item.name, item.line)
    write, read = coder.target(item.operands[0], item), coder.reader(item.operands[1], _B32, item)
    return by_whole_warps(coder, item, lambda batch, mask: write(batch, transposed(read(batch)), mask))


def _tiles_of(
    coder: Coder, item: Instruction, address: Operand, registers: Operand, kind: str
) -> tuple[Tiles, Callable[[Batch], Lanes], bool]:
    """Return the tiles that an instruction moves, a reader of their address, and whether transposed."""
    words, memory = list(item.opcode[1:]), memory_operand(address, item)
    count = next((_COUNTS[word] for word in words if word in _COUNTS), 0)
    known = {"sync", "aligned", "m8n8", "trans", "shared", "cta", "b16", *_COUNTS}
    if len(parts_of(registers)) != count or not {*words} <= known or "m8n8" not in words:
        raise UnsupportedInstruction(item.name, item.line)
    tiles = Tiles(coder, item, count, memory.offset, kind, in_window="shared" not in words)
    return tiles, address_reader(coder, item, memory), "trans" in words
