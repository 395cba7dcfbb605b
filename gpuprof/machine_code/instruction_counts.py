# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many instructions warps execute: in all, by pipe, by opcode and by source line."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TypeVar

from msgspec import Struct

from gpuprof.machine_code.linking import Link
from gpuprof.machine_code.sass import SassInstruction
from gpuprof.machine_code.weighing import Weights
from gpuprof.tables import bundled


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
    document = bundled("gpuprof.machine_code", "pipes.toml")
    return {
        opcode: (row["pipe"],)
        for row in document["row"]
        if row.get("since", 0) <= architecture <= row.get("until", architecture)
        for opcode in row["opcodes"]
    }


K = TypeVar("K")


class Between(Struct, frozen=True):
    """A count that is known exactly, or between two bounds.

    It is without an upper limit where the time that threads wait for others decides.
    """

    low: float = 0.0
    high: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether both bounds are the same, but for the rounding of a sample's weights."""
        return self.high - self.low <= 1e-9 * max(1.0, self.low)


class MachineCounts(Struct, frozen=True):
    """Warp instructions that a launch executes, those under a false predicate too.

    `pipes` are by Nsight Compute's names, and opcodes that no pipe is known of are in none; `opcodes` are
    without modifiers; `lines` are of the source.
    """

    total: Between = Between()
    pipes: Mapping[str, Between] = {}
    opcodes: Mapping[str, Between] = {}
    lines: Mapping[int, Between] = {}


def count(launches: Iterable[tuple[Link, Weights]], architecture: int) -> MachineCounts:
    """Count what launches executed together; an architecture is 90 for `sm_90`."""
    total: dict[None, list[float]] = {}
    pipes: dict[str, list[float]] = {}
    opcodes: dict[str, list[float]] = {}
    lines: dict[int, list[float]] = {}
    for link, weights in launches:
        for block, (low, high) in zip(link.code.blocks, weights, strict=True):
            if not high:
                continue
            for one in block.instructions:
                _add(total, None, low, high)
                _add(opcodes, one.name, low, high)
                for pipe in pipe_of(one, architecture):
                    _add(pipes, pipe, low, high)
                if source := link.sources.get(one.line):
                    _add(lines, source, low, high)
    whole = _between(total).get(None, Between())
    return MachineCounts(whole, _between(pipes), _between(opcodes), _between(lines))


def _add(sums: dict[K, list[float]], key: K, low: float, high: float) -> None:
    """Add to a sum in place: a kernel has too many instructions for an object each."""
    held = sums.get(key)
    if held is None:
        sums[key] = [low, high]
    else:
        held[0] += low
        held[1] += high


def _between(sums: dict[K, list[float]]) -> dict[K, Between]:
    return {key: Between(low, high) for key, (low, high) in sums.items()}
