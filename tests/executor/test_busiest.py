# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The least that the busiest multiprocessor does, against every way to hand blocks out."""

from itertools import product

import numpy as np
import pytest

from gpuprof.executor.totals import Busiest


def least(work, multiprocessors, weights=None):
    found = Busiest()
    blocks = np.array(work, dtype=np.int64)
    found.add("w", blocks, np.ones(len(work)) if weights is None else np.array(weights))
    return found.least("w", multiprocessors)


def best_placement(work, multiprocessors):
    """The smallest load of the busiest one over all placements."""
    return min(
        max(sum(w for w, at in zip(work, places, strict=True) if at == sm) for sm in range(multiprocessors))
        for places in product(range(multiprocessors), repeat=len(work))
    )


@pytest.mark.parametrize("seed", range(40))
def test_it_is_never_above_the_best_placement(seed):
    random = np.random.default_rng(seed)
    work = random.integers(0, 9, size=random.integers(1, 7)).tolist()
    for multiprocessors in (1, 2, 3):
        assert least(work, multiprocessors) <= best_placement(work, multiprocessors) + 1e-9


@pytest.mark.parametrize(("blocks", "expected"), [(1, 5.0), (4, 5.0), (5, 10.0), (8, 10.0), (9, 15.0)])
def test_equal_blocks_are_handed_out_whole(blocks, expected):
    assert least([5] * blocks, 4) == expected


def test_a_few_heavy_blocks_weigh_as_they_do():
    # Five heavy blocks on four: one gets two of them, however light the others are.
    assert least([100] * 5 + [1] * 20, 4) == 200


def test_even_work_is_shared_evenly():
    assert least([1] * 7 + [2] * 3, 4) == pytest.approx(max(13 / 4, 3.0))


def test_blocks_of_a_sample_stand_for_many():
    # 961 blocks of 132: eight on the busiest, though the weights are ratios.
    assert least([3, 3, 3], 132, [961 / 3] * 3) == 24


def test_batches_add_up():
    found = Busiest()
    for _ in range(3):
        found.add("w", np.array([7, 7]), np.ones(2))
    assert found.least("w", 4) == 14
    assert found.least("unknown", 4) == 0
