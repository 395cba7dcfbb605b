# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which pipe of an SM executes an instruction, from `pipes.toml`."""

import tomllib
from functools import cache
from importlib.resources import files

from gpuprof.machine_code.sass import SassInstruction


def pipe_of(one: SassInstruction, architecture: int) -> tuple[str, ...]:
    """Return the pipe that executes an instruction, by Nsight Compute's names; nothing where none is known.

    An architecture is 90 for `sm_90`.
    """
    # What an instruction reads may decide: `S2R R0, SR_TID.X`.
    source = one.operands.rpartition(", ")[2].partition(".")[0]
    rows = _rows(architecture)
    return rows.get(f"{one.name} {source}") or _pipe(one.opcode, architecture)


@cache
def _pipe(opcode: str, architecture: int) -> tuple[str, ...]:
    rows, parts = _rows(architecture), opcode.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((rows[name] for name in names if name in rows), ())


@cache
def _rows(architecture: int) -> dict[str, tuple[str, ...]]:
    document = tomllib.loads(files(__package__).joinpath("pipes.toml").read_text(encoding="utf-8"))
    return {
        opcode: (row["pipe"],)
        for row in document["row"]
        if row.get("since", 0) <= architecture <= row.get("until", architecture)
        for opcode in row["opcodes"]
    }
