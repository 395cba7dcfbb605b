# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which functions call which, through which pointers too, and which call themselves."""

from functools import cached_property

from gpuprof.executor.program.ptx import Function, Instruction, Mem, Module, Operand, Reg, Signature, Sym, Vec

#: Where the addresses of functions lie: nothing is read or written there.
FUNCTION_WINDOW = 0x7D00_0000_0000
_STRIDE = 16


class CallGraph:
    """The calls of a module.

    Args:
        module: What it defines.
    """

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
                    named |= {name for operand in operands for name in _symbols(operand)}
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
            found: set[str] = set()
            waiting = self._called_by(name)
            while waiting:
                other = waiting.pop()
                if other not in found:
                    found.add(other)
                    waiting |= self._called_by(other)
            self._reached[name] = frozenset(found)
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


def _symbols(operand: Operand) -> set[str]:
    if isinstance(operand, Sym):
        return {operand.name}
    if isinstance(operand, Vec):
        return {name for inner in operand.items for name in _symbols(inner)}
    if isinstance(operand, Mem):
        return _symbols(operand.base)
    return set()
