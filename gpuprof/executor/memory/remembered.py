# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is remembered of accesses that come again at the same addresses."""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Generic, TypeVar

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks

T = TypeVar("T")
#: What an instruction remembers, and elements of all operands together.
_TIMES, _ELEMENTS = 128, 1 << 16


def _alike(_: object) -> int:
    return 1


class Kept(Generic[T]):
    """Things by their content: equal ones are one object. All are forgotten if they weigh too much."""

    def __init__(self, limit: int, weigh: Callable[[T], int] = _alike) -> None:
        self._limit, self._weigh, self._weight = limit, weigh, 0
        self._known: dict[object, T] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._known

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
        content = (mask.with_uniform_blocks.key, *((part.tobytes(), part.shape) for part in parts))
        if content not in self._known:
            made, elements = make(), max(1, sum(part.size for part in parts))
            if len(self._known) >= max(2, min(_TIMES, _ELEMENTS // elements)):
                del self._known[next(iter(self._known))]  # the oldest
            self._known[content] = made
        self._last = operands, mask, self._known[content]
        return self._known[content]
