# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of wavefronts, of coalescing and of copies, against an H200's counts, and lane by lane.

`python benchmarks/warp_patterns.py --only atomic` asks the card for the patterns of atomics; their `lanes`
are the byte of each lane, negative where it takes no part.
"""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from each import each
from executor_harness import KERNELS_BY_HAND, run_cuda

from gpuprof.executor.faults import KernelFault
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.banks import wavefronts
from gpuprof.executor.memory.coalescing import Footprints, atomic_sectors, footprint
from gpuprof.executor.memory.landing import Pieces, cached_copy_cost, landing_cost

PATTERNS = json.loads((Path(__file__).parent / "hardware" / "shared_wavefronts.json").read_text())["patterns"]


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
    assert np.broadcast_to(found.costs["sectors"], blocks).tolist() == sectors
    assert np.broadcast_to(found.costs["useful_bytes"], blocks).tolist() == useful
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
        for event, counts in wanted.costs.items():
            assert np.array_equal(*np.broadcast_arrays(found.costs[event], counts, np.zeros(blocks))[:2])
        assert (found.low, found.high, found.aligned) == (wanted.low, wanted.high, wanted.aligned)


@each(seed=range(20))
def test_costs_that_come_again_count_as_often_as_they_come(seed):
    """More different ones than are kept, some events left out, and lanes of basic blocks."""
    rng = np.random.default_rng(seed)
    blocks, kept = int(rng.integers(1, 4)), int(rng.choice([3, 700]))
    tally, other = (Tally(sites=2, basic_blocks=2, blocks=blocks) for _ in range(2))
    costs = [{"a": rng.integers(0, 9, blocks), "b": rng.integers(0, 9, 1)} for _ in range(kept)]
    masks = [Mask(rng.random((blocks, 2, 32)) < 0.5, blocks, 2) for _ in range(kept)]
    for number in rng.integers(0, kept, 3 * kept).tolist():
        site, but = int(rng.integers(0, 2)), ("a",) if rng.random() < 0.1 else ()
        tally.charge(site, costs[number], but)
        for event in costs[number].keys() - but:
            other.add(site, event, costs[number][event])
        tally.ran(site, masks[number])
        other.threads[site] += masks[number].thread_count
        other.warps[site] += masks[number].warp_count
    for _ in range(2):
        tally.settle()
        assert np.array_equal((tally.threads, tally.warps), (other.threads, other.warps))
        for mine, theirs in zip(tally.events, other.events, strict=True):
            assert {event: row.tolist() for event, row in mine.items()} == {
                event: row.tolist() for event, row in theirs.items()
            }


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


LANE = np.arange(32)


def pieces_of(source, target, taking=None, reading=None, whole=None):
    """What one warp copies."""
    rows = [
        np.broadcast_to(np.asarray(part), 32).reshape(1, 1, 32).astype(np.int64) for part in (source, target)
    ]
    lanes = [
        np.broadcast_to(np.asarray(True if part is None else part), 32).reshape(1, 1, 32)
        for part in (taking, reading, whole)
    ]
    return Pieces(*rows, Mask(lanes[0], 1, 1), *lanes[1:])


def cost(*args, **keywords):
    """Sectors and wavefronts of one warp."""
    return tuple(int(count[0]) for count in landing_cost(pieces_of(*args, **keywords)))


def cached_cost(*args, size, **keywords):
    """Wavefronts of one warp whose copies go through the L1 cache."""
    return int(cached_copy_cost(pieces_of(*args, **keywords), size)[0][0])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (16 * LANE, 16 * LANE, (16, 4)),
        # A shift by a half sector: every sector goes to two.
        (16 * LANE, 16 * LANE + 16, (32, 12)),
        (16 * LANE, 16 * LANE + 32, (16, 8)),
        (16 * LANE, 16 * LANE + 128, (16, 4)),
        # All lanes read the same piece: one wavefront each.
        (16 + 0 * LANE, 16 * LANE, (32, 32)),
        (0 * LANE, 32 * LANE, (32, 32)),
        # Both halves of a sector, exchanged.
        (16 * LANE, 16 * (LANE ^ 1), (16, 4)),
        # Two lanes share a piece, which fills a sector: no two sectors are moved alike.
        (16 * (LANE // 2), 16 * LANE, (32, 32)),
        # A shift by a half sector, each piece to a sector of its own.
        (16 * LANE + 48, 32 * LANE, (32, 32)),
        # A line from its end.
        (16 * (31 - LANE), 16 * LANE, (16, 4)),
        # Rows of 64 bytes: two of them share a line of shared memory, and take a wavefront each.
        (1024 * (LANE // 4) + 16 * (LANE % 4), 16 * LANE, (16, 8)),
    ],
)
def test_cost_of_a_warp(source, target, expected):
    assert cost(source, target) == expected
    assert cost(source + 4096, target + 512) == expected


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ([(0, 1), (2, 3)], 1),  # moved alike
        ([(3, 2), (0, 3)], 1),  # alike, around the end of the line
        ([(2, 2), (3, 1)], 1),  # mirrored
        ([(0, 0), (3, 2)], 2),
        ([(1, 3), (0, 1)], 2),
        ([(0, 1), (0, 2)], 2),  # a sector goes to two places: each by itself
        ([(2, 1), (0, 3)], 1),
        ([(2, 1), (0, 2), (0, 3)], 3),  # the second time that 0 is passed on, 2 is not
    ],
)
def test_sectors_of_a_line_land_together_when_they_are_turned_or_mirrored(moved, expected):
    """Lower halves of sectors of one line, as places that they come from and go to."""
    source, target = (32 * np.resize([pair[i] for pair in moved], 32) for i in (0, 1))
    assert cost(source, target, taking=len(moved) > LANE)[1] == expected


def test_random_pieces_past_the_cache_cost_what_a_card_counted():
    units = [
        *([112, 7, 0, 12, 245, 2, 20], [2, 212, 0, 17, 0, 245, 3]),
        *([0, 11, 229, 0, 4, 6, 47], [10, 1, 0, 200, 1, 1, 6]),
    ]
    assert sum(cost(16 * np.resize(row, 32), 16 * LANE, taking=LANE < 7)[1] for row in units) == 26


#: Places of pieces of 16 bytes that four warps copied to every other place.
_SCATTERED = """
255 77 10 122 54 100 17 209 252 206 59 13 241 249 187 160
251 53 230 36 173 245 79 232 251 133 136 204 97 244 66 8
247 115 43 144 187 244 225 160 245 206 198 30 8 249 8 237
243 192 19 77 85 244 237 10 242 63 231 71 148 245 34 117
16 190 130 179 18 88 227 205 23 186 33 61 24 199 19 82
28 9 229 16 31 91 38 151 18 6 249 140 21 251 158 16
25 153 175 6 27 68 139 79 30 92 188 136 17 212 206 137
20 202 173 90 22 242 181 227 27 95 175 198 29 175 162 117
"""


def test_pieces_through_the_cache_are_read_in_turns_and_written_again_where_places_meet():
    pairs = cached_cost(16 * (LANE // 2), 32 * LANE, size=16)
    assert pairs == 4 * 3
    scattered = np.array(_SCATTERED.split(), dtype=np.int64).reshape(4, 32)
    assert sum(cached_cost(16 * row, 32 * LANE, size=16) for row in scattered) + 4 * pairs == 104


def test_idle_lanes_cost_nothing_and_zeros_what_a_copy_through_the_cache_would():
    some = LANE < 8
    assert cost(16 * LANE, 16 * LANE, taking=some) == (4, 1)
    assert cost(16 * LANE, 16 * LANE, reading=LANE < 0) == (0, 4)
    assert cost(16 * LANE, 16 * LANE, taking=some, reading=LANE < 0) == (0, 1)
    assert cost(0 * LANE, 16 * LANE, reading=LANE < 8) == (8, 8 + 8 + 3)
    assert cost(16 * LANE, 16 * LANE, whole=LANE > 40) == (16, 4 + 4)


_AT_THE_END = KERNELS_BY_HAND["an asynchronous copy of less"].text


@pytest.mark.parametrize("length", [512, 508, 500, 336, 12, 4, 1])
def test_what_a_copy_does_not_read_need_not_exist(length):
    given = np.arange(1, length + 1, dtype=np.uint8)
    (_, out), result = run_cuda(_AT_THE_END, given, np.full(128, -1, np.int32), scalars=(np.int32(length),))
    assert out.array().view(np.uint8).tolist() == [*given.tolist(), *[0] * (512 - length)]
    assert result.counters["async_copy_requests"] == 1


def test_a_copy_that_reads_a_byte_too_many_is_a_fault():
    with pytest.raises(KernelFault, match="past the end of array 0: byte 500 of 500"):
        run_cuda(_AT_THE_END, np.zeros(500, np.uint8), np.zeros(128, np.int32), scalars=(np.int32(501),))
