# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode what converts addresses between state spaces, and asks which one they belong to, to steps."""

import numpy as np

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
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

_I64 = np.dtype(np.int64)
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


def _space(item: Instruction) -> str:
    space = next((part for part in item.opcode if part in _SPACES), None)
    if space is None or (space == "param" and item.opcode[0] == "isspacep"):
        raise UnsupportedInstruction(item.name, item.line)
    return space


def _inside(address: Lanes, window: int) -> Bools:
    return np.asarray((address >= window) & (address < window + WINDOW_BYTES))
