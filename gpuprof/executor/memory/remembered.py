# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is remembered of accesses that come again: at the same addresses, or all moved by one distance."""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Generic, TypeVar

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks

T = TypeVar("T")
#: What an instruction remembers, and elements of all operands together.
_TIMES, _ELEMENTS = 128, 1 << 16


class Kept(Generic[T]):
    """Things by their content: equal ones are one object. All are forgotten if they weigh too much."""

    def __init__(self, limit: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._limit, self._weigh, self._weight = limit, weigh, 0
        self._known: dict[object, T] = {}

    def of(self, key: object, make: Callable[[], T]) -> T:
        """Return what was made under a key, or make it now."""
        if key not in self._known:
            made = make()
            self._weight += self._weigh(made)
            if self._weight > self._limit:
                self._known.clear()
                self._weight = self._weigh(made)
            self._known[key] = made
        return self._known[key]


class Remembered(Generic[T]):
    """What an instruction, or several together, made of its last operands and lanes.

    It is found again by identity, else by content: so many times, or fewer with many elements together.
    """

    def __init__(self) -> None:
        self._last: tuple[Sequence[Lanes], Mask, T] | None = None
        self._known: dict[tuple[object, ...], T] = {}

    def of(self, operands: Sequence[Lanes], mask: Mask, make: Callable[[], T]) -> T:
        """Return what was made of these operands by these lanes, or make it now."""
        last = self._last
        if last is not None and last[1] is mask and all(map(is_, operands, last[0])):
            return last[2]
        parts = [uniform_blocks(operand) for operand in operands]
        content = (mask.with_uniform_blocks().key, *((part.tobytes(), part.shape) for part in parts))
        if content not in self._known:
            made, elements = make(), max(1, sum(part.size for part in parts))
            if len(self._known) >= max(2, min(_TIMES, _ELEMENTS // elements)):
                del self._known[next(iter(self._known))]  # the oldest
            self._known[content] = made
        self._last = operands, mask, self._known[content]
        return self._known[content]


class Moving(Generic[T]):
    """What was found of one instruction's accesses in one batch, by how far they moved from the first ones.

    From one iteration of a loop to the next all addresses mostly move by the same distance. What matters of
    that is where it puts them in a `period` of bytes.
    """

    def __init__(self, period: int) -> None:
        self._period = period
        self._first: tuple[Sequence[Lanes], Sequence[Lanes]] | None = None
        self._mask: Mask
        self._known: dict[tuple[int, ...], tuple[list[int], T]] = {}

    def at(
        self, addresses: Sequence[Lanes], mask: Mask, examine: Callable[[], T], others: Sequence[Lanes] = ()
    ) -> tuple[T, list[int]]:
        """Return what `examine` has found of addresses that lie so, and how far these are from those.

        Where the `others` are not the same as before, nothing is known.
        """
        moved = self._distances(addresses, mask, others)
        if moved is None:
            self._first, self._mask, self._known = (addresses, others), mask, {}
            moved = [0] * len(addresses)
        place = tuple(by % self._period for by in moved)
        if place not in self._known:
            self._known[place] = moved, examine()
        before, found = self._known[place]
        return found, [by - then for by, then in zip(moved, before, strict=True)]

    def _distances(self, addresses: Sequence[Lanes], mask: Mask, others: Sequence[Lanes]) -> list[int] | None:
        """Return by how far addresses have moved; None where they did not all alike."""
        if self._first is None or not mask.equals(self._mask):
            return None
        for given, first in zip(others, self._first[1], strict=True):
            if given is not first and not (given.shape == first.shape and (given == first).all()):
                return None
        moved = []
        for address, first in zip(addresses, self._first[0], strict=True):
            if address.shape != first.shape:
                return None
            by = address[:1, :1, :1] - first[:1, :1, :1]
            if not (first + by == address).all():
                return None
            moved.append(int(by[0, 0, 0]))
        return moved
