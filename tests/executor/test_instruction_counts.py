# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Executed instructions against a card's own counts, of the machine code that ran there.

`benchmarks/instruction_counts.py` records the file.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / name) for name in ("differential", "public_style")]

from answers_file import load_answers  # noqa: E402
from launch_case import LaunchCase  # noqa: E402
from public_kernels import public_kernels  # noqa: E402

from gpuprof.errors import CaseFailure  # noqa: E402
from gpuprof.executor import Definedness, GlobalMemory, launch, load_program  # noqa: E402
from gpuprof.machine_code.disassembler import disassemble_together  # noqa: E402
from gpuprof.machine_code.instruction_counts import MachineCounts, count  # noqa: E402
from gpuprof.machine_code.linking import link  # noqa: E402
from gpuprof.machine_code.sass import read_machine_code  # noqa: E402
from gpuprof.machine_code.weighing import weigh  # noqa: E402

pytestmark = pytest.mark.deep

RECORDED = HERE / "machine_code" / "instructions-h200.json.xz"
#: Share of the cases whose lower bound must be as near as `_NEAR`, and how near that is. Those that are
#: farther off have ways that the PTX does not show (roots and quotients of machine code), or loops that ptxas
#: unrolled and left in the middle.
_MOST, _NEAR = 0.85, 0.01
#: The card's counters by Nsight Compute's names, and by gpuprof's where gpuprof collected them.
_TOTAL = ("smsp__inst_executed.sum", "warp_instructions")


@cache
def recorded() -> dict[str, Any]:
    """Return what the card counted, and the code that it ran."""
    return load_answers(RECORDED)["answers"]


def counted_of(case: LaunchCase, ptx: str, listing: str) -> MachineCounts:
    """Count what a public kernel executes, of recorded machine code as text."""
    program = load_program(ptx, case.name, observer=Definedness())
    machine = read_machine_code(listing, case.name)
    found = link(machine, ptx, *program.listing)
    memory = GlobalMemory()
    arguments = [
        memory.allocate(value, str(i)) if isinstance(value, np.ndarray) else value
        for i, value in enumerate(case.arguments)
    ]
    result = launch(program, case.grid, case.block, arguments, memory, case.shared)
    return count([(found, weigh(found, result))], 90)


@cache
def compared() -> dict[str, tuple[MachineCounts, dict[str, float]]]:
    """Return gpuprof's and the card's counts of every public kernel that can be run as it stands."""
    answers = {name: recorded().get(f"public {name}", {}) for name in public_kernels()}
    held = {
        name: (case, answers[name])
        for name, case in public_kernels().items()
        if answers[name].get("key") == case.key and "counters" in answers[name]
    }
    codes = {answer["code"]: recorded()[answer["code"]] for _, answer in held.values()}
    # nvdisasm takes longer to start than to read them all.
    listings = disassemble_together([bytes.fromhex(code["cubin"]) for code in codes.values()])
    of_code = dict(zip(codes, listings, strict=True))
    both = {}
    for name, (case, answer) in held.items():
        code = answer["code"]
        try:
            both[name] = counted_of(case, codes[code]["ptx"], of_code[code]), answer["counters"]
        except CaseFailure:  # what the executor does not run is no matter of instructions
            continue
    return both


def total(counters: dict[str, float]) -> float:
    return next(counters[name] for name in _TOTAL if name in counters)


def test_most_kernels_have_the_cards_number_of_instructions():
    off = {name: ours.total.low / total(theirs) - 1 for name, (ours, theirs) in compared().items()}
    assert len(off) > 100
    near = [name for name, share in off.items() if abs(share) <= _NEAR]
    assert len(near) >= _MOST * len(off), {name: off[name] for name in off if name not in near}


def test_the_card_lies_within_the_bounds():
    off = {
        name: (ours.total, total(theirs))
        for name, (ours, theirs) in compared().items()
        if not ours.total.low <= total(theirs) <= ours.total.high
    }
    assert off == {}


@pytest.mark.parametrize("pipe", ["adu", "alu", "cbu", "fma", "fp64", "lsu", "tensor", "uniform", "xu"])
def test_pipes_are_the_cards(pipe):
    metric = f"smsp__inst_executed_pipe_{pipe}.sum"
    held = {
        name: (ours.pipes[pipe].low if pipe in ours.pipes else 0.0, theirs[metric])
        for name, (ours, theirs) in compared().items()
        if metric in theirs and ours.total.exact and ours.total.low == total(theirs)
    }
    assert len(held) > 20
    assert {name: pair for name, pair in held.items() if pair[0] != pair[1]} == {}
