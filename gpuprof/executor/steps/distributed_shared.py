# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Addresses of shared memory in a cluster of several blocks, and what goes wrong with them.

An address holds the rank of its block above the offset there. Instructions for a block's own memory
(`.shared::cta`) take addresses of their own block alone; those for the cluster's (`.shared::cluster`), and
generic ones, take all.
"""

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.memory.remote_accesses import RemoteAccess
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.memory.windows import RANK_SHIFT
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch

_OFFSET = (1 << RANK_SHIFT) - 1


def names_cluster(item: Instruction) -> bool:
    """Tell whether an instruction says `.shared::cluster`."""
    return ("shared", "cluster") in zip(item.opcode, item.opcode[1:], strict=False)


def in_block(address: NDArray[np.integer], rank: int) -> NDArray[np.int64]:
    """Return addresses of shared memory as they are in the block of a rank."""
    return np.asarray((address.astype(np.int64) & _OFFSET) | (rank << RANK_SHIFT))


def places_in_cluster(
    batch: Batch,
    line: int,
    start: NDArray[np.int64],
    size: NDArray[np.int64] | int,
    mask: Mask,
    *,
    reaches: bool,
    checked: bool = True,
) -> NDArray[np.int64]:
    """Return where addresses of shared memory lie among the memory of a cluster's blocks.

    Args:
        batch: Whose memory.
        line: Source line.
        start: Addresses, counted from where the kernel's own shared memory starts in each block: shape
            (clusters or 1, warps or 1, 32 or 1).
        size: Bytes that lanes access there.
        mask: The lanes.
        reaches: Whether they may access other blocks' memory.
        checked: Whether the whole access must lie inside the memory of a block.
    """
    layout = batch.layout
    address = start + layout.shared_start
    rank, offset = address >> RANK_SHIFT, (address & _OFFSET) - layout.shared_start
    _require_rank(batch, line, (address < 0) | (rank >= layout.blocks), mask, address, rank, "its cluster")
    if not reaches:
        _require_rank(batch, line, rank != layout.rank_of_warp, mask, address, rank, "its own block")
    past = (offset < 0) | (offset + size > layout.shared_bytes)
    if checked and (wrong := past & mask.lanes).any():
        _outside(batch, line, wrong, offset, rank, size)
    place = rank * layout.stride + offset
    return place if mask.whole else np.where(mask.narrowed_to(place.shape), place, 0)


def _require_rank(
    batch: Batch,
    line: int,
    outside: Bools,
    mask: Mask,
    address: NDArray[np.int64],
    rank: NDArray[np.int64],
    where: str,
) -> None:
    """Report the first lane whose address is of a block that it must not access."""
    wrong = outside & mask.lanes
    if wrong.any():
        position = first_true(wrong)
        value, of = (int(np.broadcast_to(part, wrong.shape)[position]) for part in (address, rank))
        text = f"accesses shared memory of {where} at {value:#x}, which is an address of rank {of}"
        if of >= batch.layout.blocks:
            text += f"; the cluster has {batch.layout.blocks} blocks"
        batch.fault(FaultKind.OUT_OF_BOUNDS, text, line, position, value)


def _outside(
    batch: Batch,
    line: int,
    wrong: Bools,
    offset: NDArray[np.int64],
    rank: NDArray[np.int64],
    size: NDArray[np.int64] | int,
) -> NoReturn:
    position = first_true(wrong)
    first, of, count = (
        int(np.broadcast_to(value, wrong.shape)[position]) for value in (offset, rank, np.asarray(size))
    )
    text = f"accesses {count} bytes at byte {first} of the shared memory of rank {of}, which has"
    text += f" {batch.layout.shared_bytes} bytes"
    batch.fault(FaultKind.OUT_OF_BOUNDS, text, line, position, first)


def note_remote(batch: Batch, pattern: SharedPattern, line: int) -> None:
    """Note whose memory an access touches; the memory of a block that has ended is a fault."""
    assert batch.remote is not None
    refuse_ended(batch, batch.remote.touch(pattern, line))


def refuse_ended(batch: Batch, access: RemoteAccess | None) -> None:
    """Report an access to the shared memory of a block that has ended, or that may have."""
    if access is None:
        return
    batch.races.barrier()  # what went wrong before comes first
    cluster, *_ = access.position
    _, block = batch.names((cluster, access.rank * batch.layout.warps, 0))
    text = f"accesses shared memory of block {block}, which ends without waiting for that: a barrier of the"
    text += " cluster is missing"
    batch.fault(FaultKind.OUT_OF_BOUNDS, text, access.line, access.position)
