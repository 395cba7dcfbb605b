# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many workers a run starts, and that each ends with who started it from its first moment on."""

import os
import subprocess
import sys

import pytest
from unit_support import DEVICE

from gpuprof.measure import side_by_side
from gpuprof.measure.process import HERE
from gpuprof.measure.protocol import Open, Opened
from gpuprof.measure.side_by_side import Cards, CardSite, OpenCard

GIB = 2**30


def cards(backend, budget_gib, largest_gib, count, transports, cases=999):
    """Open cards, without what opened them."""
    found = Cards.__new__(Cards)
    opened = Opened(DEVICE, backend, None, {}, budget_gib * GIB)
    found.cards = [
        OpenCard(
            number,
            CardSite(backend, transports),
            Open(device=backend, arch=None, seed=0, seconds_per_case=0.1),
            opened,
            [None] * cases,
            largest_gib * GIB,
        )
        for number in range(count)
    ]
    return found


@pytest.mark.parametrize(
    ("backend", "budget_gib", "largest_gib", "cores", "count", "at_a_time", "workers"),
    [
        ("gpu", 100, 1, 16, 1, 1, 1),
        ("gpu", 100, 1, 2, 8, 8, 1),
        ("none", 100, 1, 16, 1, 1, 1),
        ("sim", 100, 1, 16, 1, 1, 16),
        ("sim", 10, 1, 16, 1, 1, 10),
        ("sim", 10, 4, 16, 1, 1, 2),
        ("sim", 10, 9, 16, 1, 1, 1),
        ("sim", 10, 9, 1, 1, 1, 1),
        ("sim", 10, 0, 3, 1, 1, 3),
        ("sim", 100, 1, 16, 3, 3, 5),
        ("sim", 100, 1, 2, 3, 2, 1),
        ("sim", 100, 1, 1, 3, 1, 1),
        ("sim", 10, 4, 16, 2, 2, 1),
    ],
)
def test_workers_fit_into_memory_together(
    monkeypatch, backend, budget_gib, largest_gib, cores, count, at_a_time, workers
):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: cores)
    found = cards(backend, budget_gib, largest_gib, count, (HERE,) * cores)
    assert found.side_by_side == at_a_time
    assert len(found.transports(found.cards[0])) == workers


@pytest.mark.parametrize(("cases", "workers"), [(1, 1), (7, 7), (62, 12), (400, 50), (999, 64)])
def test_no_more_workers_than_their_cases_are_worth(monkeypatch, cases, workers):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 64)
    found = cards("sim", 100, 1, 1, (HERE,) * 64, cases)
    assert len(found.transports(found.cards[0])) == workers


def test_workers_of_a_cluster_are_shared_by_what_they_take_at_a_time(monkeypatch):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)
    slots = tuple(object() for _ in range(4))
    found = cards("sim", 1, 9, 3, slots)
    assert found.side_by_side == 3
    assert found.transports(found.cards[0]) == slots


LOADED = """
import sys
import gpuprof.measure.worker
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "cuda", "llvmlite"}))
"""


def test_one_whose_parent_is_gone_ends_before_it_loads_anything():
    worker = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpuprof.measure.worker", str(os.getpid() + 1)],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (worker.returncode, worker.stdout) == (1, "")
    assert "gpuprof.measure.serving" not in worker.stderr


def test_it_is_tied_to_its_parent_before_the_slow_imports():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
