# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read PTX text into functions, variables and instructions. Syntax only: no meaning is given here."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.program.constants import base_and_offset, literal
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
    Signature,
    Special,
    Sym,
    Variable,
    Vec,
    leaves,
)
from gpuprof.executor.program.source_places import LOCATION, places_of
from gpuprof.executor.program.variables import TYPE_BYTES, declared, split_operands, variable_of
from gpuprof.ptx_directives import launch_limits, target_of_ptx

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ALIAS = re.compile(r"\.alias\s+([\w$]+)\s*,\s*([\w$]+)")
_OPAQUE = re.compile(r"\.(?:tex|sampler|surf)ref\b")
_HEADER = re.compile(r"\.(entry|func)\b")
_BEGINS = re.compile(
    r"^[ \t]*\.(?:visible|extern|weak|common|entry|func|global|const|shared|section|alias)\b",
    re.MULTILINE,
)
_REGISTERS = re.compile(r"\.reg\s*(?:\.v([24])\s*)?\.(\w+)\s+(.*)", re.DOTALL)
_PASSED_VECTOR = re.compile(r"\.reg\s*\.v([24])\s*\.(\w+)\s+([\w$%]+)")
_GUARD = re.compile(r"@\s*(!?)\s*([\w$%]+)\s+")
#: Its operands may follow at once, as strings of inline PTX that are written side by side give.
_MNEMONIC = re.compile(r"\S[^\s{\[(%]*")
_SPACES = frozenset(("global", "shared", "local", "param", "const"))


def parse(text: str) -> Module:
    """Parse one PTX module as compilers print it; without a `.loc` its lines are those of the text.

    Raises:
        UnsupportedInstruction: The text uses syntax that the executor does not model.
    """
    text = _COMMENT.sub(lambda comment: " " + "\n" * comment[0].count("\n"), text)
    architecture, _ = target_of_ptx(text) or (0, "")
    module = Module(architecture)
    own_lines = not LOCATION.search(text)
    aliases: list[tuple[str, str]] = []
    position = 0
    statement = re.compile(r"\s*([^;{]*)([;{])", re.DOTALL)
    while found := statement.match(text, position):
        head, stop = found.group(1), found.group(2)
        # Before it may stand directives, and functions that are only declared: old compilers end neither.
        head = head[max((each.start() for each in _BEGINS.finditer(head)), default=0) :].strip()
        position = found.end()
        if _HEADER.search(head):
            function = _function_header(head)
            if stop == "{":
                end = _matching_brace(text, position)
                first_line = text.count("\n", 0, position) + 1
                try:
                    _Body(function, module, text[position:end], first_line, own_lines).read()
                except RecursionError:
                    raise UnsupportedInstruction("operand of so many brackets", 0) from None
                module.functions[function.name] = function
                module.variables += [v for v in function.variables if v.space in ("global", "const")]
                position = end + 1
        elif _OPAQUE.search(head):
            continue  # what reads a texture by such a variable is told
        elif alias := _ALIAS.match(head):
            aliases.append((alias[1], alias[2]))
        elif head.startswith((".visible", ".extern", ".weak", ".global", ".const", ".shared", ".common")):
            if stop == "{":  # an initialiser list: the declaration goes on to its semicolon
                end = text.index(";", position)
                head, position = head + "{" + text[position:end], end + 1
            module.variables += declared(head)
        elif stop == "{":
            position = _matching_brace(text, position) + 1
    for name, of in aliases:
        if of in module.functions:
            module.functions[name] = replace(module.functions[of], name=name)
    return module


def _matching_brace(text: str, position: int) -> int:
    depth = 1
    for found in re.finditer(r"[{}]", text[position:]):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return position + found.start()
    raise UnsupportedInstruction("unbalanced braces", 0)


def _function_header(text: str) -> Function:
    kind = _HEADER.search(text)
    assert kind is not None
    # A vector is passed as its elements.
    after = _PASSED_VECTOR.sub(
        lambda found: ", ".join(f".reg .{found[2]} {found[3]}.{part}" for part in "xyzw"[: int(found[1])]),
        text[kind.end() :],
    )
    found = re.match(r"\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?", after, re.DOTALL)
    if not found:
        raise UnsupportedInstruction("function header", 0)
    returns, name, params = found.groups()
    limits = launch_limits(after[found.end() :])
    passed = re.findall(r"\.reg\s*\.(\w+)\s+([\w$%.]+)", found[0])
    registers = {register: kind for kind, register in passed}
    entry = kind[1] == "entry"
    return Function(name, _variables(params), _variables(returns), registers, limits=limits, entry=entry)


