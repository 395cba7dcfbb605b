# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many hardware fused multiply-adds one PTX instruction becomes.

PTX shows a division as one instruction; the hardware has none, and runs a sequence in which fused
multiply-adds refine an approximate reciprocal. The counts are those of the sequence's common path.
"""

from gpuprof.executor.program.ptx import Instruction

#: From an opcode without its optional modifiers to (family, count) of what it becomes; as nvdisasm shows it
#: for sm_75 to sm_90.
_SEQUENCES: dict[tuple[str, ...], tuple[tuple[str, int], ...]] = {
    ("fma", "f32"): (("ffma", 1),),
    ("fma", "f64"): (("dfma", 1),),
    ("div", "rn", "f32"): (("ffma", 5),),
    ("rcp", "rn", "f32"): (("ffma", 2),),
    ("sqrt", "rn", "f32"): (("ffma", 2),),
    ("div", "rn", "f64"): (("dfma", 7), ("ffma", 1)),
    ("rcp", "rn", "f64"): (("dfma", 5),),
    ("sqrt", "rn", "f64"): (("dfma", 5),),
}


def fused_multiply_adds(item: Instruction) -> tuple[tuple[str, int], ...]:
    """Return how many of each family, "ffma" and "dfma", a lane executes; empty for other instructions."""
    name, kind = item.opcode[0], item.opcode[-1]
    if name in ("fma", "fms", "fnma", "fnms", "mad"):
        return _SEQUENCES.get(("fma", kind), ())
    return _SEQUENCES.get((name, "rn", kind), ()) if "rn" in item.opcode else ()
