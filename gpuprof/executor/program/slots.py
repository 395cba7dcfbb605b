# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where a program's values live: every register, literal, parameter and special register has one slot.

A batch keeps its values in one list. Operands are decoded to positions in it, so that reading a literal, a
kernel argument or `%tid.x` costs what reading a register costs.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from msgspec import Struct, field

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes, register_dtype, uniform
from gpuprof.executor.program.ptx import Function, Imm, Instruction, Operand, Reg, Special, Sym

#: Special register that tells where the system keeps what tiles of several warps share.
RESERVED_FOR_TILES = "%reserved_smem_offset_1"

#: Special registers that hold the two halves of the address where a grid counts who came to its barrier; 0
#: where it was not launched cooperatively.
GRID_WORKSPACE = frozenset({"%envreg1", "%envreg2"})

#: What stands among symbols for the start of constant memory, and of the parameters.
CONSTANT_WINDOW = "constant memory+0"
PARAMETER_WINDOW = "the parameters+0"

_I32 = np.dtype(np.int32)
_I64 = np.dtype(np.int64)


class Slots(Struct):
    """Allots slots while a program is decoded.

    `parameters` are (byte offset, dtype, slot). `symbols` are slots that hold the address of a global
    variable, a parameter, or a constant variable in its space; also these windows. `in_shared` hold
    addresses of shared memory, as in the block of rank 0.
    """

    function: Function
    #: Offsets of shared and local variables in their space, by name.
    offsets: dict[str, int]
    #: Names of the parameters, and of variables in global or constant memory.
    known: Collection[str] = ()
    #: Special registers that the executor can answer, but for those that tell the time.
    answered: Collection[str] = ()
    #: Names of the variables in shared memory.
    shared: Collection[str] = ()
    initial: list[Lanes] = field(default_factory=list)
    kept: list[np.dtype[Any]] = field(default_factory=list)
    specials: dict[str, int] = field(default_factory=dict)
    parameters: list[tuple[int, np.dtype[Any], int]] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)
    in_shared: list[int] = field(default_factory=list)
    _registers: dict[str, int] = field(default_factory=dict)
    _literals: dict[tuple[Imm, np.dtype[Any]], int] = field(default_factory=dict)

    def new(self, value: Lanes) -> int:
        """Add a slot that starts with `value`."""
        self.initial.append(value)
        self.kept.append(value.dtype)
        return len(self.initial) - 1

    def register(self, name: str, line: int) -> int:
        if name not in self._registers:
            kind = self.function.registers[name]
            if kind not in ARITHMETIC:
                raise UnsupportedInstruction(f".reg .{kind}", line)
            self._registers[name] = self.new(uniform(0, register_dtype(kind)))
        return self._registers[name]

    def scratch(self, dtype: np.dtype[Any]) -> int:
        """Return a slot of its own, for what has no name in PTX (the carry flag, an unused result)."""
        return self.new(uniform(0, dtype))

    def literal(self, value: Imm, dtype: np.dtype[Any]) -> int:
        """Return the slot of a literal, read as `dtype`."""
        key = value, dtype
        if key not in self._literals:
            self._literals[key] = self.new(_literal(value, dtype))
        return self._literals[key]

    def parameter(self, offset: int, dtype: np.dtype[Any]) -> int:
        """Return the slot of the kernel argument at a byte offset of the parameter block."""
        slot = self.new(uniform(0, dtype))
        self.parameters.append((offset, dtype, slot))
        return slot

    def address(self, symbol: Sym, line: int) -> int:
        """Return the slot that holds a variable's address in its own space."""
        if symbol.name in self.offsets:
            slot = self.new(uniform(self.offsets[symbol.name] + symbol.offset, _I64))
            if symbol.name in self.shared:
                self.in_shared.append(slot)
            return slot
        if symbol.name not in self.known:
            raise UnsupportedInstruction(f"symbol {symbol.name}", line)
        key = f"{symbol.name}+{symbol.offset}"
        return self._window(key)

    def constant_window(self) -> int:
        """Return the slot that holds where the module's constant memory starts among generic addresses."""
        return self._window(CONSTANT_WINDOW)

    def parameter_window(self) -> int:
        """Return the slot that holds where the kernel's parameters start among generic addresses."""
        return self._window(PARAMETER_WINDOW)

    def _window(self, key: str) -> int:
        if key not in self.symbols:
            self.symbols[key] = self.new(uniform(0, _I64))
        return self.symbols[key]

    def special(self, name: str, line: int) -> int:
        if name not in self.answered:
            raise UnsupportedInstruction(name, line)
        if name not in self.specials:
            self.specials[name] = self.new(uniform(0, _I32))
        return self.specials[name]

    def source(self, operand: Operand, dtype: np.dtype[Any], line: int) -> int:
        """Return the slot of an operand that is wanted as `dtype`, though it may be kept otherwise."""
        match operand:
            case Reg(name):
                return self.register(name, line)
            case Imm():
                return self.literal(operand, dtype)
            case Special(name):
                return self.special(name, line)
            case Sym():
                return self.address(operand, line)
        raise UnsupportedInstruction(f"operand {operand}", line)


def names_reserved(function: Function) -> bool:
    """Whether a function asks for what tiles of several warps share."""
    asked = Special(RESERVED_FOR_TILES)
    return any(isinstance(item, Instruction) and asked in item.operands for item in function.body)


def _literal(value: Imm, dtype: np.dtype[Any]) -> Lanes:
    if dtype == np.bool_:
        return uniform(bool(value.bits), dtype)
    if value.width:
        kind = np.dtype(f"f{value.width // 8}")
        written = np.array(value.bits, dtype=f"u{value.width // 8}").view(kind)
        if dtype.kind == "f":
            with np.errstate(over="ignore"):  # infinity, as ptxas has it
                return uniform(written.astype(dtype), dtype)
        return uniform(
            written.view(f"u{value.width // 8}").astype(f"u{dtype.itemsize}"), np.dtype(f"u{dtype.itemsize}")
        )
    bits = value.bits & ((1 << 8 * dtype.itemsize) - 1)
    return uniform(np.array(bits, dtype=f"u{dtype.itemsize}").view(dtype), dtype)
