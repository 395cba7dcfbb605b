# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sectors that one warp's atomics pass to L2, against an H200's counts of 300 patterns.

`python benchmarks/warp_patterns.py --only atomic` asks the card; `lanes` are the byte of each lane, negative
where it takes no part.
"""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.coalescing import atomic_sectors

RECORDED = Path(__file__).parent / "hardware" / "atomic-patterns-h200.json.xz"
PATTERNS = json.loads(lzma.decompress(RECORDED.read_bytes()))["patterns"]
#: Up to so many lines of 128 bytes the card's count is the rule's; beyond, it passes some sectors again.
_LINES = 4


def counted(lanes: list[int]) -> int:
    address = np.array(lanes, dtype=np.int64).reshape(1, 1, 32)
    (sectors,) = atomic_sectors(np.maximum(address, 0), 0, Mask(address >= 0, blocks=1, warps=1)).tolist()
    return sectors


def lines_of(lanes: list[int]) -> int:
    return len({place // 128 for place in lanes if place >= 0})


@pytest.mark.parametrize("kernel", sorted({pattern["kernel"] for pattern in PATTERNS}))
def test_sectors_of_few_lines_are_the_cards(kernel):
    held = [p for p in PATTERNS if p["kernel"] == kernel and lines_of(p["lanes"]) <= _LINES]
    assert len(held) >= 4
    assert [counted(p["lanes"]) for p in held] == [p["sectors"] for p in held]


def test_sectors_of_many_lines_are_at_most_two_fewer():
    far = [p["sectors"] - counted(p["lanes"]) for p in PATTERNS if lines_of(p["lanes"]) > _LINES]
    assert len(far) > 150
    assert set(far) <= {0, 1, 2}
    assert far.count(0) >= 0.75 * len(far)
