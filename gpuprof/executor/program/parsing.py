# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read PTX text into functions, variables and instructions. Syntax only: no meaning is given here."""

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import prod

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.program.ptx import (
    Function,
    Imm,
    Instruction,
    Label,
    Mem,
    Module,
    Not,
    Operand,
    Reference,
    Reg,
    Signature,
    Special,
    Sym,
    Variable,
    Vec,
    leaves,
)
from gpuprof.executor.program.source_places import LOCATION, places_of
from gpuprof.ptx_directives import launch_limits, target_of_ptx

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_OPAQUE = re.compile(r"\.(?:tex|sampler|surf)ref\b")
_HEADER = re.compile(r"\.(entry|func)\b")
_BEGINS = re.compile(
    r"^[ \t]*\.(?:visible|extern|weak|common|entry|func|global|const|shared|section|alias)\b",
    re.MULTILINE,
)
_VARIABLE = re.compile(
    r"\.(global|const|shared|local|param|reg)\s*(?:\.align\s+(\d+)\s*)?(?:\.v([24])\s*)?\.(\w+)\s+"
    r"([\w$%.]+)\s*((?:\[\s*\d*\s*\]\s*)*)(?:=\s*(.*))?$",
    re.DOTALL,
)
_REGISTERS = re.compile(r"\.reg\s*(?:\.v([24])\s*)?\.(\w+)\s+(.*)", re.DOTALL)
_PASSED_VECTOR = re.compile(r"\.reg\s*\.v([24])\s*\.(\w+)\s+([\w$%]+)")
_GUARD = re.compile(r"@\s*(!?)\s*([\w$%]+)\s+")
#: Its operands may follow at once, as strings of inline PTX that are written side by side give.
_MNEMONIC = re.compile(r"\S[^\s{\[(%]*")
_SPACES = frozenset(("global", "shared", "local", "param", "const"))
#: A predicate is passed as an integer.
_TYPE_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "pred": 4}


def parse(text: str) -> Module:
    """Parse one PTX module as compilers print it; without a `.loc` its lines are those of the text.

    Raises:
        UnsupportedInstruction: The text uses syntax that the executor does not model.
    """
    text = _COMMENT.sub(lambda comment: " " + "\n" * comment[0].count("\n"), text)
    architecture, _ = target_of_ptx(text) or (0, "")
    module = Module(architecture)
    own_lines = not LOCATION.search(text)
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
                _Body(function, module, text[position:end], first_line, own_lines).read()
                module.functions[function.name] = function
                module.variables += [v for v in function.variables if v.space in ("global", "const")]
                position = end + 1
        elif _OPAQUE.search(head):
            continue  # what reads a texture by such a variable is told
        elif head.startswith((".visible", ".extern", ".weak", ".global", ".const", ".shared", ".common")):
            if stop == "{":  # an initialiser list: the declaration goes on to its semicolon
                end = text.index(";", position)
                head, position = head + "{" + text[position:end], end + 1
            module.variables += _declared(head)
        elif stop == "{":
            position = _matching_brace(text, position) + 1
    return module


def _matching_brace(text: str, position: int) -> int:
    depth = 1
    for found in re.finditer(r"[{}]", text[position:]):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return position + found.start()
    raise UnsupportedInstruction("unbalanced braces", 0)


def _declared(text: str) -> list[Variable]:
    """Read a declaration of one variable, or of several of one type."""
    first, *others = _split(text)
    kind = re.match(r"(?:\.\w+(?:\([^)]*\))?\s*(?:\d+\s+)?)*", first)
    return [_variable(first), *(_variable(f"{kind[0] if kind else ''}{other}") for other in others)]


