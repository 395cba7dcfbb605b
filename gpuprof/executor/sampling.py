# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which thread blocks run: all of a grid, or a few that stand for it: corners, edges and the interior.

The blocks of a cluster run together or not at all: of a launch in clusters, the grid below is that of
clusters, and what is called a block is a whole cluster. A grid may have 2^31 blocks and more, so blocks are
listed batch by batch, never all at once.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

#: Its odd multiples are evenly spread over 32 bits, however many there are: half the golden ratio.
_GOLDEN = 0x4F1BBCDC


class Stratum(Struct, frozen=True):
    """Blocks that should do the same work: a box of the grid, of which some blocks run."""

    axes: tuple[range, range, range]
    chosen: int

    @property
    def size(self) -> int:
        """Blocks of the box."""
        x, y, z = self.axes
        return len(x) * len(y) * len(z)

    @property
    def weight(self) -> float:
        """How many blocks of the grid each block that runs stands for."""
        return self.size / self.chosen

    def indices(self, first: int, last: int) -> NDArray[np.int64]:
        """Return blockIdx of those that run, from number `first` to `last` (exclusive): shape (n, 3)."""
        if self.chosen == self.size:
            number = np.arange(first, last, dtype=np.int64)
        else:
            # One in each of so many equal parts, elsewhere in each: off the diagonal of the box, and of
            # whatever period the grid has. In Python's integers: the product may need more than 64 bits.
            free = self.size - self.chosen
            number = np.array(
                [
                    (i * self.size + (_GOLDEN * (2 * i + 1) % (1 << 32) * free >> 32)) // self.chosen
                    for i in range(first, last)
                ],
                dtype=np.int64,
            )
        x, y, z = self.axes
        inside = number % len(x), number // len(x) % len(y), number // (len(x) * len(y))
        return np.stack([i + axis.start for i, axis in zip(inside, (x, y, z), strict=True)], axis=1)


class BlockList(Struct, frozen=True):
    """Some of the blocks that run.

    `indices` is the blockIdx (x, y, z) of each block, or of the first one of each cluster, shape (n, 3);
    `strata` and `weights` tell of each the number of its stratum and how many blocks of the grid it stands
    for.
    """

    indices: NDArray[np.int64]
    strata: NDArray[np.int64]
    weights: NDArray[np.float64]


class Sample(Struct, frozen=True, dict=True):
    """The blocks of a grid that run, and how many blocks of it each stands for.

    Of a launch in clusters the strata are of these, each of `cluster` blocks along x, y and z.
    """

    strata: tuple[Stratum, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)

    @cached_property
    def count(self) -> int:
        """Blocks that run."""
        return sum(stratum.chosen for stratum in self.strata)

    @cached_property
    def total(self) -> int:
        """Blocks of the grid."""
        return sum(stratum.size for stratum in self.strata)

    def blocks(self, first: int, last: int) -> BlockList:
        """Return the blocks that run from number `first` to `last` (exclusive), stratum by stratum."""
        indices: list[NDArray[np.int64]] = []
        members: list[int] = []
        before = 0
        for stratum in self.strata:
            begin, end = (min(max(edge - before, 0), stratum.chosen) for edge in (first, last))
            indices.append(stratum.indices(begin, end))
            members.append(len(indices[-1]))
            before += stratum.chosen
        weights = [stratum.weight for stratum in self.strata]
        return BlockList(
            np.concatenate(indices) * np.array(self.cluster),
            np.repeat(np.arange(len(members)), members),
            np.repeat(weights, members),
        )

    def of_first_kind(self, each: Sequence[int], whole: float) -> int | None:
        """Return how many of a row of blocks do as much as the first of it, if the rest do as the last.

        None where it is another kind of grid.

        Args:
            each: What each block that ran did, in order.
            whole: What all blocks do together.
        """
        first, last, total = each[0], each[-1], self.total
        ends = (stratum.axes[axis].stop for stratum in self.strata for axis in range(3))
        if max(ends) != total or first == last or not {first, last}.issuperset(each):
            return None
        count = (whole - total * last) / (first - last)
        return int(count) if 0 < count < total and count == int(count) else None

    def divided(self, count: int) -> "Sample":
        """Return a sample of a row of blocks of which so many do one thing, the rest another.

        Those on both sides of where they change run.
        """
        total, strata = self.total, []
        row = max(range(3), key=lambda axis: max(stratum.axes[axis].stop for stratum in self.strata))
        for start, stop in pairwise(sorted({0, count - 1, count, min(count + 1, total), total})):
            axes = [range(1), range(1), range(1)]
            axes[row] = range(start, stop)
            strata.append(Stratum((axes[0], axes[1], axes[2]), min(2, stop - start)))
        return Sample(tuple(strata), self.cluster)

    def in_clusters(
        self, grid: tuple[int, int, int], cluster: tuple[int, int, int], *, as_many: bool = False
    ) -> "Sample":
        """Return a sample of whole clusters: about as many blocks of the grid, or the clusters of these.

        Or `as_many` clusters as it has blocks.
        """
        if self.cluster == cluster:
            return self
        x, y, z = (blocks // size for blocks, size in zip(grid, cluster, strict=True))
        if self.total == grid[0] * grid[1] * grid[2]:
            most = self.count if as_many else max(1, self.count // (cluster[0] * cluster[1] * cluster[2]))
            return Sample(choose_blocks((x, y, z), most).strata, cluster)
        # Blocks that were named one by one.
        chosen = np.unique(self.blocks(0, self.count).indices // np.array(cluster), axis=0).tolist()
        strata = [Stratum((range(i, i + 1), range(j, j + 1), range(k, k + 1)), 1) for i, j, k in chosen]
        return Sample(tuple(strata), cluster)


def every_block(grid: tuple[int, int, int]) -> Sample:
    """Return a sample that is the whole grid, x fastest."""
    x, y, z = grid
    return Sample((Stratum((range(x), range(y), range(z)), x * y * z),))


def choose_blocks(grid: tuple[int, int, int], max_blocks: int) -> Sample:
    """Choose at most `max_blocks` blocks of a grid, spread over its strata.

    Along each axis a block is first, in between, or last: ragged sizes show in the last ones, and shifted
    accesses in the first. Their combinations are the strata. With few blocks to spend, first and in-between
    are one stratum, because kernels rarely treat them differently; then the largest strata get a second
    block, which tells whether blocks of one stratum do agree.
    """
    if max_blocks < 1:
        raise ValueError("a sample needs at least one block")
    if grid[0] * grid[1] * grid[2] <= max_blocks:
        return every_block(grid)
    for ends in ((1, 1), (0, 1), (0, 0)):
        x, y, z = (_parts(length, *ends) for length in grid)
        boxes = list(product(x, y, z))
        if len(boxes) <= max_blocks:
            break
    sizes = [Stratum(box, 1).size for box in boxes]
    chosen = [1] * len(boxes)
    for _ in range(max_blocks - len(boxes)):
        open_boxes = [i for i in range(len(boxes)) if chosen[i] < sizes[i]]
        chosen[max(open_boxes, key=lambda i: sizes[i] / chosen[i])] += 1
    return Sample(tuple(Stratum(box, share) for box, share in zip(boxes, chosen, strict=True)))


def _parts(length: int, first: int, last: int) -> list[range]:
    """Divide an axis: so many blocks at its beginning, in between, and so many at its end."""
    begin = min(first, length)
    end = max(begin, length - last)
    return [part for part in (range(begin), range(begin, end), range(end, length)) if len(part)]
