# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What PTX text consists of: functions, variables, instructions and their operands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec import Struct


class Reg(Struct, frozen=True):
    """A virtual register, by the name that is unique in its function."""

    name: str


class Imm(Struct, frozen=True):
    """A literal. `bits` is its two's complement or IEEE pattern; `width` is 0 for integers, else 32 or 64."""

    bits: int
    width: int = 0


@dataclass(frozen=True)
class Sym:
    """The address of a variable, parameter or function, plus a byte offset."""

    name: str
    offset: int = 0


class Mem(Struct, frozen=True):
    """A memory operand `[base + offset]`, in bytes."""

    base: "Reg | Sym | Imm"
    offset: int = 0


class Special(Struct, frozen=True):
    """A special register such as `%tid.x`."""

    name: str


class Vec(Struct, frozen=True):
    """A brace-enclosed list of operands; also `[map, {x, y}]`, as the address of the map and the list."""

    items: tuple["Operand", ...]


class Not(Struct, frozen=True):
    """A negated predicate operand, `!%p`."""

    of: "Operand"


Operand = Reg | Imm | Sym | Mem | Special | Vec | Not


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction.

    The opcode is the mnemonic split at its dots. A paired destination `d|p` is two operands. `line` is that
    of the source, 0 when unknown; `ptx_line` that of the text, 0 for an instruction that was made here.
    `vector` are the offset and the bytes of a vector of which only a part is loaded, aligned as a whole.
    """

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: str | None = None
    negated: bool = False
    line: int = 0
    ptx_line: int = field(default=0, compare=False)
    vector: tuple[int, int] | None = None
    #: What it reads and writes, once that was asked for: see `flow.reads_and_writes`.
    flow: ClassVar[tuple[list[str], list[str]] | None] = None

    @property
    def name(self) -> str:
        return ".".join(self.opcode)


class Label(Struct, frozen=True):
    """A branch target."""

    name: str


class Reference(Struct, frozen=True):
    """A place in a variable's content that holds an address, or bytes of one.

    A table of pointers names what it points to: `{f, generic(x)+8}`. Where the pointer is part of a struct,
    the variable is an array of bytes and each byte names its share: `0xFF00(f)` is the second byte of f's
    address.
    """

    offset: int
    size: int
    symbol: str
    addend: int = 0
    shift: int = 0
    generic: bool = False

    def content(self, address: int) -> bytes:
        """Return what the place holds when the symbol lies at `address`."""
        value = (address + self.addend) >> self.shift
        return (value & ((1 << 8 * self.size) - 1)).to_bytes(self.size, "little")


@dataclass(frozen=True)
class Variable:
    """A variable of one state space.

    The space is "global", "const", "shared", "local" or "param"; `kind` the type of its elements. An extern
    array has size 0: the launch decides.
    """

    name: str
    space: str
    align: int
    size: int
    data: bytes | None = None
    extern: bool = False
    references: tuple[Reference, ...] = ()
    kind: str = ""


class Signature(Struct, frozen=True):
    """What a function takes and returns: bytes of each value, in order."""

    returns: tuple[int, ...]
    params: tuple[int, ...]


@dataclass
class Function:
    """A kernel or device function: its parameters in order, its registers by name, its body in text order.

    `limits` holds what its header says of launches, by directive: `maxntid`, `reqntid`, `reqnctapercluster`.
    `prototypes` are those of its calls through pointers, and `tables` the labels or functions that jumps and
    calls by a register may go to, both by label. An `entry` is a kernel.
    """

    name: str
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] = field(default_factory=list)
    limits: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    prototypes: dict[str, Signature] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    entry: bool = False

    @property
    def signature(self) -> Signature:
        return Signature(tuple(v.size for v in self.returns), tuple(v.size for v in self.params))


class Module(Struct):
    """All that one PTX text defines.

    The architecture is 90 for `sm_90`, 0 where the text names none.
    """

    architecture: int = 0
    functions: dict[str, Function] = {}
    variables: list[Variable] = []


def leaves(operand: Operand) -> Iterator[Operand]:
    """Yield what an operand consists of: registers, symbols, literals and special registers."""
    match operand:
        case Vec(items):
            for item in items:
                yield from leaves(item)
        case Mem(inner) | Not(inner):
            yield from leaves(inner)
        case _:
            yield operand


def address_of(item: Instruction) -> Mem | None:
    """Return the first operand that is an address, if any is."""
    return next((operand for operand in item.operands if isinstance(operand, Mem)), None)


def symbols_of(operands: Iterable[Operand]) -> set[str]:
    """Return the symbols that operands name."""
    some = (operand for operand in operands if not isinstance(operand, Reg | Imm))  # most are
    return {leaf.name for operand in some for leaf in leaves(operand) if isinstance(leaf, Sym)}
