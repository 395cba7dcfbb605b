# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whole runs of float32 arithmetic by machine code: a tape of instructions, played for one warp at a time.

NumPy's cost per call is that of hundreds of lanes. A register-tiled kernel multiplies and adds thousands of
times in a basic block, so the block's arithmetic is written to a tape once, and one call into machine code
plays it. A warp's values are a row of 32 floats; the rows of one warp stay in the CPU's nearest cache.

Results are rounded once, and a NaN that is handed out has the bits that the GPU gives it: between two
instructions of a tape its bits cannot matter.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import Lanes

#: What a tape's instructions do, by number. Some go between rows and the arrays of a call: `LOAD`, `STORE`,
#: and `HAND_ON`, which keeps the bits of a NaN.
LOAD, STORE, HAND_ON = range(3)
OPERATIONS = {name: 3 + i for i, name in enumerate(("mul", "add", "sub", "fma", "fms", "fnma", "fnms"))}
#: Numbers of an instruction: what it does, the row that it writes, and what it reads (3).
ITEM_WORDS = 5
#: What the player notes of an array: the address of its first element, and bytes from one block, one warp and
#: one lane to the next, 0 where it does not change.
ARRAY_BYTES = 32
ROW_BYTES = 4 * WARP
#: Rows begin at a line of the CPU's cache.
LINE_BYTES = 64
_shape_of = attrgetter("shape")


class _Item(NamedTuple):
    """An instruction of a tape: the value that it makes, if any; and those, or numbers, that it takes."""

    operation: int
    made: int | None
    taken: tuple[int, ...]


class Tape(Struct):
    """A run of arithmetic, written instruction by instruction, in which every value is assigned once.

    It makes arrays (`targets`) of others (`sources`).
    """

    sources: int = 0
    targets: int = 0
    _items: list[_Item] = field(default_factory=list)
    #: By value: whether it is given, bit for bit.
    _given: list[bool] = field(default_factory=list)

    def source(self) -> int:
        """Read the next array; return the value's number."""
        self.sources += 1
        value = self._value(given=True)
        self._items.append(_Item(LOAD, value, (self.sources - 1,)))
        return value

    def compute(self, operation: str, operands: Sequence[int]) -> int:
        """Compute a value from others, by a name in `OPERATIONS`; return its number."""
        value = self._value(given=False)
        self._items.append(_Item(OPERATIONS[operation], value, tuple(operands)))
        return value

    def target(self, value: int) -> None:
        """Hand a value out as the next array."""
        self._items.append(_Item(HAND_ON if self._given[value] else STORE, None, (value, self.targets)))
        self.targets += 1

    def _value(self, *, given: bool) -> int:
        self._given.append(given)
        return len(self._given) - 1

    def compiled(self) -> "CompiledTape":
        """Return the tape ready to be played: what its targets depend on, rows used again."""
        items = self._needed()
        last_use: dict[int, int] = {}
        for number, item in enumerate(items):
            last_use.update(dict.fromkeys(_values_taken(item), number))
        row_of: dict[int, int] = {}
        free: list[int] = []
        rows = 0
        words: list[int] = []
        for number, item in enumerate(items):
            taken = _values_taken(item)
            read = [row_of[value] for value in taken]
            free += [row_of[value] for value in dict.fromkeys(taken) if last_use[value] == number]
            if item.made is not None:
                if not free:
                    free.append(rows)
                    rows += 1
                row_of[item.made] = free.pop()
            words += self._words(item, read, 0 if item.made is None else row_of[item.made])
        return CompiledTape(np.array(words, dtype=np.int32).reshape(-1, ITEM_WORDS), rows, self.targets)

    def _words(self, item: _Item, read: list[int], written: int) -> list[int]:
        """Return an instruction as the player reads it; arrays are sources, then targets."""
        if item.operation in (STORE, HAND_ON):
            written = self.sources + item.taken[1]
        elif item.operation == LOAD:
            read = [item.taken[0]]
        return [item.operation, written, *read, *[0] * (ITEM_WORDS - 2 - len(read))]

    def _needed(self) -> list[_Item]:
        used: set[int] = set()
        needed = []
        for item in reversed(self._items):
            if item.made is None or item.made in used:
                used.update(_values_taken(item))
                needed.append(item)
        return needed[::-1]


def _values_taken(item: _Item) -> tuple[int, ...]:
    if item.operation == LOAD:
        return ()
    return item.taken if item.made is not None else item.taken[:1]


class CompiledTape(Struct):
    """A tape ready to be played: `words` of shape (instructions, `ITEM_WORDS`), and rows of 32 values."""

    words: NDArray[np.int32]
    rows: int
    targets: int

    def play(self, machine: Callable[..., None], sources: Sequence[Lanes]) -> list[Lanes]:
        """Compute the targets.

        Sources are float32 arrays of shape (blocks or 1, warps or 1, 32 or 1). Targets have the shape to
        which all of them broadcast.
        """
        blocks, warps, lanes = map(max, zip(*set(map(_shape_of, sources)), strict=True))
        # All that a warp has stands together.
        made = np.empty((blocks, warps, self.targets, lanes), dtype=np.float32)
        arrays: list[Lanes] = [*sources, *made.transpose(2, 0, 1, 3)]
        objects = np.fromiter(map(id, arrays), np.int64, len(arrays))
        room = np.empty(self.rows * ROW_BYTES + len(arrays) * ARRAY_BYTES + LINE_BYTES, dtype=np.uint8)
        tape = id(self.words), len(self.words), id(objects), len(arrays)
        machine(*tape, id(room), self.rows, blocks, warps)
        return arrays[len(sources) :]
