# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which lanes of a batch run an instruction, and how many warps and threads that is per block."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.block_kinds import rows_of
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks

#: Lanes of a warp.
WARP = 32
#: Lanes of the masks of a batch that are kept, with what is known of them.
_KNOWN_LANES = 1 << 21

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]


class Mask:
    """A set of lanes of a batch of (blocks, warps, 32) lanes.

    An axis of `lanes` is 1 where membership is uniform.
    """

    def __init__(
        self, lanes: Bools, blocks: int, warps: int, known: "dict[bytes, Mask] | None" = None
    ) -> None:
        self.lanes = lanes
        self.blocks = blocks
        self.warps = warps
        self._narrowed: dict[tuple[int, ...], Bools] = {}
        self._of_warps: dict[tuple[tuple[str, int], ...], dict[str, Counts]] = {}
        #: Those of the batch, so that what is known of one is known when it comes again.
        self.known = {} if known is None else known

    def of(self, lanes: Bools) -> "Mask":
        """Return a mask of the same batch: the same object for the same lanes, as long as few differ."""
        known, key = self.known, _key_of(lanes)
        if key == self.key:
            return self
        if key not in known:
            if len(known) * lanes.size > _KNOWN_LANES:
                known.clear()
            known[key] = Mask(lanes, self.blocks, self.warps, known)
        return known[key]

    def of_blocks(self, blocks: NDArray[np.intp]) -> "Mask":
        """Return the lanes of some blocks, as a batch of these."""
        return Mask(rows_of(self.lanes, blocks), len(blocks), self.warps)

    @cached_property
    def with_uniform_blocks(self) -> "Mask":
        """The same set, as that of one block if all blocks have the same lanes."""
        return self.of(uniform_blocks(self.lanes))

    @cached_property
    def whole(self) -> bool:
        """True when every lane is in the set."""
        return bool(self.lanes.all())

    @cached_property
    def key(self) -> bytes:
        """The set as bytes, the same for equal masks."""
        return _key_of(self.lanes)

    @cached_property
    def empty(self) -> bool:
        """True when no lane is in the set."""
        return not self.lanes.any()

    @cached_property
    def active_warps(self) -> Bools:
        """Warps with at least one lane in the set: shape (blocks or 1, warps or 1, 1)."""
        return np.asarray(self.lanes.any(axis=2, keepdims=True))

    @cached_property
    def whole_warps(self) -> Bools | None:
        """Warps in the set: shape (blocks or 1, warps or 1, 1); None if it has a part of a warp's lanes."""
        if self.lanes.shape[2] > 1 and not (self.lanes == self.lanes[..., :1]).all():
            return None
        return self.lanes[..., :1]

    @cached_property
    def warp_count(self) -> Counts:
        """Warps with at least one lane in the set, in each block: shape (blocks or 1,)."""
        return self.per_block(self.active_warps.astype(np.int64))

    @cached_property
    def thread_count(self) -> Counts:
        """Lanes in the set, in each block: shape (blocks or 1,)."""
        lanes = self.lanes.sum(axis=2, keepdims=True, dtype=np.int64)
        return self.per_block(lanes * (32 // self.lanes.shape[2]))

    @cached_property
    def total_threads(self) -> int:
        """Lanes in the set, over all blocks."""
        count = self.thread_count
        return int(count.sum()) * (self.blocks // len(count))

    def of_warps(self, each: Mapping[str, int]) -> dict[str, Counts]:
        """Return how much of several things there is in each block if each warp has so much: one object."""
        key = tuple(each.items())
        if key not in self._of_warps:
            self._of_warps[key] = {name: self.warp_count * count for name, count in key}
        return self._of_warps[key]

    def per_block(self, per_warp: NDArray[Any]) -> Counts:
        """Sum a figure of shape (blocks or 1, warps or 1, 1) over the warps of each block."""
        scale = self.warps // per_warp.shape[1]
        return np.asarray(per_warp.sum(axis=(1, 2), dtype=np.int64) * scale)

    def narrowed_to(self, shape: tuple[int, ...]) -> Bools:
        """Return for each element of an operand of `shape` whether any lane in the set uses it."""
        if shape not in self._narrowed:
            self._narrowed[shape] = np.broadcast_to(narrowed(self.lanes, shape), shape)
        return self._narrowed[shape]

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], ...]:
        """The blocks, warps and lanes of the set's members, in order."""
        return np.broadcast_to(self.lanes, (self.blocks, self.warps, WARP)).nonzero()

    @cached_property
    def _alone(self) -> bool:
        """Whether no two members are of one warp."""
        return np.array_equal(self.thread_count, self.warp_count)

    @cached_property
    def _leaders(self) -> tuple[NDArray[np.intp], ...]:
        """The place of each warp's first member; of a warp without one that of another."""
        shape = self.blocks, self.warps
        active = np.broadcast_to(self.active_warps[..., 0], shape)
        warps = np.arange(self.blocks * self.warps).reshape(shape)
        first = warps[:, 0] + active.argmax(axis=1)
        of_block = np.where(active.any(axis=1), first, active.argmax())
        block, warp = np.divmod(np.where(active, warps, of_block[:, None]), self.warps)
        return block, warp, np.broadcast_to(self.lanes, (*shape, WARP)).argmax(axis=2)[block, warp]

    def joined(self, value: Lanes) -> Lanes:
        """Return an operand with one element for each warp, block, or for all, whose members hold the same.

        A thread of a warp that acts alone has as little to look at as that.
        """
        if value.shape[1:] == (1, 1) or self.whole:
            return value
        each = value[_along(value, self._leaders)][..., None]
        if not self._alone and np.count_nonzero((value != each) & self.lanes):
            return value
        return uniform_blocks(each if np.count_nonzero(each != each[:, :1]) else each[:, :1])

    def held(self, value: Lanes) -> NDArray[Any]:
        """Return what each member holds: shape (members,)."""
        held = value[_along(value, self.places)]
        return held if held.ndim else np.full(len(self.places[0]), held)

    def divided(self, value: Lanes) -> "list[tuple[int, Mask]]":
        """Divide the members by the number that they hold, in order: usually all hold the same."""
        if value.size == 1:
            return [(int(value.flat[0]), self)]
        shape = np.broadcast_shapes(value.shape, self.lanes.shape)
        spread, lanes = np.broadcast_to(value, shape), np.broadcast_to(self.lanes, shape)
        different = np.unique(spread[lanes]).tolist()
        if len(different) == 1:
            return [(different[0], self)]
        return [(number, self.of(lanes & (spread == number))) for number in different]

    def first(self) -> tuple[int, int, int]:
        """Return (block, warp, lane) of the first lane in the set."""
        return first_true(self.lanes)


def _along(value: Lanes, places: tuple[NDArray[np.intp], ...]) -> tuple[Any, ...]:
    """Return how to index an operand, which has an axis of 1 where it is uniform, by places in the batch."""
    return tuple(at if extent > 1 else 0 for at, extent in zip(places, value.shape, strict=True))


def _key_of(lanes: Bools) -> bytes:
    return b"%d,%d,%d:" % lanes.shape + np.packbits(lanes).tobytes()


def first_true(where: Bools) -> tuple[int, int, int]:
    """Return the first position that is true; an axis of size 1 stands for all, and gives index 0."""
    block, warp, lane = np.argwhere(where)[0]
    return int(block), int(warp), int(lane)


def narrowed(lanes: Bools, shape: tuple[int, ...]) -> Bools:
    """Return lanes, or warps, joined along the axes along which an operand of `shape` is the same for all."""
    for axis, size in enumerate(shape):
        if size == 1 and lanes.shape[axis] > 1:
            lanes = np.asarray(lanes.any(axis=axis, keepdims=True))
    return lanes
