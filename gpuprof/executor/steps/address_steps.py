# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode what converts addresses between state spaces and blocks of a cluster, or asks where they belong."""

import numpy as np

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.windows import (
    CONSTANT_WINDOW,
    LOCAL_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.distributed_shared import names_cluster

_I64, _U32 = np.dtype(np.int64), np.dtype(np.uint32)
_RANKS = WINDOW_BYTES >> RANK_SHIFT
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "const": CONSTANT_WINDOW}
_SPACES = (*_WINDOWS, "global", "param")


def convert_address(coder: Coder, item: Instruction) -> Step:
    """`cvta`: between the addresses of one space and generic ones."""
    space, sign = _space(item), -1 if "to" in item.opcode else 1
    read, write = coder.reader(item.operands[1], _I64, item), coder.target(item.operands[0], item)
    masked = coder.mask(item)
    if space == "const":
        window = coder.slots.constant_window()
        return lambda batch: write(batch, read(batch) + sign * batch.registers[window], masked(batch))
    distance = sign * _WINDOWS.get(space, 0)
    return lambda batch: write(batch, read(batch) + distance, masked(batch))


def is_in_space(coder: Coder, item: Instruction) -> Step:
    """`isspacep`: does a generic address point into a space?"""
    space = _space(item)
    read, write = coder.reader(item.operands[1], _I64, item), coder.target(item.operands[0], item)
    masked = coder.mask(item)

    own = space == "shared" and not names_cluster(item)

    def belongs(batch: Batch, address: Lanes) -> Bools:
        if space == "shared" and batch.layout.several:
            rank = (address - SHARED_WINDOW) >> RANK_SHIFT
            return np.asarray(
                rank == batch.layout.rank_of_warp if own else (rank >= 0) & (rank < batch.layout.blocks)
            )
        if space in _WINDOWS:
            return _inside(address, _WINDOWS[space])
        elsewhere = [_inside(address, window) for window in _WINDOWS.values()]
        return np.asarray(~np.logical_or.reduce(elsewhere))

    return lambda batch: write(batch, belongs(batch, read(batch)), masked(batch))


def map_address(coder: Coder, item: Instruction) -> Step:
    """`mapa`: the address that a variable has in the shared memory of another block."""
    near = "shared" in item.opcode
    kind = ARITHMETIC[item.opcode[-1]]
    read = coder.reader(item.operands[1], kind, item)
    read_rank = coder.reader(item.operands[2], _U32, item)
    write, masked = coder.target(item.operands[0], item), coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        address, rank = read(batch).astype(np.int64), read_rank(batch).astype(np.int64)
        window = 0 if near else SHARED_WINDOW
        offset = (address - window) & ((1 << RANK_SHIFT) - 1)
        write(batch, (window + (rank << RANK_SHIFT) + offset).astype(kind), mask)

    return step


def rank_of_address(coder: Coder, item: Instruction) -> Step:
    """`getctarank`: the rank of the block whose shared memory an address belongs to."""
    near = "shared" in item.opcode
    read = coder.reader(item.operands[1], ARITHMETIC[item.opcode[-1]] if near else _I64, item)
    write, masked = coder.target(item.operands[0], item), coder.mask(item)

    def step(batch: Batch) -> None:
        address = read(batch).astype(np.int64) - (0 if near else SHARED_WINDOW)
        write(batch, ((address >> RANK_SHIFT) & (_RANKS - 1)).astype(np.uint32), masked(batch))

    return step


def _space(item: Instruction) -> str:
    space = next((part for part in item.opcode if part in _SPACES), None)
    if space is None or (space == "param" and item.opcode[0] == "isspacep"):
        raise UnsupportedInstruction(item.name, item.line)
    return space


def _inside(address: Lanes, window: int) -> Bools:
    return np.asarray((address >= window) & (address < window + WINDOW_BYTES))
