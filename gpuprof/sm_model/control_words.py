# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What ptxas wrote beside each instruction for the warp scheduler, in bits 105 to 121 of its 128-bit word.

Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1; the
layout is that of sm_70 to sm_90.
"""

from msgspec import Struct

from gpuprof.cubin_file import CubinFile

_WORD = 16
_NO_BARRIER = 7


class ControlWord(Struct, frozen=True):
    """How an instruction is scheduled.

    Args:
        stall: Cycles before the warp's next instruction may issue.
        sets: The dependence barrier that holds until its result is written, if any.
        frees: The one that holds until its operands are read, if any.
        waits: The barriers that must be free before it issues, as bits.
    """

    stall: int
    sets: int | None
    frees: int | None
    waits: int


def control_words(cubin: bytes, entry: str) -> tuple[ControlWord, ...]:
    """Return the control words of a kernel's instructions, in the order of their addresses.

    Raises:
        ValueError: The cubin has no code of that name.
    """
    code = CubinFile(cubin).named(f".text.{entry}")
    if not code:
        raise ValueError(f"the machine code has no section .text.{entry}")
    return tuple(_read(code[at : at + _WORD]) for at in range(0, len(code) - _WORD + 1, _WORD))


def _read(word: bytes) -> ControlWord:
    bits = int.from_bytes(word, "little") >> 105
    sets, frees = bits >> 5 & 7, bits >> 8 & 7
    return ControlWord(
        stall=bits & 15,
        sets=None if sets == _NO_BARRIER else sets,
        frees=None if frees == _NO_BARRIER else frees,
        waits=bits >> 11 & 63,
    )
