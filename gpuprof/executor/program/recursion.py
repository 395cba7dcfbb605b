# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions that call themselves, or each other: one copy of each, and jumps between them.

A call saves the registers that its function still needs, each thread its own, says in a register where to
come back to, and jumps to the start of what it calls. All functions end at one place, which jumps back by
that register. Threads that are differently deep run together as far as their way is the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from msgspec import Struct

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.program.flow import SWITCH, live_after, reads_and_writes
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
from gpuprof.executor.program.shared_layout import aligned, laid_out


class Renamer:
    """Gives a copy of a function its own names, and ends it with a jump.

    `frame` says where its local variables lie in memory that each call takes anew, in bytes from what the
    register `base` holds; None where they lie in one place for the whole launch.
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
        # A function's shared variable exists once per block, however often the function is inlined.
        return replace(variable, name=self.tag + variable.name) if variable.space == "local" else variable

    def statement(self, item: Instruction | Label) -> Instruction | Label:
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


#: Stands for a call between the functions until all of them are read.
RECURSE = "recurse"
_ALIGNMENT = 16


class _Call(Struct):
    """A call between the functions: of which, and the names of what it takes and returns."""

    callee: str
    item: Instruction
    results: list[str]
    arguments: list[str]


class Recursion:
    """Functions that call each other, called from outside at one place.

    `registers` are the kernel's, to which it adds.
    """

    def __init__(
        self, tag: str, functions: Mapping[str, Function], registers: dict[str, str], stack_pointer: str
    ) -> None:
        self.functions = functions
        self._tag = tag
        self._registers = registers
        self._stack_pointer = stack_pointer
        self._calls: list[_Call] = []
        self._way_back = f"{tag}way back"
        registers[self._way_back] = "b32"
        self._frames = {name: _frame(function) for name, function in functions.items()}

    def tag_of(self, name: str) -> str:
        """Return what the names of one function's copy begin with."""
        return f"{self._tag}{name}/"

    def passed(self, name: str) -> dict[str, str]:
        """Return what the registers of a function's `.param` variables are named by."""
        function = self.functions[name]
        own = [v for v in function.variables if v.space == "param"]
        return {v.name: self.tag_of(name) + v.name for v in (*function.params, *function.returns, *own)}

    def renamer(self, function: Function) -> Renamer:
        offsets, size = self._frames[function.name]
        base = self._base(function.name)
        if size:
            self._registers[base] = "b64"
        return Renamer(function, self.tag_of(function.name), f"{self._tag}return", offsets, base)

    def call(self, name: str, item: Instruction, results: list[str], arguments: list[str]) -> Instruction:
        """Return what stands for a call of one of them by another, until `body` resolves it."""
        self._calls.append(_Call(name, item, results, arguments))
        return replace(item, opcode=(RECURSE,), operands=(Imm(len(self._calls)),), guard=None)

    def body(
        self,
        entry: str,
        item: Instruction,
        results: list[str],
        arguments: list[str],
        bodies: Mapping[str, list[Instruction | Label]],
    ) -> Iterator[Instruction | Label]:
        """Yield what runs in the place of the call from outside.

        `results` and `arguments` name what the call from outside, `item`, gives and takes; calls between
        `bodies` are unresolved.
        """
        way_back, end, before = Reg(self._way_back), f"{self._tag}end", f"{self._tag}stack"
        self._registers[before] = "b64"
        yield replace(item, opcode=("stacksave", "u64"), operands=(Reg(before),))
        yield from self._entered(_Call(entry, item, results, arguments), 0)
        for name, body in bodies.items():
            yield Label(self._start(name))
            if size := self._frames[name][1]:
                operands = (Reg(self._base(name)), Imm(size), Imm(_ALIGNMENT))
                yield replace(item, opcode=("alloca", "u64"), operands=operands)
            yield from self._resolved(body)
        yield Label(f"{self._tag}return")
        numbers = range(1, len(self._calls) + 1)
        values: Operand = Vec(tuple(Imm(number) for number in numbers))
        goals: Operand = Vec(tuple(Sym(self._after(number)) for number in numbers))
        yield replace(item, opcode=(SWITCH,), operands=(way_back, values, goals))
        yield Label(end)
        yield replace(item, opcode=("stackrestore", "u64"), operands=(Reg(before),))
        yield from self._copied(item, self._returned(entry), results)

    def _resolved(self, body: list[Instruction | Label]) -> Iterator[Instruction | Label]:
        """Yield a function's copy with jumps in the place of calls."""
        prepared = [self._with_registers(item) for item in body]
        returned: list[Instruction | Label] = [Label(f"{self._tag}return"), Instruction(("ret",), ())]
        kept = iter(live_after(prepared + returned, RECURSE))
        for item in prepared:
            if isinstance(item, Label) or item.opcode[0] != RECURSE:
                yield item
                continue
            _, written = reads_and_writes(item)
            needed = sorted(next(kept) - set(written))
            number = item.operands[-1]
            assert isinstance(number, Imm)
            frame = Vec(tuple(Reg(name) for name in (*needed, self._way_back, self._stack_pointer)))
            call = self._calls[number.bits - 1]
            yield replace(item, opcode=("save_frame",), operands=(frame,))
            yield from self._entered(call, number.bits)
            yield Label(self._after(number.bits))
            yield replace(item, opcode=("restore_frame",), operands=(frame,))
            yield from self._copied(item, self._returned(call.callee), call.results)

    def _with_registers(self, item: Instruction | Label) -> Instruction | Label:
        """Give what stands for a call the registers that it writes and reads."""
        if isinstance(item, Label) or item.opcode[0] != RECURSE:
            return item
        number = item.operands[-1]
        assert isinstance(number, Imm)
        call = self._calls[number.bits - 1]
        parts = [
            Vec(tuple(Reg(r) for n in names for r in self._of(n))) for names in (call.results, call.arguments)
        ]
        return replace(item, operands=(*parts, number))

    def _entered(self, call: _Call, number: int) -> Iterator[Instruction | Label]:
        """Yield the jump into a function, its arguments in place."""
        formals = [self.passed(call.callee)[v.name] for v in self.functions[call.callee].params]
        yield from self._copied(call.item, call.arguments, formals)
        yield replace(call.item, opcode=("mov", "b32"), operands=(Reg(self._way_back), Imm(number)))
        yield replace(call.item, opcode=("bra",), operands=(Sym(self._start(call.callee)),))

    def _copied(self, item: Instruction, sources: list[str], targets: list[str]) -> Iterator[Instruction]:
        """Yield moves of every register of some `.param` variables to those of others."""
        for source, target in zip(sources, targets, strict=False):
            for name in self._of(source):
                other = target + name.removeprefix(source)
                kind = self._registers[name]
                wanted = self._registers.setdefault(other, kind)
                opcode: tuple[str, ...] = ("mov", kind)
                if wanted != kind:  # LLVM passes small integers as words, and loads a byte of them
                    if len(self._of(source)) > 1 or len(self._of(target)) > 1:
                        raise UnsupportedInstruction("call with an argument of another width", item.line)
                    opcode = ("cvt", f"u{wanted[1:]}", f"u{kind[1:]}")
                yield replace(item, opcode=opcode, operands=(Reg(other), Reg(name)))

    def _of(self, variable: str) -> list[str]:
        return [name for name in self._registers if name.startswith(f"{variable}+")]

    def _returned(self, name: str) -> list[str]:
        return [self.passed(name)[v.name] for v in self.functions[name].returns]

    def _start(self, name: str) -> str:
        return f"{self.tag_of(name)}start"

    def _base(self, name: str) -> str:
        return f"{self.tag_of(name)}frame"

    def _after(self, number: int) -> str:
        return f"{self._tag}after {number}"


def _frame(function: Function) -> tuple[dict[str, int], int]:
    """Return where a function's local variables lie in its frame, and the bytes of the frame."""
    offsets, end = laid_out(variable for variable in function.variables if variable.space == "local")
    return offsets, aligned(end, _ALIGNMENT)
