# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The chunks that the copy engine moves, thread by thread: all of a request's, and those of some threads."""

import numpy as np
from each import each

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.shared_memory import ChunkPattern

BLOCK_BYTES = 4096
#: A swizzle of so many bytes exchanges the chunks of a row by these bits of the row's number.
SWIZZLES = {0: 0, 32: 1, 64: 3, 128: 7}


def draw(rng, blocks, warps):
    """Addresses and lengths of some threads' requests, of any shape that stands for the batch."""

    def shape():
        return tuple(int(rng.choice([1, n])) for n in (blocks, warps, 32))

    lanes = rng.random((int(rng.choice([1, blocks])), warps, 32)) < 0.05
    lanes[0, 0, 3] = True
    return 16 * rng.integers(0, 200, shape()), 16 * rng.integers(0, 9, shape()), lanes


def moved(address, length, lanes, swizzle, blocks, warps):
    """(block, warp, lane, byte) of every chunk, in order."""
    shape = (blocks, warps, 32)
    address, length, lanes = (np.broadcast_to(part, shape) for part in (address, length, lanes))
    found = []
    for place in map(tuple, np.argwhere(lanes)):
        first = address[place] // 16
        for chunk in range(first, first + length[place] // 16):
            row = chunk >> 3
            found.append((*map(int, place), 16 * int(chunk ^ row & SWIZZLES[swizzle])))
    return found


def listed(pattern, blocks):
    """What a pattern says, in the same form; where all blocks do the same it says it once."""
    each = range(blocks) if pattern.leading == 1 else (None,)
    return [
        (int(block) if copy is None else copy, int(warp), int(lane), int(start))
        for copy in each
        for block, warp, lane, start in zip(
            pattern.block, pattern.warp, pattern.lane, pattern.start, strict=True
        )
    ]


@each(swizzle=SWIZZLES, seed=range(15))
def test_chunks_are_those_of_each_threads_stretch(seed, swizzle):
    rng = np.random.default_rng(seed)
    blocks, warps = (int(n) for n in rng.integers(1, 4, 2))
    address, length, lanes = draw(rng, blocks, warps)
    pattern = ChunkPattern(address, length, Mask(lanes, blocks, warps), BLOCK_BYTES, swizzle)
    expected = moved(address, length, lanes, swizzle, blocks, warps)
    assert listed(pattern, blocks) == expected
    assert np.broadcast_to(pattern.bytes_moved, blocks).tolist() == [
        16 * sum(one[0] == block for one in expected) for block in range(blocks)
    ]
    if pattern.leading > 1:
        assert pattern.index.tolist() == [one[0] * BLOCK_BYTES // 16 + one[3] // 16 for one in expected]
    else:
        assert pattern.index.tolist() == [one[3] // 16 for one in expected if one[0] == 0]


@each(seed=range(30))
def test_part_of_a_pattern_is_that_of_its_threads(seed):
    rng = np.random.default_rng(seed)
    blocks, warps = (int(n) for n in rng.integers(1, 4, 2))
    address, length, lanes = draw(rng, blocks, warps)
    pattern = ChunkPattern(address, length, Mask(lanes, blocks, warps), BLOCK_BYTES)
    kept = lanes & (rng.random((int(rng.choice([1, blocks])), warps, 32)) < 0.5)
    part = pattern.part(kept, BLOCK_BYTES)
    assert part.serial != pattern.serial
    assert listed(part, blocks) == moved(address, length, kept, 0, blocks, warps)
    whole = np.broadcast_to(pattern.bytes_moved, blocks) - np.broadcast_to(part.bytes_moved, blocks)
    others = pattern.part(lanes & ~kept, BLOCK_BYTES)
    assert whole.tolist() == np.broadcast_to(others.bytes_moved, blocks).tolist()
