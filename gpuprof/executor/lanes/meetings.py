# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lanes that meet at a warp operation: who waits for whom, and what those bring who come from elsewhere.

From sm_70 on the lanes of a warp run by themselves. One that comes to `shfl.sync`, `vote.sync` and the like
waits until all lanes that its member mask names have come to an operation of the same name with the same
mask, wherever in the program that stands, or have ended. These exchange values, and nobody else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes

#: Lanes of a warp as bits: shape (blocks or 1, warps or 1, 32, or 1 where all lanes have the same).
LaneBits = NDArray[np.uint32]

_LANE = np.arange(WARP, dtype=np.uint32)
_BIT = (np.uint32(1) << _LANE).astype(np.uint32)


def ballot(lanes: Bools) -> LaneBits:
    """Return each warp's lanes as a bit mask: shape (blocks or 1, warps or 1, 1)."""
    lanes = np.broadcast_to(lanes, (*lanes.shape[:2], WARP))
    return np.asarray(np.where(lanes, _BIT, np.uint32(0)).sum(axis=2, keepdims=True, dtype=np.uint32))


def in_bits(bits: LaneBits, lane: NDArray[np.integer] = _LANE) -> Bools:
    """Return whether a lane, by default each lane itself, is among those that its bits name."""
    return np.asarray((bits >> lane.astype(np.uint32)) & np.uint32(1), dtype=np.bool_)


def groups(lanes: Bools, members: LaneBits) -> LaneBits:
    """Return for each of some lanes the others of them, itself included, that gave the same member mask."""
    if members.shape[2] == 1:
        return ballot(lanes)
    shape = (*np.broadcast_shapes(lanes.shape[:2], members.shape[:2]), WARP)
    here, named = np.broadcast_to(lanes, shape), np.broadcast_to(members, shape)
    same = (named[..., :, None] == named[..., None, :]) & here[..., None, :]
    return np.asarray(np.where(same, _BIT, np.uint32(0)).sum(axis=3, dtype=np.uint32))


def missing(group: LaneBits, members: LaneBits, live: Bools) -> LaneBits:
    """Return the lanes that are waited for: named, not ended, and not in the group."""
    return np.asarray(members & ballot(live) & ~group)


class Meeting(Struct):
    """Lanes from several places of the program that exchange values now.

    Attributes:
        group: For each the lanes that it exchanges with.
        settled: Whether what they do once together is done: the first place that takes part does it.
    """

    lanes: Bools
    group: LaneBits
    values: Sequence[Lanes]
    settled: bool = False


@dataclass(eq=False)
class Arrival(Exception):
    """Lanes have come to a warp operation that others, which they must wait for, have not come to.

    Attributes:
        members: The member mask of each.
        incomplete: Those that must wait.
    """

    operation: str
    line: int
    mask: Mask
    members: LaneBits
    incomplete: Bools
    values: Sequence[Lanes]
