# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Choose a few thread blocks that stand for all: corners, edges and the interior of the grid."""

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """Blocks to run, and how many blocks of the grid each stands for.

    Attributes:
        indices: blockIdx (x, y, z) of each block, shape (n, 3).
        classes: The class of each block, shape (n,): blocks of one class should do the same work.
        class_sizes: Blocks of the grid in each class, by class number.
        total: Blocks of the grid.
    """

    indices: NDArray[np.int64]
    classes: NDArray[np.int64]
    class_sizes: dict[int, int]
    total: int

    @property
    def weights(self) -> NDArray[np.float64]:
        """How many blocks of the grid each block stands for: shape (n,)."""
        sampled = Counter(int(c) for c in self.classes)
        return np.array([self.class_sizes[int(c)] / sampled[int(c)] for c in self.classes])


def every_block(grid: tuple[int, int, int]) -> Sample:
    """Return a sample that is the whole grid, x fastest."""
    x, y, z = grid
    number = np.arange(x * y * z, dtype=np.int64)
    indices = np.stack([number % x, number // x % y, number // (x * y)], axis=1)
    return Sample(indices, np.zeros(len(number), dtype=np.int64), {0: len(number)}, len(number))


def choose_blocks(grid: tuple[int, int, int], max_blocks: int) -> Sample:
    """Choose at most `max_blocks` blocks of a grid, spread over its classes.

    Along each axis a block is first, in between, or last: ragged sizes show in the last ones, and shifted
    accesses in the first. Their combinations are the classes. With few blocks to spend, first and in-between
    are one class, because kernels rarely treat them differently; then the largest classes get a second
    block, which tells whether blocks of one class do agree.

    Raises:
        ValueError: `max_blocks` is less than 1.
    """
    if max_blocks < 1:
        raise ValueError("a sample needs at least one block")
    total = grid[0] * grid[1] * grid[2]
    if total <= max_blocks:
        return every_block(grid)
    for parts in (_thirds, _last_apart, _undivided):
        ranges = [parts(length) for length in grid]
        cells = list(product(*ranges))
        if len(cells) <= max_blocks:
            break
    sizes = {i: _size(cell) for i, cell in enumerate(cells)}
    quota = dict.fromkeys(sizes, 1)
    for _ in range(max_blocks - len(cells)):
        open_cells = [i for i in sizes if quota[i] < sizes[i]]
        quota[max(open_cells, key=lambda i: sizes[i] / quota[i])] += 1
    indices, classes = [], []
    for i, cell in enumerate(cells):
        for block in _spread(cell, quota[i]):
            indices.append(block)
            classes.append(i)
    return Sample(np.array(indices, dtype=np.int64), np.array(classes, dtype=np.int64), sizes, total)


def _thirds(length: int) -> list[range]:
    return [part for part in (range(1), range(1, length - 1), range(max(1, length - 1), length)) if len(part)]


def _last_apart(length: int) -> list[range]:
    return [part for part in (range(length - 1), range(length - 1, length)) if len(part)]


def _undivided(length: int) -> list[range]:
    return [range(length)]


def _size(cell: tuple[range, ...]) -> int:
    return len(cell[0]) * len(cell[1]) * len(cell[2])


def _spread(cell: tuple[range, ...], count: int) -> list[tuple[int, int, int]]:
    """Return `count` different blocks of a cell, evenly spread over its numbering and off its diagonal."""
    size = _size(cell)
    chosen = []
    for i in range(count):
        number = (2 * i + 1) * size // (2 * count)
        x, rest = number % len(cell[0]), number // len(cell[0])
        y, z = rest % len(cell[1]), rest // len(cell[1])
        chosen.append((cell[0][x], cell[1][y], cell[2][z]))
    return chosen
