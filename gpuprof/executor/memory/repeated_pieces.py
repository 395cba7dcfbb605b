# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Judge a piece of the log of shared-memory accesses once, however often it comes again.

What a piece does follows from the state that it starts from, and in a loop those states come again too. So
states are numbered, by all that can matter later, and a piece that is known from the state at hand leads
straight to the next one. Pieces end at barriers; but a kernel whose threads are ordered by mbarriers may
never pass one of its whole block, so that they also end after a number of accesses.
"""

import copy
from typing import Generic, Protocol, Self, TypeVar

from gpuprof.executor.memory.accesses import Access, Entry

#: Entries that make a piece, once a wait follows them, and without one.
PIECE_ENTRIES = 64
LONGEST_PIECE = 1024
#: Bytes of states that are kept.
_KEPT_BYTES = 128 << 20
#: So many pieces in vain, and none more is looked up.
_PATIENCE = 96

#: The accesses of a piece, by what they are and their pattern.
Piece = tuple[tuple[Access, int], ...]


class State(Protocol):
    """What a piece of the log changes."""

    values_matter: bool

    def normalise(self) -> tuple[bytes, int]:
        """Bring into a form that is the same for states with the same future; return its digest and bytes."""

    def copied(self) -> Self:
        """Return a state of its own that is the same."""

    def replay(self, log: list[Entry], blocks: int) -> None:
        """Go through accesses in order and report the first that is wrong."""

    def settle(self) -> None:
        """All passed a barrier."""


S = TypeVar("S", bound=State)
T = TypeVar("T")


def ends_piece(log: list[Entry]) -> bool:
    """Tell whether the log is long enough, and at a place that a loop comes by once in each of its rounds."""
    length = len(log)
    return length >= LONGEST_PIECE or (length >= PIECE_ENTRIES and log[-1].access is Access.ACQUIRE)


class RepeatedPieces(Generic[S]):
    """The states that a batch of blocks went through, and what led from one to the next."""

    def __init__(self) -> None:
        self._states: list[S] = []
        self._numbers: dict[bytes, int] = {}
        self._known: dict[tuple[int, bool, Piece], int] = {}
        self._bytes = 0
        self._vain = 0

    @property
    def hopeless(self) -> bool:
        """Whether nothing seems to come again."""
        return self._vain >= _PATIENCE

    def number(self, state: S) -> int:
        """Return the number of a state, which now belongs to this memory."""
        digest, size = state.normalise()
        number = self._numbers.get(digest)
        if number is None:
            if self._bytes > _KEPT_BYTES:  # start anew: no number is valid any more
                self._states, self._numbers, self._known, self._bytes = [], {}, {}, 0
            number = len(self._states)
            self._states.append(state)
            self._numbers[digest] = number
            self._bytes += size
        return number

    def state(self, number: int) -> S:
        """Return a copy of a state, to be changed."""
        return self._states[number].copied()

    def after(self, number: int, log: list[Entry], blocks: int, *, barrier: bool) -> int:
        """Return the number of the state to which a piece, perhaps ended by a barrier, leads from one."""
        key = number, barrier, tuple((entry.access, entry.pattern.serial) for entry in log)
        known = self._known.get(key)
        if known is not None:
            self._vain = max(0, self._vain - 1)
            return known
        self._vain += not barrier
        state = self.state(number)
        state.values_matter = False
        state.replay(log, blocks)
        if barrier:
            state.settle()
        states = self._states
        reached = self.number(state)
        if states is self._states and not state.values_matter:
            self._known[key] = reached
        return reached


def copied_state(state: T) -> T:
    """Return an object with copies of the arrays and tables of another one."""
    result = copy.copy(state)
    for name, value in vars(state).items():
        if hasattr(value, "copy"):
            setattr(result, name, value.copy())
    return result
