# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What copies to shared memory cost by where each piece comes from and goes."""

import numpy as np
import pytest
from executor_harness import run_cuda

from gpuprof.executor.faults import KernelFault
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.landing import (
    Pieces,
    cached_copy_cost,
    landing_cost,
)

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


_AT_THE_END = """
extern "C" __global__ void copy(const int *in, int *out, int bytes)
{
    __shared__ __align__(16) int tile[128];
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + 4 * threadIdx.x),
                 "r"(min(16, max(0, bytes - 16 * (int)threadIdx.x))));
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 4; ++i)
        out[4 * threadIdx.x + i] = tile[4 * threadIdx.x + i];
}"""


@pytest.mark.parametrize("length", [512, 508, 500, 336, 12, 4, 1])
def test_what_a_copy_does_not_read_need_not_exist(length):
    given = np.arange(1, length + 1, dtype=np.uint8)
    (_, out), result = run_cuda(_AT_THE_END, given, np.full(128, -1, np.int32), scalars=(np.int32(length),))
    assert out.array().view(np.uint8).tolist() == [*given.tolist(), *[0] * (512 - length)]
    assert result.counters["async_copy_requests"] == 1


def test_a_copy_that_reads_a_byte_too_many_is_a_fault():
    with pytest.raises(KernelFault, match="at byte 500 of array 0, which has 500 bytes"):
        run_cuda(_AT_THE_END, np.zeros(500, np.uint8), np.zeros(128, np.int32), scalars=(np.int32(501),))
