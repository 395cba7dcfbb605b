# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which pipe of an SM executes an instruction, from `pipes.toml`."""

import tomllib
from functools import cache
from importlib.resources import files

from gpuprof.machine_code.sass import Instruction


def pipe_of(one: Instruction, architecture: int) -> tuple[str, ...]:
    """Return the pipe that executes an instruction, by Nsight Compute's names; nothing where none is known.

    Args:
        one: The instruction.
        architecture: For example 90 for `sm_90`.
    """
    return _pipe(one.opcode, architecture)


@cache
def _pipe(opcode: str, architecture: int) -> tuple[str, ...]:
    rows = _rows(architecture)
    parts = opcode.split(".")
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in rows:
            return rows[name]
    # What reads and writes uniform registers only has a datapath of its own.
    return ("uniform",) if opcode.startswith("U") else ()


@cache
def _rows(architecture: int) -> dict[str, tuple[str, ...]]:
    document = tomllib.loads(files(__package__).joinpath("pipes.toml").read_text(encoding="utf-8"))
    return {
        opcode: (row["pipe"],)
        for row in document["row"]
        if row.get("since", 0) <= architecture <= row.get("until", architecture)
        for opcode in row["opcodes"]
    }
