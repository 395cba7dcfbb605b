# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The shared memory of a batch of thread blocks, and how its accesses are examined once and reused.

In a kernel's inner loop the same instruction touches the same offsets again and again. A `SharedPattern` is
everything about such an access that does not depend on the data: where the words are, what it costs, who
takes part. Each instruction keeps the few patterns that it used last.
"""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from gpuprof.copy_engine import GRANULE_BYTES
from gpuprof.executor.lanes.block_kinds import Kinds, first_of, kinds_of, numbered, rows_of
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP, Bools, Counts, Mask
from gpuprof.executor.lanes.scalars import Lanes, differ, uniform_blocks
from gpuprof.executor.lanes.tally import Costs
from gpuprof.executor.memory.banks import wavefronts
from gpuprof.executor.memory.global_memory import moved_dtype

_serial = count(1)

#: Changes elements of `content` at `index` for the lanes that are true in the third argument, of shape
#: (blocks, warps, 32); returns what each found there. The last argument: whether it is global memory.
Apply = Callable[[Lanes, NDArray[np.intp], Bools, bool], Lanes]


def next_serial() -> int:
    """Return a number that identifies a pattern; never 0."""
    return next(_serial)


class SharedPattern:
    """One access of `size` bytes per lane to given offsets by given lanes.

    `address` is the operand that it was made from, the `source`, plus the instruction's offset; or in a
    cluster of several blocks the place in their memory that is given for it. `index` counts in units of
    `size`: shape (warps or 1, 32 or 1) when all blocks agree, else, `per_block`, with blocks first and
    through the whole batch. A load takes fewer wavefronts than a store of some patterns.
    """

    def __init__(
        self,
        source: Lanes,
        offset: int,
        mask: Mask,
        size: int,
        block_bytes: int,
        *,
        load: bool,
        place: NDArray[np.int64] | None = None,
    ) -> None:
        self.serial = next_serial()
        self.source = source = uniform_blocks(source)
        self.mask = mask = mask.with_uniform_blocks
        self.size = size
        self.load = load
        self.address = source.astype(np.int64) + offset if place is None else uniform_blocks(place)
        self.used: Bools | None = None if mask.whole else mask.narrowed_to(self.address.shape)
        self.per_block = self.address.shape[0] > 1
        self._block_bytes = block_bytes

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """Where the lanes' elements are; of idle lanes, somewhere."""
        safe = self.address if self.used is None else np.where(self.used, self.address, 0)
        index = safe // self.size
        if not self.per_block:
            return np.asarray(index[0])
        return np.asarray(index + (np.arange(len(index)) * (self._block_bytes // self.size))[:, None, None])

    @cached_property
    def costs(self) -> Costs:
        """Requests, wavefronts, and those beyond the ideal, summed over the warps of each block."""
        mask = self.mask
        leading = np.broadcast_shapes(self.address.shape[:2], mask.lanes.shape[:2])
        shape = (*leading, 32)
        address = np.broadcast_to(self.address, shape).reshape(-1, 32)
        active = np.broadcast_to(mask.lanes, shape).reshape(-1, 32)
        total, ideal = wavefronts(address, active, self.size, load=self.load)
        per_warp = {"wavefronts": total, "bank_conflicts": total - ideal}
        summed = {event: mask.per_block(each.reshape(*leading, 1)) for event, each in per_warp.items()}
        return {"requests": mask.warp_count, **summed}

    @cached_property
    def turns(self) -> Counts:
        """How many lanes of each warp have the address that most of them have, summed over each block."""
        shape = (*np.broadcast_shapes(self.address.shape[:2], self.mask.lanes.shape[:2]), 32)
        active = np.broadcast_to(self.mask.lanes, shape)
        # Idle lanes have one of their own.
        each = np.where(active, np.broadcast_to(self.address, shape), -1 - np.arange(32))
        alike = (each[..., None] == each[..., None, :]).sum(axis=-1, where=active[..., None])
        return self.mask.per_block(alike.max(axis=-1, keepdims=True, initial=0))

    @property
    def leading(self) -> int:
        """Blocks that are told apart: 1 when all do the same."""
        return max(len(self.address), len(self.mask.lanes))

    @cached_property
    def kinds(self) -> Kinds:
        """Which blocks access the same offsets with the same lanes."""
        lanes = self.mask.lanes
        return kinds_of(lanes, np.where(lanes, self.address, -1) if self.per_block else self.address)

    def of_blocks(self, blocks: NDArray[np.intp]) -> "SharedPattern":
        """Return the same access of some blocks, to be judged."""
        if self.leading == 1:
            return self
        result = copy(self)
        result.address, result.mask = rows_of(self.address, blocks), self.mask.of_blocks(blocks)
        return result

    @cached_property
    def collides(self) -> bool:
        """Whether two threads of a block take part with the same offset."""
        each = self.of_blocks(first_of(self.kinds))
        blocks = each.leading
        shape = (blocks, self.mask.warps, 32)
        address, active = np.broadcast_to(each.address, shape), np.broadcast_to(each.mask.lanes, shape)
        keys = np.arange(blocks)[:, None, None] * (int(address.max()) + 1) + address
        return np.unique(keys[active]).size < int(active.sum())


#: Shared memory that the copy engine reads or writes is cut into chunks of so many bytes.
CHUNK_BYTES = GRANULE_BYTES
#: Bits of an address, counted in chunks, that each swizzle replaces by their XOR with the bits 3 above them.
_SWIZZLED_BITS = {0: 0, 32: 1, 64: 3, 128: 7}


class ChunkPattern:
    """Stretches of shared memory that the copy engine moves, cut into chunks of 16 bytes, or pieces of these.

    Of each chunk it is kept which of the lanes that take part asked for it, the `request`, its place within
    that lane's stretch, its block, warp and lane, and the address where it starts. `leading` blocks are told
    apart: 1 when all do the same.
    """

    def __init__(
        self,
        address: Lanes,
        length: Lanes,
        mask: Mask,
        block_bytes: int,
        swizzle_bytes: int = 0,
        row_bytes: int = 0,
    ) -> None:
        self.serial = next_serial()
        self.size = CHUNK_BYTES
        self.mask = mask
        self.leading = max(len(address), len(length), len(mask.lanes))
        shape = (self.leading, mask.warps, WARP)
        block, warp, lane = np.nonzero(np.broadcast_to(mask.lanes, shape))
        first, chunks = (
            np.broadcast_to(value.astype(np.int64), shape)[block, warp, lane] // CHUNK_BYTES
            for value in (address, length)
        )
        self.request = np.repeat(np.arange(len(block)), chunks)
        self.place = np.arange(len(self.request)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
        self.block, self.warp, self.lane = (part[self.request] for part in (block, warp, lane))
        chunk = first[self.request] + self.place
        if row_bytes < swizzle_bytes:
            # Rows that are narrower than the swizzle lie as far apart as it is wide.
            chunk += self.place // (row_bytes // CHUNK_BYTES) * ((swizzle_bytes - row_bytes) // CHUNK_BYTES)
        chunk ^= chunk >> 3 & _SWIZZLED_BITS[swizzle_bytes]
        self.start = chunk * CHUNK_BYTES
        self._set_index(block_bytes)

    @classmethod
    def listed(cls, chunks: NDArray[np.int64], mask: Mask, block_bytes: int) -> "ChunkPattern":
        """Return the pattern of chunks that the first lanes of warps name, each counted once.

        They name numbers, below 0 for none: shape (blocks or 1, warps, chunks).
        """
        nothing = np.zeros((1, 1, 1), dtype=np.int64)
        result = cls(nothing, nothing, mask, block_bytes)
        result.leading = len(chunks)
        row, most = np.arange(chunks[..., 0].size).reshape(*chunks.shape[:2], 1), int(chunks.max()) + 1
        rows, named = np.divmod(np.unique((row * most + chunks)[chunks >= 0]), most)
        result.block, result.warp = np.divmod(rows, chunks.shape[1])
        result.lane = result.request = result.place = np.zeros(len(named), dtype=np.intp)
        result.start = named * CHUNK_BYTES
        result._set_index(block_bytes)
        return result

    @cached_property
    def kinds(self) -> Kinds:
        """Which blocks have the same chunks moved for the same lanes."""
        each = np.stack([self.warp, self.lane, self.start], axis=1)
        parts = np.split(each, np.searchsorted(self.block, np.arange(1, self.leading)))
        return numbered(part.tobytes() for part in parts)

    def of_blocks(self, blocks: NDArray[np.intp]) -> "ChunkPattern":
        """Return the same chunks of some blocks, which are in order, to be judged."""
        if self.leading == 1:
            return self
        result = copy(self)
        result.leading, kept = len(blocks), np.isin(self.block, blocks)
        result.block = np.searchsorted(blocks, self.block[kept])
        result.warp, result.lane, result.start = self.warp[kept], self.lane[kept], self.start[kept]
        return result

    def part(self, lanes: Bools, block_bytes: int) -> "ChunkPattern":
        each = self.told_apart(len(lanes))
        result, kept = copy(each), lanes[each.block if len(lanes) > 1 else 0, each.warp, each.lane]
        result.serial, result.mask = next_serial(), self.mask.of(lanes)
        for name in ("request", "place", "block", "warp", "lane", "start"):
            setattr(result, name, getattr(each, name)[kept])
        result._set_index(block_bytes)
        return result

    def told_apart(self, blocks: int) -> "ChunkPattern":
        """Return the chunks of so many blocks one by one, where all do the same."""
        if self.leading > 1 or blocks == 1:
            return self
        result = copy(self)
        for name in ("request", "place", "warp", "lane", "start"):
            setattr(result, name, np.tile(getattr(self, name), blocks))
        result.leading, result.block = blocks, np.repeat(np.arange(blocks), len(self.start))
        return result

    def pieces(self, wanted: Bools, block_bytes: int) -> "ChunkPattern":
        """Return the pattern of the `wanted` pieces: shape (blocks or 1, chunks, pieces of a chunk)."""
        result = copy(self)
        result.serial = next_serial()
        result.size = CHUNK_BYTES // wanted.shape[2]
        row, chunk, piece = np.nonzero(wanted)
        for name in ("request", "place", "block", "warp", "lane"):
            setattr(result, name, getattr(self, name)[chunk])
        result.start = self.start[chunk] + piece * result.size
        if self.leading == 1:
            result.leading, result.block = len(wanted), row
        result._set_index(block_bytes)
        return result

    def _set_index(self, block_bytes: int) -> None:
        index = self.start // self.size
        self.index = index if self.leading == 1 else index + self.block * (block_bytes // self.size)
        #: Bytes of each block.
        self.bytes_moved = np.bincount(self.block, minlength=self.leading) * self.size


class SharedMemory:
    """The bytes of every block's shared memory: shape (blocks, bytes)."""

    def __init__(self, blocks: int, size: int) -> None:
        self.size = size
        self.block_bytes = max(-(-size // 16), 1) * 16
        # NaN in every float type: what was never written cannot look like a plausible number.
        self.content = np.full((blocks, self.block_bytes), 0xFF, dtype=np.uint8)
        self._views: dict[int, NDArray[np.generic]] = {}

    def view(self, size: int) -> Lanes:
        """Return the content as elements of `size` bytes: shape (blocks, elements)."""
        if size not in self._views:
            self._views[size] = self.content.view(moved_dtype(size))
        return self._views[size]

    def places(self, pattern: SharedPattern | ChunkPattern) -> NDArray[np.intp]:
        """Return where elements are in the content of all blocks, in units of their size.

        Of lanes the shape is (blocks, warps or 1, 32 or 1), of chunks as of `load_chunks`.
        """
        starts = np.arange(len(self.content)) * (self.block_bytes // pattern.size)
        if isinstance(pattern, ChunkPattern):
            return pattern.index[None] if pattern.leading > 1 else pattern.index + starts[:, None]
        return pattern.index if pattern.per_block else np.asarray(pattern.index + starts[:, None, None])

    def load(self, pattern: SharedPattern) -> Lanes:
        """Return what the lanes read: shape (blocks, warps or 1, 32 or 1)."""
        view = self.view(pattern.size)
        if pattern.per_block:
            return view.reshape(-1).take(pattern.index)
        return view.take(pattern.index, axis=1)

    def load_chunks(self, pattern: ChunkPattern) -> Lanes:
        """Return what the copy engine reads: shape (blocks, chunks), or (1, chunks) of all blocks in turn."""
        view = self.view(pattern.size)
        if pattern.leading > 1:
            return view.reshape(-1).take(pattern.index)[None]
        return view.take(pattern.index, axis=1)

    def store_chunks(self, pattern: ChunkPattern, values: Lanes) -> None:
        """Write what the copy engine brings, in the shapes of `load_chunks`."""
        view = self.view(CHUNK_BYTES)
        if pattern.leading > 1:
            view.reshape(-1)[pattern.index] = values[0]
        else:
            view[:, pattern.index] = values

    def store(self, pattern: SharedPattern, values: Lanes) -> None:
        """Write `values`; of lanes that write the same word, the last one wins."""
        view, lanes = self.view(pattern.size), pattern.mask.lanes
        if pattern.mask.whole and not pattern.per_block:
            index = pattern.index
            if index.shape != values.shape[1:]:
                index = np.broadcast_to(index, np.broadcast_shapes(index.shape, values.shape[1:]))
            view[:, index] = values
            return
        shape = (len(view), *np.broadcast_shapes(pattern.index.shape[-2:], values.shape[1:], lanes.shape[1:]))
        index = self.places(pattern)
        chosen = np.broadcast_to(lanes, shape)
        view.reshape(-1)[np.broadcast_to(index, shape)[chosen]] = np.broadcast_to(values, shape)[chosen]

    def update(self, pattern: SharedPattern, apply: Apply) -> Lanes:
        """Let `apply` change the elements of lanes that take part; return (blocks, warps, 32) old."""
        view, index = self.view(pattern.size), self.places(pattern)
        old = np.zeros((len(view), pattern.mask.warps, WARP), dtype=view.dtype)
        lanes = np.broadcast_to(pattern.mask.lanes, old.shape)
        old[lanes] = apply(view.reshape(-1), np.broadcast_to(index, old.shape)[lanes], lanes, False).view(
            old.dtype
        )
        return old


class SharedBlocks:
    """The shared memory of a batch's blocks, one after the other, as if it were one buffer."""

    address = 0
    item_bytes = 4
    name = "shared memory"

    def __init__(self, shared: SharedMemory, layout: ClusterLayout) -> None:
        self._shared = shared
        self._layout = layout
        self.size = shared.content.size

    def index(self, pattern: SharedPattern) -> NDArray[np.intp]:
        """Return where the lanes of a pattern access it, in units of their size."""
        return self._shared.places(pattern)

    def view(self, size: int) -> NDArray[np.generic]:
        """Return the content as elements of `size` bytes."""
        return self._shared.content.reshape(-1).view(moved_dtype(size))

    def place(self, byte: int) -> tuple[str, int]:
        """Return what a message calls a byte, and its address."""
        return self._layout.byte(byte % self._shared.block_bytes)


#: How far apart what a compiler calls one value may be, where lanes have it from sums in other orders; and
#: from where on bits are taken for a number's.
_ROUNDING, _LEAST_NUMBER = 2.0**-14, 2.0**-60


def overwritten(pattern: SharedPattern, values: Lanes) -> Bools:
    """Return the lanes in whose place another one stores last, in one instruction, and another value.

    Values that differ by rounding alone are one: which of them stays is as open as the order of a sum.
    """
    lanes = pattern.mask.lanes
    shape = np.broadcast_shapes(pattern.address.shape, values.shape, lanes.shape)
    chosen = np.broadcast_to(lanes, shape)
    block = np.nonzero(chosen)[0]
    place = block << 32 | np.broadcast_to(pattern.address, shape)[chosen]
    stored = np.broadcast_to(values, shape)[chosen]
    _, which = np.unique(place, return_inverse=True)
    last = np.zeros(len(place), dtype=np.intp)
    last[which] = np.arange(len(place))
    result = np.zeros(shape, dtype=np.bool_)
    kept = stored[last[which]]
    if (lost := differ(kept, stored)).any():
        result[chosen] = lost & ~_rounded(kept, stored)
    return result


def _rounded(one: Lanes, other: Lanes) -> Bools:
    """Return where two values are floats that differ by rounding alone, or vectors of such."""
    found = np.zeros(len(one), np.bool_)
    for kind in ("f4", "f8"):
        if one.itemsize >= np.dtype(kind).itemsize:
            pair = np.stack([one, other]).view(kind).reshape(2, len(one), -1)
            with np.errstate(invalid="ignore", over="ignore"):
                a, b = pair.astype(np.float64)
                near = (abs(a - b) <= _ROUNDING * abs(a)) & (abs(a) >= _LEAST_NUMBER)
            found |= (near | (a == b)).all(axis=1)
    return found
