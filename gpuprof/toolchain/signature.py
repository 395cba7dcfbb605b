# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The parameters that a compiled kernel really takes, read from its PTX."""

import re
from dataclasses import dataclass

_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s*(?P<pointer>\.ptr\b[^\w$%]*(?:\.\w+\s*\d*\s*)*)?"
    r"(?P<name>[\w$%]+)\s*(?:\[(?P<count>\d+)\])?\s*\Z"
)
_ADDRESS_SIZE = 8


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel.

    Args:
        type: PTX type, for example `u32`, `f32`, `u64` or `b8`.
        nbytes: Size: of a struct, of all of it.
        is_pointer: Whether PTX says so; None where this PTX tells of no parameter whether it is.
        is_struct: Whether it is passed as bytes, by value.
    """

    type: str
    nbytes: int
    is_pointer: bool | None
    is_struct: bool

    @property
    def is_integer(self) -> bool:
        """Whether it may hold an integer."""
        return not self.is_struct and self.type[0] in "usb" and not self.is_pointer

    @property
    def is_float(self) -> bool:
        """Whether it holds a floating-point number."""
        return not self.is_struct and self.type[0] == "f"

    @property
    def may_be_pointer(self) -> bool:
        """Whether an address fits and nothing says that it is none."""
        return (
            not self.is_struct
            and self.type[0] in "usb"
            and self.nbytes == _ADDRESS_SIZE
            and self.is_pointer is not False
        )

    @property
    def text(self) -> str:
        """What it is in C++ terms, as far as PTX tells, for example `a 4-byte float`."""
        if self.is_struct:
            return f"a struct of {self.nbytes} bytes"
        if self.is_pointer:
            return "a pointer"
        kind = "float" if self.is_float else "integer"
        return f"{'an' if self.nbytes == 8 else 'a'} {self.nbytes}-byte {kind}"


def parameters_of(ptx: str, entry: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel, in order.

    Args:
        ptx: A whole module as NVRTC writes it.
        entry: The kernel's name in it.

    Raises:
        ValueError: The module has no such kernel, or a parameter is of no known form.
    """
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


def declared_types(source: str, entry: str) -> tuple[str, ...] | None:
    """C++ types of a kernel's parameters as its source writes them; None where that cannot be told.

    PTX knows neither what a pointer points to nor, below compute capability 10, which integer is a pointer.
    Macros and templates are not expanded: a type is for a message, or to notice what is plainly wrong.

    Args:
        source: The whole file.
        entry: The kernel's name.
    """
    code = _without_comments(source)
    for match in re.finditer(rf"\b{re.escape(entry)}\s*\(", code):
        head = code[max(0, match.start() - _LONGEST_HEAD) : match.start()]
        if "__global__" not in re.split(r"[;{}]", head)[-1]:
            continue
        end = code.find(")", match.end())
        texts = [text.strip() for text in code[match.end() : end].split(",")] if end > 0 else []
        types = [_type_of(text) for text in texts if text and text != "void"]
        return None if any(kind is None for kind in types) else tuple(kind for kind in types if kind)
    return None


#: Of a declaration, what stands before the kernel's name: qualifiers and launch bounds.
_LONGEST_HEAD = 400
_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict|__grid_constant__)\b")


def _without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?(?:\*/|\Z)", " ", source, flags=re.DOTALL)


def _type_of(text: str) -> str | None:
    """The type of `const real *__restrict__ in`: `real *`; None for a form that is not understood."""
    plain = " ".join(_QUALIFIERS.sub(" ", text).split())
    match = re.fullmatch(
        r"\s*(?P<base>[\w:<>\s]+?)\s*(?P<stars>[*&\s]*)\b(?P<name>[A-Za-z_]\w*)\s*(?P<array>\[\s*\w*\s*\])?\s*",
        plain,
    )
    if match is None:
        return None
    stars = "".join(match["stars"].split()) + ("*" if match["array"] else "")
    return f"{' '.join(match['base'].split())} {stars}".strip()
