# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The parameters that a compiled kernel really takes, read from its PTX."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct

from gpuprof.cuda_source.brackets import split_list
from gpuprof.cuda_source.functions import kernel_functions, split_types
from gpuprof.ptx_directives import launch_limits
from gpuprof.text import Extent, format_extent, renamed

_PARAMETER = re.compile(
    r"\.param\s*(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s*(?P<pointer>\.ptr\b[^\w$%]*(?:\.\w+\s*\d*\s*)*)?"
    r"(?P<name>[\w$%]+)\s*(?:\[(?P<count>\d+)\])?\s*\Z"
)
_ADDRESS_SIZE = 8
#: In the place of a type: machine code has none, only bytes.
_UNTYPED = "?"
_VALUE_BYTES = (1, 2, 4, 8)


class Parameter(Struct, frozen=True):
    """One parameter of a kernel.

    Args:
        nbytes: Size: of a struct, of all of it.
        is_pointer: Whether PTX says so; None where this PTX tells of no parameter whether it is.
    """

    type: str
    nbytes: int
    is_pointer: bool | None
    is_struct: bool

    @property
    def is_integer(self) -> bool:
        """Whether it may hold an integer."""
        return not self.is_struct and self.type[0] in f"usb{_UNTYPED}" and not self.is_pointer

    @property
    def is_float(self) -> bool:
        return not self.is_struct and self.type[0] in f"f{_UNTYPED}"

    @property
    def may_be_pointer(self) -> bool:
        """Whether an address fits and nothing says that it is none."""
        return (
            not self.is_struct
            and self.type[0] in f"usb{_UNTYPED}"
            and self.nbytes == _ADDRESS_SIZE
            and self.is_pointer is not False
        )

    @property
    def may_hold_pointer(self) -> bool:
        """Whether it is a struct in which nothing may stand but an address."""
        return self.is_struct and self.nbytes == _ADDRESS_SIZE

    @property
    def text(self) -> str:
        """What it is in C++ terms, as far as PTX tells, for example `a 4-byte float`."""
        if self.is_struct:
            return f"a struct of {self.nbytes} byte{'s' * (self.nbytes > 1)}"
        if self.is_pointer:
            return "a pointer"
        kind = "value" if self.type == _UNTYPED else "float" if self.is_float else "integer"
        return f"{'an' if self.nbytes == 8 else 'a'} {self.nbytes}-byte {kind}"


def untyped(nbytes: int) -> Parameter:
    """A parameter of which only the size is known."""
    return Parameter(_UNTYPED, nbytes, is_pointer=None, is_struct=nbytes not in _VALUE_BYTES)


class BlockLimits(Struct, frozen=True):
    """Blocks that a kernel may be launched with: one, or up to so many threads, in clusters of so many."""

    required: Extent | None = None
    largest: Extent | None = None
    cluster: Extent = (1, 1, 1)

    def complaint(self, block: Extent) -> str:
        """Why a block cannot be, as the rest of a sentence; empty where it can."""
        if self.required is not None and block != self.required:
            return f"must be {format_extent(self.required)}: its .reqntid"
        if self.largest is not None and prod(block) > prod(self.largest):
            return f"holds at most {prod(self.largest)} threads: its .maxntid, which __launch_bounds__ set"
        return ""


def block_limits_of(ptx: str, entry: str) -> BlockLimits:
    """What PTX says of a kernel's blocks, between its parameters and its body."""
    match = re.search(rf"\.entry\s+{re.escape(entry)}\b\s*(?:\([^)]*\))?([^{{]*)\{{", ptx)
    found = launch_limits(match[1] if match else "")
    return BlockLimits(found.get("reqntid"), found.get("maxntid"), found.get("reqnctapercluster", (1, 1, 1)))


def parameters_of(ptx: str, entry: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel, in order."""
    match = re.search(rf"\.entry\s+{re.escape(entry)}\s*(?:\((?P<list>[^)]*)\))?", ptx)
    if match is None:
        raise ValueError(f"no kernel {entry} in this PTX")
    found = []
    for text in filter(None, (part.strip() for part in (match["list"] or "").split(","))):
        parameter = _PARAMETER.match(text)
        if parameter is None:
            raise ValueError(f"a parameter of {entry} is declared as {text!r}")
        found.append(parameter)
    tells_pointers = any(parameter["pointer"] for parameter in found)
    return tuple(_parameter(parameter, tells_pointers) for parameter in found)


def _parameter(match: "re.Match[str]", tells_pointers: bool) -> Parameter:
    kind = match["type"]
    each = int(re.sub(r"\D", "", kind) or 8) // 8
    return Parameter(
        type=kind,
        nbytes=each * int(match["count"] or 1),
        is_pointer=bool(match["pointer"]) if tells_pointers else None,
        is_struct=match["count"] is not None,
    )


class Declared(Struct, frozen=True):
    """One parameter as the source declares it.

    Args:
        text: The whole declaration: `const real *__restrict__ in`.
        type: Without qualifiers, macros and template parameters replaced: `float *`; empty for a form that is
            not understood.
    """

    text: str
    type: str
    name: str


def declared_parameters(
    texts: Iterable[str], entry: str, macros: Mapping[str, str]
) -> tuple[Declared, ...] | None:
    """A kernel's parameters as its source writes them; None where it is not found.

    PTX knows neither what a pointer points to nor, below compute capability 10, which integer is a pointer.
    What the source says is for a message, or to notice what is plainly wrong.
    """
    entry, types = split_types(entry)
    name, _, rest = entry.partition("<")
    name = name.strip()
    blank = re.compile(rf"{_QUALIFIERS.pattern}|\s")
    wanted = None if types is None else [blank.sub("", one) for one in types.split(",")]
    for text in texts:
        for function in kernel_functions(text):
            if name not in (function.name, function.name.rpartition("::")[2]):
                continue
            known = {**macros, **_template_values(function.template or (), rest.strip().removesuffix(">"))}
            found = tuple(declaration(part, known) for part in function.parameters if part != "void")
            if wanted is None or [re.sub(r"\s", "", one.type) for one in found] == wanted:
                return found
    return None


_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict|__grid_constant__)\b")
_DECLARATION = re.compile(
    r"(?P<base>[\w:<>,\s]+?)\s*(?P<stars>[*&\s]*)(?:\b(?P<name>[A-Za-z_]\w*)(?P<array>(?:\s*\[[^\[\]]*\])*))"
)
_TO_ARRAY = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\[.*")
#: A longer declaration is no parameter that anybody wrote.
_LONGEST_DECLARATION = 500


def _template_values(parameters: Sequence[str], arguments: str) -> dict[str, str]:
    """Values of a template's parameters by name: the instance's, or their defaults."""
    given = split_list(arguments)
    values = {}
    for index, parameter in enumerate(parameters):
        declaration, _, default = parameter.partition("=")
        words = declaration.split()
        value = given[index] if index < len(given) else default.strip()
        if len(words) > 1 and value:  # it has a name
            values[words[-1]] = value
    return values


def declaration(text: str, known: Mapping[str, str]) -> Declared:
    """What a declaration such as `const real *__restrict__ in` says; arrays of arrays are of elements."""
    plain = _TO_ARRAY.sub(r"*\1", " ".join(_QUALIFIERS.sub(" ", text).split()))
    match = _DECLARATION.fullmatch(plain) if len(plain) <= _LONGEST_DECLARATION else None
    if match is None:
        return Declared(text, "", "")
    base = renamed(match["base"], known)
    stars = "".join(match["stars"].split()) + ("*" if match["array"] else "")
    return Declared(text, f"{' '.join(base.split())} {stars}".strip(), match["name"])