def _variables(listing: str | None) -> list[Variable]:
    return [variable_of(part.strip()) for part in (listing or "").split(",") if part.strip()]


def _signature(text: str) -> Signature:
    """Read a prototype: `(.param .b32 _) _ (.param .b64 _)`, either list possibly missing."""
    found = re.match(r"\s*(?:\(([^)]*)\))?\s*_\s*(?:\(([^)]*)\))?", text, re.DOTALL)
    returns, params = found.groups() if found else ("", "")
    return Signature(*(tuple(v.size for v in _variables(part)) for part in (returns, params)))


class _Body:
    """Reads one function body, renaming what nested scopes declare so that every name is unique."""

    def __init__(
        self, function: Function, module: Module, text: str, first_line: int, own_lines: bool
    ) -> None:
        self.function = function
        self.text = text
        self.ptx_line = first_line
        self.scopes: list[dict[str, str]] = [{}]
        #: Operands outside nested scopes, by their text.
        self.operands: dict[str, Operand] = {}
        self.vectors: dict[str, Vec] = {}
        for stem in {name[:-2] for name in function.registers if "." in name}:
            self.vectors[stem] = Vec(tuple(Reg(name) for name in function.registers if name[:-2] == stem))
        self.outside = {v.name for v in module.variables}
        #: Where variables are that an access may name without saying it.
        self.spaces = {v.name: v.space for v in module.variables if v.space == "shared"}
        self.scope_count = 0
        self.line = 0
        self.own_file = ""
        self.own_lines = own_lines

    def read(self) -> None:
        """Fill the function's registers, variables and body."""
        read = list(self._statements())
        statements = [statement for statement, _ in read]
        taken = [v for v in self.function.params if v.space == "reg"]
        given = [v for v in self.function.returns if v.space == "reg"]
        for v in taken:
            self.function.body += self._passing("ld", Reg(v.name), v)
        for position, (statement, self.ptx_line) in enumerate(read):
            if statement == "{":
                self.scopes.append({})
                self.scope_count += 1
                self._declare_labels(statements, position + 1)
            elif statement == "}":
                self.scopes.pop()
            elif re.match(r"\.loc\b", statement):
                self._location(statement)
            elif statement.endswith(":"):
                self.function.body.append(Label(self._renamed(statement[:-1])))
            elif statement.startswith(".reg"):
                self._declare(statement)
            elif statement.startswith((".shared", ".local", ".param", ".const", ".global")):
                for variable in declared(statement):
                    fresh = replace(variable, name=self._fresh(variable.name))
                    self.function.variables.append(fresh)
                    if fresh.space in ("shared", "local"):
                        self.spaces[fresh.name] = fresh.space
            elif statement.startswith((".callprototype", ".branchtargets", ".calltargets")):
                self._table(statement)
            elif statement.startswith((".pragma", ".file")):
                continue
            elif statement.startswith("."):
                raise UnsupportedInstruction(statement.split()[0], self.line)
            elif statement:
                item = self._instruction(statement)
                if item.opcode[0] == "ret":
                    for v in given:
                        self.function.body += self._passing("st", Reg(v.name), v, item)
                if item.opcode[0] == "call":
                    self.function.body += self._called(item)
                elif item.opcode[0] == "mov" and item.opcode[1] in ("v2", "v4"):
                    self.function.body += self._moved(item)
                else:
                    self.function.body.append(item)

    def _statements(self) -> Iterator[tuple[str, int]]:
        """Yield the statements, each with the line of the PTX text on which it begins."""
        position, text, line, counted = 0, self.text, self.ptx_line, 0
        token = re.compile(r"\s*(?:(\.loc\b[^\n]*)|([{}])|([\w$%]+\s*:)(?!:)|([^;]+);)", re.DOTALL)
        while found := token.match(text, position):
            loc, brace, label, statement = found.groups()
            begin = found.start(found.lastindex or 0)
            line, counted = line + text.count("\n", counted, begin), begin
            yield (loc or brace or (label and label.replace(" ", "")) or statement).strip(), line
            position = found.end()

    def _declare_labels(self, statements: list[str], position: int) -> None:
        """Find the labels of a scope that begins at `position`: branches may name them before they come."""
        depth = 1
        while depth and position < len(statements):
            statement = statements[position]
            depth += (statement == "{") - (statement == "}")
            if depth == 1 and statement.endswith(":"):
                self._fresh(statement[:-1])
            position += 1

    def _location(self, text: str) -> None:
        found = LOCATION.match(text)
        if not found:
            return
        places = places_of(found)
        if not self.own_file:  # the first location of a function is its own header
            self.own_file = places[-1][0]
        line = next((line for file, line in places if file == self.own_file), 0)
        self.line = line or self.line  # line 0 means "as before"

    def _renamed(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def _fresh(self, name: str) -> str:
        if len(self.scopes) == 1:
            self.operands.clear()  # that name it meant something else
            if name not in self.outside:
                return name
        self.scopes[-1][name] = f"{name}@{self.scope_count}"
        return self.scopes[-1][name]

    def _declare(self, text: str) -> None:
        found = _REGISTERS.match(text)
        if not found:
            raise UnsupportedInstruction(text, self.line)
        length, kind, names = found.groups()
        for name in (part.strip() for part in names.split(",")):
            counted = re.match(r"(.*)<(\d+)>$", name)
            stem, count = (counted[1], int(counted[2])) if counted else (name, 0)
            for each in [f"{stem}{i}" for i in range(count)] if counted else [name]:
                fresh = self._fresh(each)
                parts = [f"{fresh}.{part}" for part in "xyzw"[: int(length or 0)]]
                self.function.registers.update(dict.fromkeys(parts or [fresh], kind))
                if parts:
                    self.vectors[fresh] = Vec(tuple(map(Reg, parts)))

    def _table(self, text: str) -> None:
        """Read what a label before it names: a prototype, or where jumps and calls by a register may go."""
        label = self.function.body.pop()
        assert isinstance(label, Label)
        directive, rest = text.split(None, 1)
        if directive == ".callprototype":
            self.function.prototypes[label.name] = _signature(rest)
        else:
            self.function.tables[label.name] = tuple(self._renamed(name) for name in split_operands(rest))

    def _instruction(self, text: str) -> Instruction:
        guard, negated = None, False
        if found := _GUARD.match(text):
            negated, guard = bool(found.group(1)), self._renamed(found.group(2))
            text = text[found.end() :]
        mnemonic = _MNEMONIC.findall(text)[0]
        parts = split_operands(text[len(mnemonic) :])
        opcode = _opcode(mnemonic)
        if mnemonic[0] == "v":  # a video instruction may take a part of a register, or its negative
            for i, part in enumerate(parts):
                if part[:1] == "-" and not part[1:2].isdigit():
                    opcode, part = (*opcode, f"-{'dabc'[i]}"), part[1:]
                    parts[i] = part
                if picked := _PICKED.search(part):
                    opcode = (*opcode, f"{'dabc'[i]}{picked[0]}")
                    parts[i] = part[: picked.start()]
        lists = opcode[0] == "call"  # others have only constants in parentheses
        operands = tuple(
            (not lists and part[0] == "(" and literal(part)) or self._operand(part) for part in parts
        )
        if self.spaces and opcode[0] in ("ld", "st", "atom", "red"):
            opcode = self._placed(opcode, operands)
        line = self.ptx_line if self.own_lines else self.line
        return Instruction(opcode, operands, guard, negated, line, self.ptx_line)

    def _placed(self, opcode: tuple[str, ...], operands: tuple[Operand, ...]) -> tuple[str, ...]:
        """Say of an access to a variable by its name where that is, as ptxas does."""
        for each in operands[:2]:
            if isinstance(each, Mem) and isinstance(each.base, Sym):
                space = self.spaces.get(each.base.name)
                return (opcode[0], space, *opcode[1:]) if space and _SPACES.isdisjoint(opcode) else opcode
        return opcode

    def _moved(self, item: Instruction) -> Iterator[Instruction]:
        """The moves of the elements of a vector, all read before any is written."""
        kind, (to, of) = item.opcode[2], item.operands
        assert isinstance(to, Vec)
        if isinstance(of, Special):  # `%tid` in one
            axes: list[Operand] = [Special(f"{of.name}.{axis}") for axis in "xyz"]
            of = Vec((*axes, Imm(0))[: len(to.items)])
        assert isinstance(of, Vec)
        held = [Reg(f"{kind}@{part}") for part in range(len(to.items))]
        self.function.registers.update({each.name: kind for each in held})
        for goals, sources in ((held, of.items), (to.items, held)):
            for pair in zip(goals, sources, strict=False):
                yield replace(item, opcode=("mov", kind), operands=pair)

    def _called(self, call: Instruction) -> list[Instruction]:
        """A call that passes registers, as one through `.param` variables, which most compilers write."""
        before: list[Instruction] = []
        after: list[Instruction] = []
        operands: list[Operand] = []
        results = True
        for operand in call.operands:
            items: list[Operand] = []
            for each in leaves(operand) if isinstance(operand, Vec) else ():
                kind = self.function.registers.get(each.name, "") if isinstance(each, Reg) else ""
                if isinstance(each, Reg) and (size := TYPE_BYTES.get(kind.lstrip("bsuf"), 0)):
                    passed = Variable(f"{each.name}@{len(self.function.variables)}", "param", size, size)
                    self.function.variables.append(passed)
                    moves = self._passing("ld" if results else "st", each, passed, call)
                    (after if results else before).extend(moves)
                    items.append(Sym(passed.name))
                else:
                    items.append(each)
            results &= isinstance(operand, Vec)
            operands.append(Vec(tuple(items)) if isinstance(operand, Vec) else operand)
        return [*before, replace(call, operands=tuple(operands)), *after]

    def _passing(
        self, way: str, register: Reg, variable: Variable, near: Instruction | None = None
    ) -> list[Instruction]:
        """The load of a register from a `.param` variable or its store there, under the guard of another."""
        near = near or Instruction((), ())
        held, kind = register, f"b{8 * variable.size}"
        convert = []
        if self.function.registers[register.name] == "pred":
            held = Reg(f"{variable.name}@held")
            self.function.registers[held.name] = kind
            load, store = (register, held, Imm(0)), (held, Imm(1), Imm(0), register)
            opcode, operands = (("setp", "ne", kind), load) if way == "ld" else (("selp", kind), store)
            convert = [replace(near, opcode=opcode, operands=operands)]
        memory = Mem(Sym(variable.name), 0)
        move = replace(
            near, opcode=(way, "param", kind), operands=(held, memory) if way == "ld" else (memory, held)
        )
        return [move, *convert] if way == "ld" else [*convert, move]

    def _operand(self, text: str) -> Operand:
        if len(self.scopes) > 1:  # where names may have another meaning than elsewhere
            return self._read_operand(text.strip())
        if text not in self.operands:
            self.operands[text] = self._read_operand(text.strip())
        return self.operands[text]

    def _read_operand(self, text: str) -> Operand:
        if text.startswith("!"):
            return Not(self._operand(text[1:]))
        if text.startswith(("{", "(")):
            return Vec(tuple(self._operand(part) for part in split_operands(text[1:-1])))
        if text.startswith("["):
            return self._memory(text[1:-1])
        if (constant := literal(text)) is not None:
            return constant
        base, offset = base_and_offset(text)
        stem, _, part = base.rpartition(".")
        name = self._renamed(base)
        if (vector := self._renamed(stem)) in self.vectors:  # one of its elements
            name = f"{vector}.{_COLOURS.get(part, part)}"
        if name in self.vectors:
            return self.vectors[name]
        if name in self.function.registers and not offset:
            return Reg(name)
        return Special(text) if text.startswith("%") else Sym(name, offset)

    def _memory(self, text: str) -> Mem | Vec:
        parts = split_operands(text)
        if len(parts) == 2:  # a place in a tensor
            return Vec((self._operand(f"[{parts[0]}]"), self._operand(parts[1])))
        base, offset = base_and_offset(text.strip())
        operand = self._operand(base)
        if not isinstance(operand, Reg | Sym | Imm):
            raise UnsupportedInstruction(f"address [{text}]", self.line)
        return Mem(operand, offset)


_COLOURS = dict(zip("rgba", "xyzw", strict=True))
_PICKED = re.compile(r"\.[bh][0-7]+$")


@cache
def _opcode(mnemonic: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"\.|(?<=\w)::(?=\w)", mnemonic) if part)
