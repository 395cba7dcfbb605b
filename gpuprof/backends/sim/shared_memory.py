# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The shared memory of a batch of thread blocks, and how its accesses are examined once and reused.

In a kernel's inner loop the same instruction touches the same offsets again and again. A `SharedPattern` is
everything about such an access that does not depend on the data: where the words are, what it costs, who
takes part. Each instruction keeps the few patterns that it used last.
"""

from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.sim.banks import wavefronts
from gpuprof.backends.sim.global_memory import moved_dtype
from gpuprof.backends.sim.lanes import Bools, Counts, Mask
from gpuprof.backends.sim.scalars import Lanes

#: Address elements that one instruction remembers: many small patterns, or a few large ones.
_REMEMBERED_ELEMENTS = 1 << 16
_REMEMBERED_PATTERNS = 128
_serial = count()


class SharedPattern:
    """One access of `size` bytes per lane to given offsets by given lanes.

    Attributes:
        serial: A number that identifies the pattern.
        source: The address operand it was made from; `address` is that plus the instruction's offset.
        mask: The lanes that take part.
        index: Offsets in units of `size`: shape (warps or 1, 32 or 1) when all blocks agree, else with blocks
            first and counting through the whole batch.
        per_block: Whether blocks differ in offsets.
        load: Whether it is a load, which takes fewer wavefronts than a store of some patterns.
        wavefronts: Wavefronts summed over the warps of each block: shape (blocks or 1,).
        conflicts: Wavefronts beyond the ideal, likewise.
    """

    def __init__(
        self, source: Lanes, offset: int, mask: Mask, size: int, block_bytes: int, *, load: bool
    ) -> None:
        self.serial = next(_serial)
        self.source = source
        self.mask = mask
        self.size = size
        self.load = load
        self.address = source.astype(np.int64) + offset
        self.used: Bools | None = None if mask.whole else mask.narrowed_to(self.address.shape)
        self.per_block = self.address.shape[0] > 1
        self.wavefronts, self.conflicts = self._cost()
        safe = self.address if self.used is None else np.where(self.used, self.address, 0)
        index = safe // size
        if self.per_block:
            index = index + (np.arange(len(index)) * (block_bytes // size))[:, None, None]
        self.index: NDArray[np.intp] = index if self.per_block else index[0]

    def _cost(self) -> tuple[Counts, Counts]:
        mask = self.mask
        if self.address.shape[2] == 1 and mask.whole:  # a broadcast in every warp
            lanes = np.zeros((1, 32), dtype=np.int64)
            total, ideal = wavefronts(lanes, np.ones((1, 32), dtype=np.bool_), self.size, load=self.load)
            return mask.warp_count * total[0], mask.warp_count * (total[0] - ideal[0])
        leading = np.broadcast_shapes(self.address.shape[:2], mask.lanes.shape[:2])
        shape = (*leading, 32)
        address = np.broadcast_to(self.address, shape).reshape(-1, 32)
        active = np.broadcast_to(mask.lanes, shape).reshape(-1, 32)
        total, ideal = wavefronts(address, active, self.size, load=self.load)
        return mask.per_block(total.reshape(*leading, 1)), mask.per_block(
            (total - ideal).reshape(*leading, 1)
        )

    @cached_property
    def collides(self) -> bool:
        """Whether two threads of a block take part with the same offset."""
        blocks = max(self.address.shape[0], self.mask.lanes.shape[0])
        shape = (blocks, self.mask.warps, 32)
        address, active = np.broadcast_to(self.address, shape), np.broadcast_to(self.mask.lanes, shape)
        keys = np.arange(blocks)[:, None, None] * (int(address.max()) + 1) + address
        return np.unique(keys[active]).size < int(active.sum())


class PatternCache:
    """The patterns that each instruction of a batch used, by its site number."""

    def __init__(self) -> None:
        self._last: dict[int, SharedPattern] = {}
        self._known: dict[int, dict[tuple[bytes, tuple[int, ...], bytes], SharedPattern]] = {}

    def find(self, site: int, source: Lanes, mask: Mask) -> SharedPattern | None:
        """Return the pattern of this access if it is remembered: by identity, else by content."""
        last = self._last.get(site)
        if last is not None and last.source is source and last.mask is mask:
            return last
        pattern = self._known.get(site, {}).get(_key(source, mask))
        if pattern is not None:
            self._last[site] = pattern
        return pattern

    def add(self, site: int, pattern: SharedPattern) -> None:
        """Remember an access, and forget the oldest one of the same instruction when there are too many."""
        known = self._known.setdefault(site, {})
        room = max(2, min(_REMEMBERED_PATTERNS, _REMEMBERED_ELEMENTS // pattern.source.size))
        if len(known) >= room:
            del known[next(iter(known))]
        known[_key(pattern.source, pattern.mask)] = pattern
        self._last[site] = pattern


def _key(source: Lanes, mask: Mask) -> tuple[bytes, tuple[int, ...], bytes]:
    return source.tobytes(), source.shape, mask.key


class SharedMemory:
    """The bytes of every block's shared memory: shape (blocks, bytes)."""

    def __init__(self, blocks: int, size: int) -> None:
        self.size = size
        self.block_bytes = -(-max(size, 1) // 16) * 16
        # NaN in every float type: what was never written cannot look like a plausible number.
        self.content = np.full((blocks, self.block_bytes), 0xFF, dtype=np.uint8)
        self._views: dict[int, NDArray[np.generic]] = {}

    def view(self, size: int) -> Lanes:
        """Return the content as elements of `size` bytes: shape (blocks, elements)."""
        if size not in self._views:
            self._views[size] = self.content.view(moved_dtype(size))
        return self._views[size]

    def load(self, pattern: SharedPattern) -> Lanes:
        """Return what the lanes read: shape (blocks, warps or 1, 32 or 1)."""
        view = self.view(pattern.size)
        if pattern.per_block:
            return view.reshape(-1).take(pattern.index)
        return view.take(pattern.index, axis=1)

    def store(self, pattern: SharedPattern, values: Lanes) -> None:
        """Write `values`; of lanes that write the same word, the last one wins."""
        view, lanes = self.view(pattern.size), pattern.mask.lanes
        if pattern.mask.whole and not pattern.per_block:
            warps, width = np.broadcast_shapes(pattern.index.shape, values.shape[1:])
            index = np.broadcast_to(pattern.index, (warps, width))
            view[:, index] = np.broadcast_to(values, (len(view), warps, width))
            return
        shape = (len(view), *np.broadcast_shapes(pattern.index.shape[-2:], values.shape[1:], lanes.shape[1:]))
        index = pattern.index
        if not pattern.per_block:
            index = index + (np.arange(len(view)) * view.shape[1])[:, None, None]
        chosen = np.broadcast_to(lanes, shape)
        view.reshape(-1)[np.broadcast_to(index, shape)[chosen]] = np.broadcast_to(values, shape)[chosen]
