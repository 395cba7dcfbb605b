# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bank-conflict rule against the wavefronts that Nsight Compute counted on an H200, and lane by lane."""

import json
from pathlib import Path

import numpy as np
import pytest

from gpuprof.executor.memory.banks import wavefronts

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