def _variable(text: str) -> Variable:
    extern = ".extern" in text
    text = re.sub(
        r"\.(visible|extern|weak|common|ptr(\s+\.(global|shared|const|local))?)\b\s*", "", text
    ).strip()
    text = re.sub(r"\.attribute\([^)]*\)\s*", "", text)
    # A pointer parameter may say how its target is aligned: `.param .u64 .ptr .global .align 16 name`.
    text = re.sub(r"^(\.param\s+\.\w+)\s+\.align\s+\d+", r"\1", text)
    found = _VARIABLE.match(text)
    if not found:
        raise UnsupportedInstruction(text.split("\n")[0], 0)
    space, align, vector, kind, name, extents, initial = found.groups()
    item = _TYPE_BYTES.get(kind.lstrip("bsuf"), 0)
    if item == 0:
        raise UnsupportedInstruction(f".{space} .{kind} variable", 0)
    vector_size = item * int(vector or 1)
    counts = [int(extent or 0) for extent in re.findall(r"\[\s*(\d*)", extents)]
    size = vector_size * prod(counts)
    data: bytes | None = None
    references: tuple[Reference, ...] = ()
    if initial is not None:
        data, references = _initial_content(initial, item)
        row = vector_size * prod(counts[1:])
        size = size or -(-len(data) // row) * row  # as many rows as are given
        data = data.ljust(size, b"\0")
    return Variable(name, space, int(align or vector_size), size, data, extern, references)


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
    return [_variable(part.strip()) for part in (listing or "").split(",") if part.strip()]


def _signature(text: str) -> Signature:
    """Read a prototype: `(.param .b32 _) _ (.param .b64 _)`, either list possibly missing."""
    found = re.match(r"\s*(?:\(([^)]*)\))?\s*_\s*(?:\(([^)]*)\))?", text, re.DOTALL)
    returns, params = found.groups() if found else ("", "")
    return Signature(*(tuple(v.size for v in _variables(part)) for part in (returns, params)))


def _literal(text: str) -> Imm | None:
    if not text[:1].isdigit() and text[:1] not in ("-", "."):
        return None
    if re.match(r"0[fF][0-9a-fA-F]{8}$", text):
        return Imm(int(text[2:], 16), 32)
    if re.match(r"0[dD][0-9a-fA-F]{16}$", text):
        return Imm(int(text[2:], 16), 64)
    if re.match(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$", text):
        digits = text.rstrip("U")
        octal = re.match(r"-?0[0-7]+$", digits)
        return Imm(int(digits, 8 if octal else 0))
    if re.match(r"-?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?$", text):
        return Imm(struct.unpack("<Q", struct.pack("<d", float(text)))[0], 64)
    return None


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
                for variable in _declared(statement):
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
            self.function.tables[label.name] = tuple(self._renamed(name) for name in _split(rest))

    def _instruction(self, text: str) -> Instruction:
        guard, negated = None, False
        if found := _GUARD.match(text):
            negated, guard = bool(found.group(1)), self._renamed(found.group(2))
            text = text[found.end() :]
        mnemonic = _MNEMONIC.findall(text)[0]
        parts = _split(text[len(mnemonic) :])
        opcode = _opcode(mnemonic)
        if mnemonic[0] == "v":  # a video instruction may take a part of a register, or its negative
            for i, part in enumerate(parts):
                if part[:1] == "-" and not part[1:2].isdigit():
                    opcode, part = (*opcode, f"-{'dabc'[i]}"), part[1:]
                    parts[i] = part
                if picked := _PICKED.search(part):
                    opcode = (*opcode, f"{'dabc'[i]}{picked[0]}")
                    parts[i] = part[: picked.start()]
        operands = tuple(map(self._operand, parts))
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
                if isinstance(each, Reg) and (size := _TYPE_BYTES.get(kind.lstrip("bsuf"), 0)):
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
            return Vec(tuple(self._operand(part) for part in _split(text[1:-1])))
        if text.startswith("["):
            return self._memory(text[1:-1])
        literal = _literal(text)
        if literal is not None:
            return literal
        if text == "WARP_SZ":
            return Imm(32)
        base, offset = _base_and_offset(text)
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
        parts = _split(text)
        if len(parts) == 2:  # a place in a tensor
            return Vec((self._operand(f"[{parts[0]}]"), self._operand(parts[1])))
        base, offset = _base_and_offset(text.strip())
        operand = self._operand(base)
        if not isinstance(operand, Reg | Sym | Imm):
            raise UnsupportedInstruction(f"address [{text}]", self.line)
        return Mem(operand, offset)


_COLOURS = dict(zip("rgba", "xyzw", strict=True))
_PICKED = re.compile(r"\.[bh][0-7]+$")
_NESTING = re.compile(r"[{\[(|]")


@cache
def _opcode(mnemonic: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"\.|(?<=\w)::(?=\w)", mnemonic) if part)


def _base_and_offset(text: str) -> tuple[str, int]:
    base, plus, offset = text.partition("+")
    if plus:
        literals = [_literal(part.strip()) for part in offset.split("+")]
        if None not in literals:
            return base.strip(), sum(literal.bits for literal in literals if literal)
    if found := re.match(r"([\w$%.]+?)-(\d+)$", text):
        return found.group(1), -int(found.group(2))
    return text, 0


def _split(text: str) -> list[str]:
    """Split operands at commas outside brackets; `d|p` counts as two operands."""
    if not _NESTING.search(text):
        return [part.strip() for part in text.split(",") if part.strip()]
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "{[(") - (char in "}])")
        if char in ",|" and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


_MASKED = re.compile(r"(0[xX][fF]+0*)\s*\((.*)\)$", re.DOTALL)
_GENERIC = re.compile(r"generic\s*\(\s*([\w$]+)\s*\)")
_SYMBOL = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:([+-])\s*(\d+))?$")


def _initial_content(text: str, item: int) -> tuple[bytes, tuple[Reference, ...]]:
    """Return the bytes that an initialiser gives, with zeros in the place of addresses, and these.

    `item` are the bytes of an element.
    """
    content, references = b"", []
    for word in text.replace("{", " ").replace("}", " ").split(","):
        word = word.strip()
        if not word:
            continue
        literal = _literal(word)
        if literal is None:
            references.append(_reference(word, len(content), item))
        content += ((_held(literal, item) if literal else 0) & ((1 << 8 * item) - 1)).to_bytes(item, "little")
    return content, tuple(references)


def _held(literal: Imm, size: int) -> int:
    """The bits of a literal in so many bytes, of which a float of double precision has eight."""
    if literal.width == 64 and size == 4:
        (value,) = struct.unpack("<d", literal.bits.to_bytes(8, "little"))
        return int.from_bytes(struct.pack("<f", value), "little")
    return literal.bits


def _reference(word: str, offset: int, size: int) -> Reference:
    shift, inner = 0, word
    if masked := _MASKED.match(word):
        mask, inner = int(masked[1], 16), masked[2].strip()
        shift = (mask & -mask).bit_length() - 1
    plain, generic = _GENERIC.subn(r"\1", inner)
    found = _SYMBOL.match(plain)
    if not found:
        raise UnsupportedInstruction(f"initialiser {word}", 0)
    addend = int(found[3] or 0) * (-1 if found[2] == "-" else 1)
    return Reference(offset, size, found[1], addend, shift, bool(generic))
