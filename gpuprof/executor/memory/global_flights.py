# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What copies in flight still read of global memory, and still write: nobody may touch that meanwhile.

Threads of the copy's own block are ordered with the one that started it, though not with the copy. Other
blocks meet it without any order, which the search for races finds too.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.memory.shared_memory import ChunkPattern

Addresses = NDArray[np.int64]


class Places(Protocol):
    """Where a copy reads or writes."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The first byte of all, and the first after them."""

    def first_in(self, start: Addresses, size: int, waiting: Bools) -> tuple[int, int, int, int] | None:
        """Return the number of the first of some places of `size` bytes that waiting lanes touch.

        Returns:
            With it the (block, warp, lane) that does; None where none does.
        """


@dataclass(frozen=True, eq=False)
class BulkPlaces:
    """Pieces of global memory that a bulk copy moves: of each chunk one, or several in one more dimension.

    Attributes:
        pattern: The chunks in shared memory.
        start: Their addresses: shape (blocks or 1, chunks, …).
        size: Bytes of a piece.
        inside: Which of them there are; None for all.
    """

    pattern: ChunkPattern
    start: Addresses
    size: int
    inside: Bools | None = None

    @cached_property
    def _pieces(self) -> tuple[Addresses, NDArray[np.intp]]:
        """The addresses in order, and of each the block, warp and lane that asked for it."""
        inside = np.ones(self.start.shape, dtype=np.bool_) if self.inside is None else self.inside
        row, chunk, *_ = np.nonzero(inside)
        pattern = self.pattern
        block = row if pattern.leading == 1 else pattern.block[chunk]
        who = np.stack([block, pattern.warp[chunk], pattern.lane[chunk]])
        start = self.start[inside]
        order = np.argsort(start, kind="stable")
        return start[order], who[:, order]

    def accesses(self, blocks: int) -> tuple[Addresses, int, NDArray[np.intp]]:
        """Return the address of each access, its bytes, and its (block, warp, lane), one a row.

        Args:
            blocks: Of the batch: where all have the same places, each makes its own accesses.
        """
        start, who = self._pieces
        if self.pattern.leading == 1 and len(self.start) == 1 and blocks > 1:
            start, who = np.tile(start, blocks), np.tile(who, blocks)
            who[0] = np.repeat(np.arange(blocks), start.size // blocks)
        return start, self.size, who.T

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """As of `Places`."""
        start, _ = self._pieces
        return (int(start[0]), int(start[-1]) + self.size) if start.size else (0, 0)

    def first_in(self, start: Addresses, size: int, waiting: Bools) -> tuple[int, int, int, int] | None:
        """As of `Places`."""
        own, who = self._pieces
        waits = np.broadcast_to(waiting, (max(len(waiting), int(who[0].max()) + 1), *waiting.shape[1:]))
        held = waits[tuple(who)]
        own, who = own[held], who[:, held]
        before = np.searchsorted(own, start + size) - 1
        hit = np.flatnonzero((before >= 0) & (own[before] + self.size > start)) if own.size else before[:0]
        if not hit.size:
            return None
        block, warp, lane = who[:, before[hit[0]]].tolist()
        return int(hit[0]), block, warp, lane


@dataclass(eq=False)
class Flight:
    """One copy in flight.

    `waiting` are the lanes whose copies are in flight: shape (blocks or 1, warps, 32).
    """

    places: Places
    line: int
    waiting: Bools
    writes: bool = False


class GlobalFlights:
    """The copies in flight of one batch."""

    def __init__(self) -> None:
        self._flying: list[Flight] = []
        #: Whether any of them writes.
        self.writing = False

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._flying)

    def add(self, flight: Flight) -> Flight:
        """Follow a copy; return it."""
        self._flying.append(flight)
        self.writing |= flight.writes
        return flight

    def settle(self) -> None:
        """Forget those that no lane waits for any more."""
        self._flying = [flight for flight in self._flying if flight.waiting.any()]
        self.writing = any(flight.writes for flight in self._flying)

    def met(
        self, start: Addresses, size: int, blocks: NDArray[np.intp], *, writes: bool
    ) -> tuple[int, Flight, tuple[int, int, int]] | None:
        """Return the first access that meets a copy in flight, one of the two a write.

        Returns its number, the copy, and (block, warp, lane) of the copy's.
        """
        for flight in self._flying:
            low, high = flight.places.bounds if writes or flight.writes else (0, 0)
            if low < int(start.max()) + size and int(start.min()) < high:
                hit = flight.places.first_in(start, size, flight.waiting)
                # Stores of other blocks may meet where they store the same.
                if hit is not None and (not flight.writes or hit[1] == blocks[hit[0]]):
                    return hit[0], flight, hit[1:]
        return None
