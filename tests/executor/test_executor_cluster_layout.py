# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the blocks of a cluster lie in a batch, and which bit of a set stands for which warps."""

import numpy as np
import pytest

from gpuprof.executor.lanes.cluster_layout import ClusterLayout

SHAPES = [((1, 1, 1), 32), ((2, 1, 1), 16), ((2, 1, 1), 32), ((3, 1, 1), 11), ((2, 2, 2), 5), ((8, 1, 1), 32)]


@pytest.mark.parametrize(("extents", "warps"), SHAPES)
def test_bits_of_sets_stand_for_warps_of_one_block(extents, warps):
    layout = ClusterLayout(extents, warps)
    numbers = np.arange(layout.blocks * warps)
    bits = layout.bit_of(numbers)
    assert bits.max() < 32
    assert bits.max() < layout.blocks * layout.bits_of_block
    for bit in np.unique(bits):
        assert len(set(numbers[bits == bit] // warps)) == 1
    if layout.blocks * warps <= 32:
        assert len(np.unique(bits)) == len(numbers)


@pytest.mark.parametrize(("extents", "warps"), SHAPES)
def test_what_warps_of_a_bit_share_is_the_largest_of_each(extents, warps):
    layout = ClusterLayout(extents, warps)
    values = np.random.default_rng(warps).integers(-1, 100, (3, layout.blocks * warps))
    bits = layout.bit_of(np.arange(values.shape[1]))
    grouped = layout.grouped(values)
    for bit in np.unique(bits):
        np.testing.assert_array_equal(grouped[:, bit], values[:, bits == bit].max(axis=1))


def test_blocks_lie_one_after_the_other():
    layout = ClusterLayout((2, 3, 1), 2, shared_bytes=1500, shared_start=0x400)
    lanes = np.zeros((4, 12, 32), np.bool_)
    lanes[1, 5, 7] = True
    assert np.argwhere(layout.by_block(lanes, 4)).tolist() == [[1 * 6 + 2, 1, 7]]
    chosen = np.zeros(24, np.bool_)
    chosen[8] = True
    assert np.argwhere(layout.in_batch(chosen)).tolist() == [[1, 4, 0], [1, 5, 0]]
    assert layout.index_of((4, 9, 0), 3) == (5, 10, 0)
    assert layout.indices_of(np.array([[4, 9, 0]])).tolist() == [[4 + i % 2, 9 + i // 2, 0] for i in range(6)]
    assert layout.byte(2 * layout.stride + 20) == ("byte 20 of the shared memory of rank 2", 20)
    assert layout.all_bytes == 5 * layout.stride + 1500
    assert layout.stride % 1024 == 0
