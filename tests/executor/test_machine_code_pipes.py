# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The table of pipes."""

import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from gpuprof.counters import COUNTERS, PIPES
from gpuprof.machine_code.pipes import pipe_of
from gpuprof.machine_code.sass import SassInstruction

ROWS = tomllib.loads(files("gpuprof.machine_code").joinpath("pipes.toml").read_text())["row"]


def pipe(opcode: str, architecture: int = 90) -> tuple[str, ...]:
    return pipe_of(SassInstruction(0, "", opcode, "", 0), architecture)


def test_every_row_names_a_pipe_that_has_a_counter():
    assert {row["pipe"] for row in ROWS} <= PIPES.keys()
    assert all(f"pipe_{name}_instructions" in COUNTERS for name in PIPES)


@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90, 100, 120])
def test_an_opcode_has_one_pipe_on_an_architecture(architecture):
    held = [row for row in ROWS if row.get("since", 0) <= architecture <= row.get("until", architecture)]
    counted = Counter(opcode for row in held for opcode in row["opcodes"])
    assert [opcode for opcode, times in counted.items() if times > 1] == []


def test_modifiers_and_what_is_read_go_before_the_opcode():
    assert pipe("FFMA.FTZ") == pipe("FFMA") == ("fma",)
    assert pipe("HFMA2.MMA") == ("tensor",)
    assert pipe("HFMA2.BF16_V2") == ("fma",)
    assert pipe("HFMA2.BF16_V2", 80) == ("fp16",)
    assert pipe_of(SassInstruction(0, "", "S2R", "R0, SR_TID.X", 0), 90) == ("lsu",)
    assert pipe_of(SassInstruction(0, "", "S2R", "R0, SR_CTAID.X", 0), 90) == ("adu",)


def test_what_no_pipe_counts_has_none():
    assert pipe("NONSENSE.X") == pipe("ULDC.64") == pipe("BRA") == ()
