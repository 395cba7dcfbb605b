# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One copy of a function's body inside a kernel: registers, labels and stack of its own."""

from collections.abc import Mapping
from dataclasses import replace

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.program.ptx import (
    Function,
    Imm,
    Instruction,
    Label,
    Mem,
    Not,
    Operand,
    Reg,
    Sym,
    Variable,
    Vec,
)


class Renamer:
    """Gives a copy of a function its own names, and ends it with a jump.

    Args:
        callee: The function.
        tag: What its names begin with.
        end: The label that it jumps to instead of returning.
        frame: Where its local variables lie in memory that each call takes anew, in bytes from what the
            register `base` holds; None where they lie in one place for the whole launch.
        base: That register.
    """

    def __init__(
        self,
        callee: Function,
        tag: str,
        end: str,
        frame: Mapping[str, int] | None = None,
        base: str = "",
    ) -> None:
        self.tag = tag
        self._end = end
        self._frame = frame or {}
        self._base = base
        self._own = {v.name for v in callee.variables if v.space == "local"}
        self._own |= {item.name for item in callee.body if isinstance(item, Label)}

    def places(self, variable: Variable) -> bool:
        """Tell whether a variable of the function needs memory of the kernel's."""
        return variable.space != "param" and variable.name not in self._frame

    def variable(self, variable: Variable) -> Variable:
        """Return one of its variables as the kernel's."""
        # A function's shared variable exists once per block, however often the function is inlined.
        return replace(variable, name=self.tag + variable.name) if variable.space == "local" else variable

    def statement(self, item: Instruction | Label) -> Instruction | Label:
        """Return one of its statements as the kernel's."""
        if isinstance(item, Label):
            return Label(self.tag + item.name)
        guard = item.guard and self.tag + item.guard
        if item.opcode[0] == "ret":
            return replace(item, opcode=("bra",), operands=(Sym(self._end),), guard=guard)
        source = item.operands[-1] if item.operands else None
        if isinstance(source, Sym) and source.name in self._frame:
            return self._address(item, source, guard)
        return replace(item, operands=tuple(self._operand(o) for o in item.operands), guard=guard)

    def _address(self, item: Instruction, source: Sym, guard: str | None) -> Instruction:
        """Take the address of a variable in the frame."""
        if item.opcode[0] != "mov":
            raise UnsupportedInstruction(f"{item.name} of a recursive function's variable", item.line)
        offset = Imm(self._frame[source.name] + source.offset)
        operands = (self._operand(item.operands[0]), Reg(self._base), offset)
        return replace(item, opcode=("add", "s64"), operands=operands, guard=guard)

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Reg):
            return Reg(self.tag + operand.name)
        if isinstance(operand, Sym) and operand.name in self._own:
            return Sym(self.tag + operand.name, operand.offset)
        if isinstance(operand, Vec):
            return Vec(tuple(self._operand(item) for item in operand.items))
        if isinstance(operand, Not):
            return Not(self._operand(operand.of))
        if isinstance(operand, Mem):
            if isinstance(operand.base, Sym) and operand.base.name in self._frame:
                return Mem(
                    Reg(self._base), operand.offset + operand.base.offset + self._frame[operand.base.name]
                )
            base = self._operand(operand.base)
            assert isinstance(base, Reg | Sym | Imm)
            return Mem(base, operand.offset)
        return operand
