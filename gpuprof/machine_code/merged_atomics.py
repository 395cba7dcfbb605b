# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which atomics of the PTX ptxas lets one lane do for all lanes of its warp.

Where it can prove that lanes of a warp have one address, ptxas adds up what they bring (REDUX, or a vote and
a count where all bring the same) and puts the operation under a predicate that holds for one lane. Atomics
that it leaves alone have nothing of that at their line of the PTX.
"""

from collections import defaultdict

from gpuprof.machine_code.sass import MachineCode, SassInstruction

_ATOMICS = frozenset({"RED", "REDG", "ATOM", "ATOMG"})
#: What makes one value of those that the lanes of a warp bring.
_COMBINING = frozenset({"REDUX", "POPC", "UPOPC"})
#: What sums up the lanes before each one: lanes that want to know what was there before, of whole warps only.
_SCANNING = "SHFL.UP"


def merged_atomics(code: MachineCode) -> frozenset[int]:
    """Return the lines of the PTX text whose atomic operation reaches memory once for each warp."""
    by_line: defaultdict[int, list[SassInstruction]] = defaultdict(list)
    for block in code.blocks:
        for one in block.instructions:
            by_line[one.line].append(one)
    return frozenset(line for line, instructions in by_line.items() if line and _is_merged(instructions))


def _is_merged(instructions: list[SassInstruction]) -> bool:
    atomics = [one for one in instructions if one.name in _ATOMICS]
    combined = any(one.name in _COMBINING for one in instructions)
    scanned = any(one.opcode.startswith(_SCANNING) for one in instructions)
    return bool(atomics) and combined and not scanned and all(one.guard for one in atomics)
