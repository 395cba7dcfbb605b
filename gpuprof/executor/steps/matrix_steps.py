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
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand, parts_of
from gpuprof.executor.steps.mma_steps import by_whole_warps
from gpuprof.executor.steps.spaces import SharedSpace, Space, read_from, write_to

#: Reads a space, or writes it, for one access of an instruction.
Read = Callable[[Space, Batch, Lanes, Mask], Lanes]
WriteTo = Callable[[Space, Batch, Lanes, Mask, Lanes], None]

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

    def rows_mask(self, mask: Mask) -> Mask:
        """Return the lanes whose addresses count."""
        return mask.of(mask.lanes & self._giving)

    def load(
        self, batch: Batch, address: Lanes, mask: Mask, *, exchanged: bool, read: Read = read_from
    ) -> list[Lanes]:
        """Return the registers that get the tiles: (blocks, warps, 32) each."""
        rows = read(self.space, batch, address, self.rows_mask(mask))
        return words_of(rows, self.count, exchanged=exchanged)

    def store(
        self,
        batch: Batch,
        address: Lanes,
        mask: Mask,
        registers: list[Lanes],
        *,
        exchanged: bool,
        write: WriteTo = write_to,
    ) -> None:
        """Write the tiles that registers hold."""
        rows = rows_of(registers, exchanged=exchanged)
        write(self.space, batch, address, self.rows_mask(mask), rows)


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


class MatrixMove:
    """What `ldmatrix` or `stmatrix` moves between a lane's registers and shared memory."""

    def __init__(self, coder: Coder, item: Instruction) -> None:
        loads = item.opcode[0] == "ldmatrix"
        count, self._exchanged, in_window = _form(item)
        address, registers = reversed(item.operands) if loads else item.operands
        memory = memory_operand(address, item)
        self.parts = parts_of(registers)
        if len(self.parts) != count:
            raise UnsupportedInstruction(item.name, item.line)
        kind = "load" if loads else "store"
        self._tiles = Tiles(coder, item, count, memory.offset, kind, in_window=in_window)
        self._read_address = address_reader(coder, item, memory)

    def load(self, batch: Batch, mask: Mask, read: Read = read_from) -> list[Lanes]:
        """Return the registers."""
        return self._tiles.load(batch, self._read_address(batch), mask, exchanged=self._exchanged, read=read)

    def store(self, batch: Batch, mask: Mask, registers: list[Lanes], write: WriteTo = write_to) -> None:
        """Write what registers hold."""
        address = self._read_address(batch)
        self._tiles.store(batch, address, mask, registers, exchanged=self._exchanged, write=write)


def load_matrix(coder: Coder, item: Instruction) -> Step:
    """`ldmatrix.sync.aligned.m8n8.xN[.trans][.shared].b16`."""
    move = MatrixMove(coder, item)
    writes = [coder.target(part, item) for part in move.parts]

    def load(batch: Batch, mask: Mask) -> None:
        for write, value in zip(writes, move.load(batch, mask), strict=True):
            write(batch, value, mask)

    return by_whole_warps(coder, item, load)


def store_matrix(coder: Coder, item: Instruction) -> Step:
    """`stmatrix.sync.aligned.m8n8.xN[.trans][.shared].b16`."""
    move = MatrixMove(coder, item)
    reads = [coder.reader(part, _B32, item) for part in move.parts]
    return by_whole_warps(
        coder, item, lambda batch, mask: move.store(batch, mask, [read(batch) for read in reads])
    )


def move_matrix(coder: Coder, item: Instruction) -> Step:
    """`movmatrix.sync.aligned.m8n8.trans.b16`: exchange rows and columns of a tile in registers."""
    if item.opcode[1:] != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise UnsupportedInstruction(item.name, item.line)
    write, read = coder.target(item.operands[0], item), coder.reader(item.operands[1], _B32, item)
    return by_whole_warps(coder, item, lambda batch, mask: write(batch, transposed(read(batch)), mask))


def _form(item: Instruction) -> tuple[int, bool, bool]:
    """Return how many tiles an instruction moves, whether transposed, and whether by generic addresses."""
    words = list(item.opcode[1:])
    count = next((_COUNTS[word] for word in words if word in _COUNTS), 0)
    known = {"sync", "aligned", "m8n8", "trans", "shared", "cta", "b16", *_COUNTS}
    if not count or not {*words} <= known or "m8n8" not in words:
        raise UnsupportedInstruction(item.name, item.line)
    return count, "trans" in words, "shared" not in words
