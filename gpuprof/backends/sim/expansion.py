# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many hardware fused multiply-adds one PTX instruction becomes.

PTX shows a division as one instruction; the hardware has none, and runs a sequence in which fused
multiply-adds refine an approximate reciprocal. The counts are those of the sequence's common path.
"""

from gpuprof.backends.sim.ptx import Instruction

_SEQUENCES: dict[tuple[str, ...], tuple[str, int]] = {
    ("fma", "f32"): ("ffma", 1),
    ("mad", "f32"): ("ffma", 1),
    ("fma", "f64"): ("dfma", 1),
    ("mad", "f64"): ("dfma", 1),
    ("div", "rn", "f32"): ("ffma", 5),
}


def fused_multiply_adds(item: Instruction) -> tuple[str, int] | None:
    """Return the family ("ffma" or "dfma") and how many of it a lane executes, or None for none."""
    name, kind = item.opcode[0], item.opcode[-1]
    if name == "div" and "rn" in item.opcode:
        return _SEQUENCES.get((name, "rn", kind))
    return _SEQUENCES.get((name, kind))
