# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel makes itself, in shared memory, and copies to global memory for the copy engine.

`tensormap.replace` writes one field of the 128 bytes: here it is a store to where the field stands, and
`tensormap.cp_fenceproxy` loads and stores.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace

from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.executor.memory.tensor_map_encoding import FIELDS, MAGIC
from gpuprof.executor.program.ptx import Function, Imm, Instruction, Label, Mem, Operand, Reg

#: What numbers stand for: types of elements, and bytes of a swizzle.
_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16")
_SWIZZLES = (0, 32, 64, 128)
#: Registers that a copy goes through.
_THROUGH = ("tensormap@0", "tensormap@1")


def with_maps_as_stores(function: Function) -> list[Instruction | Label]:
    """Return a body in which these instructions are stores and loads; what is not known stays as it is."""
    made: list[Instruction | Label] = []
    for item in function.body:
        if isinstance(item, Instruction) and item.opcode[0] == "tensormap":
            function.registers |= dict.fromkeys(_THROUGH, "b64")
            made += [*(_copied(item) if item.opcode[1] == "cp_fenceproxy" else _replaced(item))] or [item]
        else:
            made.append(item)
    return made


def makes_maps(function: Function) -> bool:
    """Whether a kernel whose body was looked at makes maps."""
    return _THROUGH[0] in function.registers


def _replaced(item: Instruction) -> Iterator[Instruction]:
    """`tensormap.replace.tile.FIELD.SPACE.b1024.TYPE [map], (which,) value`."""
    place, *which, value = item.operands
    field, space = item.opcode[3], "shared" if "shared" in item.opcode[4] else "global"
    number = which[0].bits if which and isinstance(which[0], Imm) else 0
    if not isinstance(place, Mem) or field not in FIELDS or not (known := _value(field, value)):
        return
    offset, nbytes = FIELDS[field]

    def store(offset: int, nbytes: int, value: Operand) -> Instruction:
        goal = Mem(place.base, place.offset + offset)
        return replace(item, opcode=("st", space, f"u{8 * nbytes}"), operands=(goal, value))

    if field == "global_address":
        yield store(0, len(MAGIC), Imm(int.from_bytes(MAGIC, "little")))
    yield store(offset + number * nbytes, 4 if field == "global_dim" else nbytes, known)


def _value(field: str, value: Operand) -> Operand | None:
    """What is stored for the value of a field; None for one that is not known."""
    if field in ("rank", "elemtype", "swizzle_mode", "interleave_layout"):
        if not isinstance(value, Imm) or (field == "interleave_layout" and value.bits):
            return None
        if field == "interleave_layout":
            return value
        if field == "rank":
            return Imm(value.bits + 1)
        table = _ELEMENTS if field == "elemtype" else _SWIZZLES
        if value.bits >= len(table):
            return None
        found = table[value.bits]
        return Imm(
            found if isinstance(found, int) else struct.unpack("<I", found.encode().ljust(4, b"\0"))[0]
        )
    return value


def _copied(item: Instruction) -> Iterator[Instruction]:
    """`tensormap.cp_fenceproxy.global.shared::cta… [to], [from], 128`."""
    to, source = item.operands[:2]
    if not (isinstance(to, Mem) and isinstance(source, Mem)):
        return
    for offset in range(0, TENSOR_MAP_BYTES, 8):
        through = Reg(_THROUGH[offset // 8 % 2])
        ours, theirs = (Mem(one.base, one.offset + offset) for one in (source, to))
        yield replace(item, opcode=("ld", "shared", "b64"), operands=(through, ours))
        yield replace(item, opcode=("st", "global", "b64"), operands=(theirs, through))
