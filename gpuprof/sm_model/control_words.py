# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What ptxas wrote beside each instruction for the warp scheduler, in bits 105 to 121 of its 128-bit word.

Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1; the
layout is that of sm_70 to sm_90.
"""

import struct
from dataclasses import dataclass

_WORD = 16
_NO_BARRIER = 7


@dataclass(frozen=True, slots=True)
class ControlWord:
    """How an instruction is scheduled.

    Args:
        stall: Cycles before the warp's next instruction may issue.
        yields: Whether another warp goes first.
        sets: The dependence barrier that holds until its result is written, if any.
        frees: The one that holds until its operands are read, if any.
        waits: The barriers that must be free before it issues, as bits.
    """

    stall: int
    yields: bool
    sets: int | None
    frees: int | None
    waits: int


def control_words(cubin: bytes, entry: str) -> tuple[ControlWord, ...]:
    """Return the control words of a kernel's instructions, in the order of their addresses.

    Raises:
        ValueError: The cubin has no code of that name.
    """
    code = _section(cubin, f".text.{entry}")
    return tuple(_read(code[at : at + _WORD]) for at in range(0, len(code) - _WORD + 1, _WORD))


def _read(word: bytes) -> ControlWord:
    bits = int.from_bytes(word, "little") >> 105
    sets, frees = bits >> 5 & 7, bits >> 8 & 7
    return ControlWord(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        sets=None if sets == _NO_BARRIER else sets,
        frees=None if frees == _NO_BARRIER else frees,
        waits=bits >> 11 & 63,
    )


def _section(elf: bytes, name: str) -> bytes:
    """Return the content of a section of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * number) for number in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        if elf[start : elf.index(b"\0", start)].decode() == name:
            return elf[header[4] : header[4] + header[5]]
    raise ValueError(f"the machine code has no section {name}")
