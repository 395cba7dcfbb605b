# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bank-conflict rule against the wavefronts that Nsight Compute counted on an H200."""

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
