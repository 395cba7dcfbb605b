# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The table of pipes."""

import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from gpuprof.counters import COUNTERS, PIPES
from gpuprof.machine_code.pipes import pipe_of
from gpuprof.machine_code.sass import Instruction

ROWS = tomllib.loads(files("gpuprof.machine_code").joinpath("pipes.toml").read_text())["row"]


def pipe(opcode: str, architecture: int = 90) -> tuple[str, ...]:
    return pipe_of(Instruction(0, "", opcode, "", 0), architecture)


def test_every_row_names_a_pipe_that_has_a_counter():
    assert {row["pipe"] for row in ROWS} <= PIPES.keys()
    assert all(f"pipe_{name}_instructions" in COUNTERS for name in PIPES)


@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90, 100, 120])
def test_an_opcode_has_one_pipe_on_an_architecture(architecture):
    held = [row for row in ROWS if row.get("since", 0) <= architecture <= row.get("until", architecture)]
    counted = Counter(opcode for row in held for opcode in row["opcodes"])
    assert [opcode for opcode, times in counted.items() if times > 1] == []


def test_modifiers_are_looked_up_before_the_opcode():
    assert pipe("FFMA.FTZ") == pipe("FFMA") == ("fma",)
    assert pipe("STG.E.128") == ("lsu",)


def test_what_is_unknown_has_no_pipe_unless_it_is_uniform():
    assert pipe("NONSENSE.X") == ()
    assert pipe("UIADD3.X") == ("uniform",)
