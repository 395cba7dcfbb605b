# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many workers a run starts: as the cores allow, and as their problems fit into memory together."""

import pytest
from unit_support import DEVICE

from gpuprof.measure import run
from gpuprof.measure.protocol import Opened

GIB = 2**30


@pytest.mark.parametrize(
    ("backend", "budget_gib", "largest_gib", "cores", "workers"),
    [
        ("gpu", 100, 1, 16, 1),
        ("none", 100, 1, 16, 1),
        ("sim", 100, 1, 16, 16),
        ("sim", 10, 1, 16, 10),
        ("sim", 10, 4, 16, 2),
        ("sim", 10, 9, 16, 1),
        ("sim", 10, 9, 1, 1),
        ("sim", 10, 0, 3, 3),
    ],
)
def test_workers_fit_into_memory_together(monkeypatch, backend, budget_gib, largest_gib, cores, workers):
    monkeypatch.setattr(run, "usable_cores", lambda: cores)
    opened = Opened(DEVICE, backend, None, {}, budget_gib * GIB)
    assert run._workers(opened, largest_gib * GIB) == workers
