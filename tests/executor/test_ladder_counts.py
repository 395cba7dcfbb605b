# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions of GEMM kernels against an H200's counts, reckoned from what the executor counted of them.

`benchmarks/ladder_counts.py` records the file.
"""

import re
import sys
from functools import cache
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "differential"))

from answers_file import load_answers  # noqa: E402

from gpuprof.counters import PIPES  # noqa: E402
from gpuprof.executor import Loop  # noqa: E402
from gpuprof.machine_code.instruction_counts import Between, MachineCounts, count  # noqa: E402
from gpuprof.machine_code.linking import Link, link  # noqa: E402
from gpuprof.machine_code.sass import read_machine_code  # noqa: E402
from gpuprof.machine_code.weighing import weigh  # noqa: E402

pytestmark = pytest.mark.deep

ANSWERS = load_answers(HERE / "machine_code" / "ladder-h200.json.xz")["answers"]
CASES = [name for name in ANSWERS if not name.startswith("code ")]
#: Those in which threads wait for other threads, or for copies.
WAITING = ("bulk_", "streamk_", "packed_")
#: How far below the card's counts the least of these may lie: what waited there is time's.
_NEAR = 0.01
_GOAL = re.compile(r"`\(([^)]+)\)")


def linked(code: dict[str, Any], listing: str) -> Link:
    loops = {
        int(header): Loop(tuple(entries), frozenset(body), frozenset(each_iteration))
        for header, (entries, body, each_iteration) in code["loops"].items()
    }
    machine = read_machine_code(listing, code["entry"])
    return link(machine, code["ptx"], as_tuples(code["places"]), loops, frozenset(code["waits"]))


def as_tuples(places: list[list[list[int]]]) -> list[list[tuple[int, int]]]:
    return [[(line, source) for line, source in block] for block in places]


def executed(case: dict[str, Any]) -> Any:
    turns = {
        int(header): {(int(times),): entries for times, entries in turns.items()}
        for header, turns in case["turns"].items()
    }
    blocks = {f"block_{name}": np.array(case[name]) for name in ("warps", "threads", "parted")}
    return SimpleNamespace(**blocks, loop_iterations=turns, middling=frozenset(), sites=())


def counted(found: Link, name: str) -> MachineCounts:
    return count([(found, weigh(found, executed(ANSWERS[name])))], 90)


@cache
def counts(name: str) -> MachineCounts:
    code = ANSWERS[ANSWERS[name]["code"]]
    return counted(linked(code, code["listing"]), name)


def both(name: str) -> dict[str, tuple[Between, list[float]]]:
    """Return what is reckoned, and what the card counted in each of its runs."""
    ours = counts(name)
    found = {f"pipe_{pipe}_instructions": ours.pipes.get(pipe, Between()) for pipe in PIPES}
    found["warp_instructions"] = ours.total
    cards = ANSWERS[name]["counters"]
    return {
        key: (value, [run[key] for run in cards])
        for key, value in found.items()
        if all(run[key] is not None for run in cards)
    }


@pytest.mark.parametrize("name", CASES)
def test_the_card_executes_nothing_less_or_more_often_than_reckoned(name):
    compared = both(name)
    assert len(compared) > 8
    off = {
        key: (ours, cards)
        for key, (ours, cards) in compared.items()
        if ours.low > min(cards) or ours.high < max(cards)
    }
    assert off == {}


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(WAITING)])
def test_kernels_that_do_not_wait_are_counted_within_limits(name):
    for ours, cards in both(name).values():
        assert ours.high <= ours.low * (1 + 0.1) + 100
        assert len({*cards}) == 1
    if name.startswith("col_8x8_double"):
        assert all(ours == Between(cards[0], cards[0]) for ours, cards in both(name).values())


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("bulk_")])
def test_waits_for_copies_that_succeed_at_once_are_counted_exactly(name):
    # A try sleeps until what it waits for has happened, or for long: none of these ran twice on the card.
    assert {key: ours.low for key, (ours, _) in both(name).items()} == {
        key: cards[0] for key, (_, cards) in both(name).items()
    }
    assert counts(name).pipes["adu"].high == inf
    assert counts(name).pipes["fma"].exact


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("streamk_", "packed_"))])
def test_waits_for_other_blocks_are_counted_once(name):
    compared = both(name)
    if "128x" not in name:
        ours, cards = compared["warp_instructions"]
        assert ours.low >= (1 - _NEAR) * min(cards)
    assert counts(name).total.high == inf
    ours, cards = compared["pipe_fma_instructions"]
    if name.startswith("streamk_"):
        assert ours == Between(cards[0], cards[0])
    if name == "streamk_8x16 4096x4096x4096":  # where nobody had to wait for long
        for pipe in ("alu", "lsu", "adu", "tensor"):
            ours, cards = compared[f"pipe_{pipe}_instructions"]
            assert ours.low == cards[0]


@pytest.mark.parametrize("name", [name for name in CASES if "128x" in name])
def test_labels_that_nothing_leads_to_change_nothing(name):
    # nvdisasm 13.5 labels more than nvdisasm 13.2 does.
    code = ANSWERS[ANSWERS[name]["code"]]
    lines = code["listing"].splitlines()
    named = {goal for line in lines for goal in _GOAL.findall(line)}
    fewer = [line for line in lines if not (line.startswith(".L_x_") and line.rstrip(":") not in named)]
    assert len(fewer) < len(lines)
    assert counted(linked(code, "\n".join(fewer)), name) == counts(name)
