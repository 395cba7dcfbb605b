# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Inline every device function that NVRTC left as a call, so that a kernel is one flat body.

Parameters are passed through `.param` variables; each (variable, byte offset) becomes a register. A call
through a pointer becomes a switch over the functions whose address was taken and that take and return the
same. Functions that call themselves, or each other, stand in the body once for each call from outside, and
`recursion` makes their calls of each other jumps.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import zip_longest

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.memory.windows import FUNCTION_WINDOW
from gpuprof.executor.program.flow import SWITCH, reached
from gpuprof.executor.program.ptx import (
    Function,
    Imm,
    Instruction,
    Label,
    Mem,
    Module,
    Operand,
    Reg,
    Signature,
    Sym,
    Variable,
    Vec,
    symbols_of,
)
from gpuprof.executor.program.recursion import Recursion, Renamer

_STRIDE = 16


class CallGraph:
    """The calls of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._reached: dict[str, frozenset[str]] = {}

    @cached_property
    def addresses(self) -> dict[str, int]:
        """The address of every function, the same for all kernels of the module."""
        return {name: FUNCTION_WINDOW + _STRIDE * i for i, name in enumerate(self.module.functions, 1)}

    @cached_property
    def _taken(self) -> dict[Signature, list[str]]:
        """The functions whose address is taken anywhere, by what they take and return."""
        functions = self.module.functions
        named = {r.symbol for v in self.module.variables for r in v.references}
        for function in functions.values():
            for item in function.body:
                if isinstance(item, Instruction):
                    operands = item.operands if item.opcode[0] != "call" else ()
                    named |= {name for operand in operands for name in symbols_of((operand,))}
        taken: dict[Signature, list[str]] = {}
        for name, function in functions.items():
            if name in named:
                taken.setdefault(function.signature, []).append(name)
        return taken

    def callees(self, caller: Function, item: Instruction) -> list[str]:
        """Return the functions that a call may go to: of one through a pointer, all that fit.

        A function without a body is among them by its name, so that who reaches it can be told.
        """
        target = called(item)
        if isinstance(target, Sym):
            return [target.name]
        last = item.operands[-1]
        if not isinstance(last, Sym):
            return []
        if last.name in caller.tables:
            return list(caller.tables[last.name])
        signature = caller.prototypes.get(last.name)
        return self._taken.get(signature, []) if signature is not None else []

    def together(self, name: str) -> list[str]:
        """Return the functions that call `name` and are called by it, itself among them, if any."""
        functions = self.module.functions
        return [other for other in functions if other in self._from(name) and name in self._from(other)]

    def _from(self, name: str) -> frozenset[str]:
        """Return the functions that may run before one that was called returns."""
        if name not in self._reached:
            self._reached[name] = frozenset(reached(self._called_by(name), self._called_by))
        return self._reached[name]

    def _called_by(self, name: str) -> set[str]:
        function = self.module.functions.get(name)
        if function is None:
            return set()
        calls = [i for i in function.body if isinstance(i, Instruction) and i.opcode[0] == "call"]
        return {callee for item in calls for callee in self.callees(function, item)}


def called(item: Instruction) -> Operand | None:
    """Return what a call names as its function: a symbol, or a register that holds the address."""
    return next((operand for operand in item.operands if isinstance(operand, Sym | Reg)), None)


#: What CUDA provides as functions without a body: bytes of what each returns.
SYSTEM_CALLS = {"vprintf": 4, "malloc": 8, "free": 0, "__assertfail": 0}
#: The register that says where a thread's stack ends, and the memory that it lies in.
STACK_POINTER = "%stack"
STACK = Variable("the stack", "local", 16, 1024)
#: Instructions of a kernel with all calls inlined; a chain of calls that doubles at each would not end.
_MOST = 400_000
_UNEVEN = "argument of a recursive function by its address, or in pieces of different width"


def inline_calls(entry: Function, module: Module) -> Function:
    """Return `entry` with its calls replaced by the bodies of what they call.

    A call of something without a body stays, as an instruction that nothing models, or as one of its own if
    it is one of `SYSTEM_CALLS`.
    """
    in_memory: set[str] = set()
    while True:
        try:
            return _Inliner(entry, module, in_memory).run()
        except _HeldInMemory as found:
            in_memory.add(found.name)


class _HeldInMemory(Exception):
    """A `.param` variable's address is taken, or it is read in pieces of another width than written."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Inliner:
    def __init__(self, entry: Function, module: Module, in_memory: set[str]) -> None:
        self.entry = entry
        #: What `.param` variables are named by that are local memory instead of registers.
        self.in_memory = in_memory
        #: Of the others, the pieces in use: bytes by byte offset.
        self.pieces: dict[str, dict[int, int]] = {}
        self.module = module
        self.graph = CallGraph(module)
        self.registers = dict(entry.registers)
        self.variables = [v for v in entry.variables if v.space != "param"]
        self.calls = 0
        self.length = 0
        #: The recursions that are being read, innermost last.
        self.recursions: list[Recursion] = []

    def run(self) -> Function:
        passed = {v.name: v.name for v in self.entry.variables if v.space == "param"}
        self.sizes = {v.name: v.size for v in self.entry.variables}
        body = list(self._expanded(self.entry, self.entry.body, passed))
        if any(isinstance(i, Instruction) and i.opcode[0] in ("alloca", "stacksave") for i in body):
            self.registers[STACK_POINTER] = "b64"
            self.variables.append(STACK)
            body.insert(0, Instruction(("mov", "b64"), (Reg(STACK_POINTER), Sym(STACK.name))))
        return replace(self.entry, registers=self.registers, variables=self.variables, body=body, tables={})

    def _expanded(
        self, function: Function, body: list[Instruction | Label], passed: dict[str, str]
    ) -> Iterator[Instruction | Label]:
        """Yield the body of a function without calls.

        The body is a renamed copy of the function's. `passed` says what registers `.param` variables become,
        of those that are not the kernel's own.
        """
        for original, item in zip(function.body, body, strict=True):
            self.length += 1
            if self.length > _MOST:
                raise UnsupportedInstruction(f"calls that become more than {_MOST:,} instructions", 0)
            if isinstance(item, Label):
                yield item
            elif item.opcode[0] == "call":
                assert isinstance(original, Instruction)
                yield from self._guarded(item, partial(self._call, function, original, passed))
            elif item.opcode[0] == "brx":
                yield from self._guarded(item, partial(self._jump, function, original, body))
            elif item.opcode[:2] in (("ld", "param"), ("st", "param")) and self._is_passed(item, passed):
                yield from self._moves(item, passed)
            elif item.opcode[0] == "mov" and isinstance(of := item.operands[-1], Sym) and of.name in passed:
                if (name := passed[of.name]) not in self.in_memory:
                    raise _HeldInMemory(name)
                yield self._in_memory(
                    item, name, replace(item, operands=(item.operands[0], Sym(name, of.offset)))
                )
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
        if (whole := passed[memory.base.name]) in self.in_memory:
            yield self._access(item, whole, memory)
            return
        for i, part in enumerate(value.items if isinstance(value, Vec) else (value,)):
            name = f"{whole}+{memory.offset + i * size}"
            self.registers.setdefault(name, f"b{8 * size}")
            self._check_pieces(whole, memory.offset + i * size, size)
            pair = (part, Reg(name)) if item.opcode[0] == "ld" else (Reg(name), part)
            # What a constant is follows from the instruction's type.
            of = kind if isinstance(part, Imm) else f"b{8 * size}"
            yield replace(item, opcode=("mov", of), operands=pair)

    def _check_pieces(self, name: str, start: int, size: int) -> None:
        """Make sure that the pieces of a `.param` variable, each a register, do not overlap."""
        pieces = self.pieces.setdefault(name, {})
        if pieces.get(start) == size:
            return
        if any(start < other + its and other < start + size for other, its in pieces.items()):
            raise _HeldInMemory(name)
        pieces[start] = size

    def _access(self, item: Instruction, name: str, memory: Mem) -> Instruction:
        """Return a load or store of local memory in the place of one of a `.param` variable."""
        moved = Mem(Sym(name), memory.offset)
        operands = tuple(moved if operand is memory else operand for operand in item.operands)
        opcode = (item.opcode[0], "local", *item.opcode[2:])
        return self._in_memory(item, name, replace(item, opcode=opcode, operands=operands))

    def _in_memory(self, item: Instruction, name: str, placed: Instruction) -> Instruction:
        """Return `placed`, once there is memory for a `.param` variable; or what stops who reaches it."""
        if all(variable.name != name for variable in self.variables):
            if name not in self.sizes:
                return replace(item, opcode=(_UNEVEN,), operands=())
            self.variables.append(Variable(name, "local", 16, self.sizes[name]))
        return placed

    def _guarded(
        self, item: Instruction, expanded: Callable[[Instruction], Iterator[Instruction | Label]]
    ) -> Iterator[Instruction | Label]:
        """Yield what an instruction becomes, and around it a branch if it has a guard."""
        if item.guard is None:
            yield from expanded(item)
            return
        self.calls += 1
        around = f"around {self.calls}"
        yield replace(item, opcode=("bra",), operands=(Sym(around),), negated=not item.negated)
        yield from expanded(replace(item, guard=None, negated=False))
        yield Label(around)

    def _jump(
        self,
        function: Function,
        original: Instruction | Label,
        body: list[Instruction | Label],
        item: Instruction,
    ) -> Iterator[Instruction | Label]:
        """`brx.idx`: a switch over the labels of its table."""
        assert isinstance(original, Instruction)
        table = original.operands[1]
        if not isinstance(table, Sym) or table.name not in function.tables:
            yield replace(item, operands=())
            yield Instruction(("exit",), (), line=item.line)
            return
        new = {
            old.name: now.name
            for old, now in zip(function.body, body, strict=True)
            if isinstance(old, Label) and isinstance(now, Label)
        }
        goals = [new[name] for name in function.tables[table.name]]
        yield from self._switch(item, item.operands[0], list(enumerate(goals)), goals[-1])

    def _switch(
        self, item: Instruction, value: Operand, cases: list[tuple[int, str]], after: str
    ) -> Iterator[Instruction | Label]:
        """Yield a jump to the label of a register's value; any other value is reported.

        What is reported goes to `after`, where others go too: lanes meet again as if it were not there.
        """
        goals = Vec(tuple(Sym(goal) for _, goal in cases))
        values = Vec(tuple(Imm(number) for number, _ in cases))
        yield replace(item, opcode=(SWITCH, item.opcode[0]), operands=(value, values, goals), guard=None)
        yield replace(item, opcode=("no_target",), operands=(value,), guard=None)
        yield replace(item, opcode=("bra",), operands=(Sym(after),), guard=None)

    def _call(
        self, caller: Function, original: Instruction, passed: dict[str, str], item: Instruction
    ) -> Iterator[Instruction | Label]:
        names = self.graph.callees(caller, original)
        item = yield from self._constants_passed(item, self.module.functions.get(names[0] if names else ""))
        target = called(item)
        lists = [(i, operand) for i, operand in enumerate(item.operands) if isinstance(operand, Vec)]
        index = item.operands.index(target) if target is not None else 0
        results = self._passed_names(item, [v for i, v in lists if i < index], passed)
        arguments = self._passed_names(item, [v for i, v in lists if i > index], passed)
        if isinstance(target, Sym):
            yield from self._enter(names[0], item, results, arguments)
            return
        if target is None or not names:
            yield replace(item, opcode=("call of a function pointer that no function fits",), operands=())
            return
        self.calls += 1
        tag = f"call {self.calls}/"
        addresses = self.graph.addresses
        cases = [(addresses[name], tag + name) for name in names if name in addresses]
        yield from self._switch(item, target, cases, f"{tag}end")
        for name in names:
            yield Label(tag + name)
            yield from self._enter(name, item, results, arguments)
            yield replace(item, opcode=("bra",), operands=(Sym(f"{tag}end"),))
        yield Label(f"{tag}end")

    def _constants_passed(
        self, item: Instruction, callee: Function | None
    ) -> Generator[Instruction, None, Instruction]:
        """Yield the stores of a call's constant arguments; return the call that passes where they are."""
        formals = callee.params if callee else []
        operands = list(item.operands)
        for i, operand in enumerate(operands):
            if not isinstance(operand, Vec) or not any(isinstance(each, Imm) for each in operand.items):
                continue
            given = list(operand.items)
            for j, (constant, formal) in enumerate(zip_longest(given, formals[: len(given)])):
                if isinstance(constant, Imm):
                    self.calls += 1
                    kind = formal.kind.replace("pred", "b32") if formal else "b64"
                    name = f"constant {self.calls}"
                    self.sizes[name] = ARITHMETIC[kind].itemsize
                    given[j] = place = Sym(name)
                    store = replace(item, opcode=("st", "param", kind), operands=(Mem(place), constant))
                    yield from self._moves(store, {name: name})
            operands[i] = Vec(tuple(given))
        return replace(item, operands=tuple(operands))

    @staticmethod
    def _passed_names(item: Instruction, lists: list[Vec], passed: dict[str, str]) -> list[str]:
        names = []
        for operand in lists[0].items if lists else ():
            if not isinstance(operand, Sym):
                raise UnsupportedInstruction("call with a register argument", item.line)
            names.append(passed.get(operand.name, operand.name))
        return names

    def _enter(
        self, name: str, item: Instruction, results: list[str], arguments: list[str]
    ) -> Iterator[Instruction | Label]:
        """Yield what runs in the place of a call of one function."""
        callee = self.module.functions.get(name)
        if callee is None and name in SYSTEM_CALLS:
            yield self._system_call(name, item, results, arguments)
        elif callee is None:
            # What a call writes would be unknown; a thread that reaches it is stopped there.
            yield replace(item, opcode=(f"call of {name}",), operands=())
        elif self.graph.together(name) and self.in_memory & {*results, *arguments}:
            yield replace(item, opcode=(_UNEVEN,), operands=())
        elif inner := next((r for r in self.recursions if name in r.functions), None):
            yield inner.call(name, item, results, arguments)
        elif together := self.graph.together(name):
            yield from self._recursion(name, together, item, results, arguments)
        else:
            yield from self._inlined(callee, results, arguments)

    def _system_call(
        self, name: str, item: Instruction, results: list[str], arguments: list[str]
    ) -> Instruction:
        target: Operand = Sym("_")
        if results and SYSTEM_CALLS[name]:
            target = Reg(f"{results[0]}+0")
            self.registers.setdefault(target.name, f"b{8 * SYSTEM_CALLS[name]}")
        return replace(item, opcode=(name,), operands=(target, *(Reg(f"{a}+0") for a in arguments)))

    def _inlined(
        self, callee: Function, results: list[str], arguments: list[str]
    ) -> Iterator[Instruction | Label]:
        self.calls += 1
        tag = f"{callee.name}#{self.calls}/"
        actual = {v.name: f"{tag}{v.name}" for v in callee.variables if v.space == "param"}
        self.sizes |= {actual[v.name]: v.size for v in callee.variables if v.name in actual}
        for formal, given in ((callee.returns, results), (callee.params, arguments)):
            actual |= {v.name: name for v, name in zip(formal, given, strict=False)}
        grows = any(isinstance(i, Instruction) and i.opcode[0] == "alloca" for i in callee.body)
        if grows:  # what it takes of the stack is free again when it returns
            self.registers[f"{tag}stack"] = "b64"
            yield Instruction(("stacksave", "u64"), (Reg(f"{tag}stack"),))
        yield from self._copy(callee, tag, Renamer(callee, tag, f"{tag}end"), actual)
        yield Label(f"{tag}end")
        if grows:
            yield Instruction(("stackrestore", "u64"), (Reg(f"{tag}stack"),))

    def _copy(
        self, callee: Function, tag: str, renamer: Renamer, passed: dict[str, str]
    ) -> Iterator[Instruction | Label]:
        self.registers.update({tag + register: kind for register, kind in callee.registers.items()})
        self.variables += [renamer.variable(v) for v in callee.variables if renamer.places(v)]
        renamed = [renamer.statement(statement) for statement in callee.body]
        yield from self._expanded(callee, renamed, passed)

    def _recursion(
        self, name: str, together: list[str], item: Instruction, results: list[str], arguments: list[str]
    ) -> Iterator[Instruction | Label]:
        """Yield the bodies of functions that call each other, entered at `name`."""
        self.calls += 1
        functions = {other: self.module.functions[other] for other in together}
        recursion = Recursion(f"{name}#{self.calls}/", functions, self.registers, STACK_POINTER)
        self.recursions.append(recursion)
        bodies = {}
        for other, function in functions.items():
            tag, renamer, passed = (
                recursion.tag_of(other),
                recursion.renamer(function),
                recursion.passed(other),
            )
            bodies[other] = list(self._copy(function, tag, renamer, passed))
        self.recursions.pop()
        yield from recursion.body(name, item, results, arguments, bodies)
