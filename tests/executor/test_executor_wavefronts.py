# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of wavefronts and of coalescing, against an H200's counts, and lane by lane.

`python benchmarks/warp_patterns.py --only atomic` asks the card for the patterns of atomics; their `lanes`
are the byte of each lane, negative where it takes no part.
"""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from each import each

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.banks import wavefronts
from gpuprof.executor.memory.coalescing import Footprints, atomic_sectors, footprint

PATTERNS = json.loads((Path(__file__).parent / "hardware" / "shared_wavefronts.json").read_text())["patterns"]


def distinct_words_of_the_busiest_bank(address, active, size):
    """32 banks, successive 32-bit words in successive ones (CUDA Programming Guide); lanes served at once."""
    words = {int(a) // 4 + i for a in address[active] for i in range(max(1, size // 4))}
    return max(sum(word % 32 == bank for word in words) for bank in range(32))


@pytest.mark.parametrize("kind", ["ld", "st"])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_every_shared_pattern_takes_the_hardwares_wavefronts(kind, size):
    rows = [row for row in PATTERNS if row[:2] == [kind, size]]
    assert len(rows) >= 80
    offsets = np.array([row[2] for row in rows], dtype=np.int64) * size
    active = (np.array([row[3] for row in rows])[:, None] >> np.arange(32) & 1).astype(bool)
    total, ideal = wavefronts(offsets, active, size, load=kind == "ld")
    np.testing.assert_array_equal(total, [row[4] for row in rows])
    np.testing.assert_array_equal(total - ideal, [row[5] for row in rows])


@pytest.mark.parametrize(("size", "groups"), [(8, 2), (16, 4)])
def test_wide_stores_are_served_in_halves_and_quarters(size, groups):
    rng = np.random.default_rng(size)
    offsets = rng.integers(256, size=(200, 32)) // rng.integers(1, 40, size=(200, 1)) * size
    active = rng.random((200, 32)) < rng.random((200, 1)) * 1.2
    total, ideal = wavefronts(offsets, active, size, load=False)
    for row, (address, lanes) in enumerate(zip(offsets, active, strict=True)):
        parts = list(zip(address.reshape(groups, -1), lanes.reshape(groups, -1), strict=True))
        assert total[row] == sum(distinct_words_of_the_busiest_bank(*part, size) for part in parts)
        assert ideal[row] == sum(lane.any() for _, lane in parts)


BASE = 0x7F00_0000_0000
SIZES = (1, 2, 4, 8, 16)


def draw_addresses(rng: np.random.Generator, blocks: int, warps: int, size: int) -> np.ndarray:
    """Aligned addresses, of any shape that stands for (blocks, warps, 32): shifted patterns, or none."""
    shape = tuple(int(rng.choice([1, n])) for n in (blocks, warps, 32))
    if rng.random() < 0.3:
        index = rng.integers(200, size=shape)
    else:
        pattern = rng.integers(40) + np.arange(32) * rng.integers(-3, 9)
        if rng.random() < 0.3:
            pattern = rng.integers(64, size=32)
        shifts = rng.integers(64, size=(*shape[:2], 1))
        index = (shifts + pattern[: shape[2]]) if rng.random() < 0.7 else shifts + 0 * pattern[: shape[2]]
    return BASE + index * size


def draw_lanes(rng: np.random.Generator, blocks: int, warps: int) -> np.ndarray:
    """At least one lane, of any shape that stands for (blocks, warps, 32)."""
    shape = tuple(int(rng.choice([1, n])) for n in (blocks, warps, 32))
    lanes = rng.random(shape) < rng.choice([0.05, 0.5, 0.95, 1.1])
    lanes[..., -1] |= not lanes.any()
    return lanes


def by_lane(address: np.ndarray, lanes: np.ndarray, blocks: int, warps: int) -> tuple[np.ndarray, np.ndarray]:
    """Addresses and activity of each lane of the batch."""
    shape = (blocks, warps, 32)
    return np.broadcast_to(address, shape), np.broadcast_to(lanes, shape)


@each(seed=range(150))
def test_sectors_and_bytes_are_those_of_each_warps_distinct_addresses(seed):
    rng = np.random.default_rng(seed)
    blocks, warps, size = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.choice(SIZES))
    offset = int(rng.integers(-4, 5)) * size
    address, lanes = draw_addresses(rng, blocks, warps, size), draw_lanes(rng, blocks, warps)
    found = footprint(address, offset, Mask(lanes, blocks, warps), size)

    every, active = by_lane(address + offset, lanes, blocks, warps)
    touched = [[set(every[b, w][active[b, w]].tolist()) for w in range(warps)] for b in range(blocks)]
    sectors = [sum(len({first // 32 for first in warp}) for warp in block) for block in touched]
    useful = [size * sum(len(warp) for warp in block) for block in touched]
    assert np.broadcast_to(found.sectors, blocks).tolist() == sectors
    assert np.broadcast_to(found.useful_bytes, blocks).tolist() == useful
    assert (found.low, found.high) == (every[active].min(), every[active].max() + size)
    assert found.aligned


@each(seed=range(100))
def test_what_moves_costs_what_it_would_cost_if_it_were_examined(seed):
    """Addresses that all move alike, that do not, and other lanes: in turn, and all at one instruction."""
    rng = np.random.default_rng(seed)
    blocks, warps, size = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.choice(SIZES))
    offset, moving = int(rng.integers(-4, 5)) * size, Footprints()
    address, lanes = draw_addresses(rng, blocks, warps, size), draw_lanes(rng, blocks, warps)
    for _ in range(30):
        if rng.random() < 0.1:
            address = draw_addresses(rng, blocks, warps, size)
        elif rng.random() < 0.1:
            address = address + size * (rng.random(address.shape) < 0.1)
        elif rng.random() < 0.1:
            lanes = draw_lanes(rng, blocks, warps)
        else:
            address = address + int(rng.integers(-50, 50)) * int(rng.choice([1, size, 32]))
        mask = Mask(lanes.copy(), blocks, warps)
        found, wanted = (
            moving.of(address, offset, mask, size),
            footprint(address, offset, mask, size),
        )
        for figure in ("sectors", "useful_bytes"):
            counts = (np.broadcast_to(getattr(one, figure), blocks).tolist() for one in (found, wanted))
            assert next(counts) == next(counts)
        assert (found.low, found.high, found.aligned) == (wanted.low, wanted.high, wanted.aligned)


RECORDED = Path(__file__).parent / "hardware" / "atomic-patterns-h200.json.xz"
ATOMICS = json.loads(lzma.decompress(RECORDED.read_bytes()))["patterns"]
#: Up to so many lines of 128 bytes the card's count is the rule's; beyond, it passes some sectors again.
FEW_LINES = 4


def counted(lanes: list[int]) -> int:
    address = np.array(lanes, dtype=np.int64).reshape(1, 1, 32)
    (sectors,) = atomic_sectors(np.maximum(address, 0), 0, Mask(address >= 0, blocks=1, warps=1)).tolist()
    return sectors


def lines_of(lanes: list[int]) -> int:
    return len({place // 128 for place in lanes if place >= 0})


@pytest.mark.parametrize("kernel", sorted({pattern["kernel"] for pattern in ATOMICS}))
def test_sectors_of_few_lines_are_the_cards(kernel):
    held = [p for p in ATOMICS if p["kernel"] == kernel and lines_of(p["lanes"]) <= FEW_LINES]
    assert len(held) >= 4
    assert [counted(p["lanes"]) for p in held] == [p["sectors"] for p in held]


def test_sectors_of_many_lines_are_at_most_two_fewer():
    far = [p["sectors"] - counted(p["lanes"]) for p in ATOMICS if lines_of(p["lanes"]) > FEW_LINES]
    assert len(far) > 150
    assert set(far) <= {0, 1, 2}
    assert far.count(0) >= 0.75 * len(far)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_joined_operands_hold_for_every_member_what_it_held(share):
    rng = np.random.default_rng(7)
    for shape in ((3, 4, 32), (1, 4, 32), (3, 1, 1), (3, 4, 1)):
        lanes = rng.random((3, 4, 32)) < share
        lanes[1, 2, 5] = True
        mask = Mask(lanes, 3, 4)
        for value in (rng.integers(99, size=shape), np.full(shape, 7)):
            joined = np.broadcast_to(mask.joined(value), lanes.shape)
            np.testing.assert_array_equal(joined[lanes], np.broadcast_to(value, lanes.shape)[lanes])
            np.testing.assert_array_equal(mask.held(value), joined[lanes])


def test_a_lane_of_a_block_that_acts_alone_leaves_one_element_of_each_block():
    lanes, value = np.zeros((3, 4, 32), dtype=bool), np.arange(3 * 4 * 32).reshape(3, 4, 32)
    lanes[0, 1, 4] = lanes[2, 3, 9] = True
    assert Mask(lanes, 3, 4).joined(value)[[0, 2]].tolist() == [[[36]], [[361]]]
    assert Mask(lanes, 3, 4).joined(np.where(lanes, 5, value)).shape == (1, 1, 1)
