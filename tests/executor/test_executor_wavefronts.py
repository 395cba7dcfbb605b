# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bank-conflict rule against the wavefronts that Nsight Compute counted on an H200, and lane by lane."""

import json
from pathlib import Path

import numpy as np
import pytest

from gpuprof.executor.memory.banks import wavefronts

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


def distinct_words_of_the_busiest_bank(address, active, size):
    """32 banks, successive 32-bit words in successive ones (CUDA Programming Guide); lanes served at once."""
    words = {int(a) // 4 + i for a in address[active] for i in range(max(1, size // 4))}
    return max(sum(word % 32 == bank for word in words) for bank in range(32))


@pytest.mark.parametrize("load", [True, False])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_lanes_that_share_a_word_share_its_wavefront(size, load):
    rng = np.random.default_rng(size)
    offsets = rng.integers(1024, size=(200, 32)) // rng.integers(1, 40, size=(200, 1)) * size
    active = rng.random((200, 32)) < rng.random((200, 1)) * 1.2
    active[0] = False
    total, ideal = wavefronts(offsets, active, size, load=load)
    expected = [distinct_words_of_the_busiest_bank(*row, size) for row in zip(offsets, active, strict=True)]
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(ideal, active.any(axis=1))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_pattern_costs_its_own_wherever_it_is_met_again(size):
    rng = np.random.default_rng(size)
    for _ in range(60):
        pattern = rng.integers(256, size=(3, 32)) // rng.integers(1, 40, size=(3, 1)) * size
        active = rng.random((3, 32)) < rng.random((3, 1)) * 1.4
        # By all banks, and by one: the first is the same pattern, the second is another.
        for moved in (0, 128, 4, 4 * 128):
            idle = rng.integers(-(1 << 40), 1 << 40, size=(3, 32))
            address = np.where(active, pattern + moved, idle)
            total, ideal = wavefronts(address, active, size, load=True)
            rows = zip(address, active, strict=True)
            np.testing.assert_array_equal(total, [distinct_words_of_the_busiest_bank(*r, size) for r in rows])
            np.testing.assert_array_equal(ideal, active.any(axis=1))


@pytest.mark.parametrize("load", [True, False])
def test_who_takes_part_and_how_wide_the_access_is_tell_patterns_apart(load):
    address = np.arange(32)[None] * 16
    everybody, one = np.ones((1, 32), bool), np.arange(32)[None] == 0
    for _ in range(2):  # examined, then remembered
        assert [int(wavefronts(address, everybody, size, load=load)[0][0]) for size in (4, 16)] == [4, 4]
        assert [int(wavefronts(address, one, size, load=load)[0][0]) for size in (4, 16)] == [1, 1]
        assert int(wavefronts(address // 2, everybody, 8, load=load)[0][0]) == 2
        assert int(wavefronts(address // 2, everybody, 4, load=load)[0][0]) == 2


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
