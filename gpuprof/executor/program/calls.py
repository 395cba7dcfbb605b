# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Inline every device function that NVRTC left as a call, so that a kernel is one flat body.

Parameters are passed through `.param` variables; each (variable, byte offset) becomes a register.
"""

from collections.abc import Iterator
from dataclasses import replace

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.program.ptx import (
    Function,
    Imm,
    Instruction,
    Label,
    Mem,
    Module,
    Not,
    Operand,
    Reg,
    Sym,
    Variable,
    Vec,
)

#: What CUDA calls when the condition of an `assert` does not hold: the launch ends there.
_ASSERTION_FAILS = "__assertfail"


def inline_calls(entry: Function, module: Module) -> Function:
    """Return `entry` with its calls replaced by the bodies of what they call.

    A call of something without a body (`printf`, `malloc`), through a pointer or recursively stays, as an
    instruction that nothing models.

    Raises:
        UnsupportedInstruction: It passes arguments in a way that the executor does not know.
    """
    return _Inliner(entry, module).run()


class _Inliner:
    def __init__(self, entry: Function, module: Module) -> None:
        self.entry = entry
        self.module = module
        self.registers = dict(entry.registers)
        self.variables = [v for v in entry.variables if v.space != "param"]
        self.calls = 0

    def run(self) -> Function:
        passed = {v.name: v.name for v in self.entry.variables if v.space == "param"}
        body = list(self._expanded(self.entry.body, passed, (self.entry.name,)))
        return Function(
            self.entry.name,
            is_entry=True,
            params=self.entry.params,
            registers=self.registers,
            variables=self.variables,
            body=body,
            limits=self.entry.limits,
        )

    def _expanded(
        self, body: list[Instruction | Label], passed: dict[str, str], path: tuple[str, ...]
    ) -> Iterator[Instruction | Label]:
        """Yield `body` without calls; `passed` maps the `.param` variables that are not the kernel's own."""
        for item in body:
            if isinstance(item, Label):
                yield item
            elif item.opcode[0] == "call":
                yield from self._call(item, passed, path)
            elif item.opcode[:2] in (("ld", "param"), ("st", "param")) and self._is_passed(item, passed):
                yield from self._moves(item, passed)
            else:
                yield item

    @staticmethod
    def _is_passed(item: Instruction, passed: dict[str, str]) -> bool:
        return any(
            isinstance(operand, Mem) and isinstance(operand.base, Sym) and operand.base.name in passed
            for operand in item.operands
        )

    def _moves(self, item: Instruction, passed: dict[str, str]) -> Iterator[Instruction]:
        kind = item.opcode[-1]
        first, second = item.operands
        memory, value = (second, first) if item.opcode[0] == "ld" else (first, second)
        assert isinstance(memory, Mem)
        assert isinstance(memory.base, Sym)
        size = ARITHMETIC[kind].itemsize
        for i, part in enumerate(value.items if isinstance(value, Vec) else (value,)):
            name = f"{passed[memory.base.name]}+{memory.offset + i * size}"
            held = self.registers.setdefault(name, f"b{8 * size}")
            if ARITHMETIC[held].itemsize != size:
                raise UnsupportedInstruction(f"{item.name} of another width", item.line)
            pair = (part, Reg(name)) if item.opcode[0] == "ld" else (Reg(name), part)
            yield replace(item, opcode=("mov", f"b{8 * size}"), operands=pair)

    def _call(
        self, item: Instruction, passed: dict[str, str], path: tuple[str, ...]
    ) -> Iterator[Instruction | Label]:
        name = next((operand.name for operand in item.operands if isinstance(operand, Sym)), None)
        if name == _ASSERTION_FAILS:
            yield replace(item, opcode=("trap",), operands=())
            return
        callee = self.module.functions.get(name) if name else None
        if callee is None or name in path or item.guard:
            # What a call writes would be unknown; a thread that reaches it is stopped there.
            yield replace(item, opcode=(f"call of {name or 'a function pointer'}",), operands=())
            return
        lists = [operand for operand in item.operands if isinstance(operand, Vec)]
        index = item.operands.index(Sym(callee.name))
        results = [v for v in lists if item.operands.index(v) < index]
        arguments = [v for v in lists if item.operands.index(v) > index]
        self.calls += 1
        tag = f"{callee.name}#{self.calls}/"
        actual = {v.name: f"{tag}{v.name}" for v in callee.variables if v.space == "param"}
        for formal, given in ((callee.returns, results), (callee.params, arguments)):
            for variable, operand in zip(formal, given[0].items if given else (), strict=False):
                if not isinstance(operand, Sym):
                    raise UnsupportedInstruction("call with a register argument", item.line)
                actual[variable.name] = passed.get(operand.name, operand.name)
        self.registers.update({tag + register: kind for register, kind in callee.registers.items()})
        renamed = [_Renamer(callee, tag).statement(statement) for statement in callee.body]
        self.variables += [_own(v, tag) for v in callee.variables if v.space != "param"]
        yield from self._expanded(renamed, actual, (*path, callee.name))
        yield Label(f"{tag}end")


def _own(variable: Variable, tag: str) -> Variable:
    # A function's shared variable exists once per block, however often the function is inlined.
    return replace(variable, name=tag + variable.name) if variable.space == "local" else variable


class _Renamer:
    """Gives one inlined copy of a function its own registers, labels and stack, and ends it with a jump."""

    def __init__(self, callee: Function, tag: str) -> None:
        self.callee = callee
        self.tag = tag
        self.own = {v.name for v in callee.variables if v.space == "local"}
        self.own |= {item.name for item in callee.body if isinstance(item, Label)}

    def statement(self, item: Instruction | Label) -> Instruction | Label:
        if isinstance(item, Label):
            return Label(self.tag + item.name)
        guard = item.guard and self.tag + item.guard
        if item.opcode[0] == "ret":
            return replace(item, opcode=("bra",), operands=(Sym(f"{self.tag}end"),), guard=guard)
        return replace(item, operands=tuple(self.operand(o) for o in item.operands), guard=guard)

    def operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Reg):
            return Reg(self.tag + operand.name)
        if isinstance(operand, Sym) and operand.name in self.own:
            return Sym(self.tag + operand.name, operand.offset)
        if isinstance(operand, Vec):
            return Vec(tuple(self.operand(item) for item in operand.items))
        if isinstance(operand, Not):
            return Not(self.operand(operand.of))
        if isinstance(operand, Mem):
            base = self.operand(operand.base)
            assert isinstance(base, Reg | Sym | Imm)
            return Mem(base, operand.offset)
        return operand
