# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read declarations of variables in PTX, and what initialises them."""

import re
from math import prod

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.program.constants import base_and_offset, begins_constant, content_of
from gpuprof.executor.program.ptx import Reference, Variable

_VARIABLE = re.compile(
    r"\.(global|const|shared|local|param|reg)\s*(?:\.align\s+(\d+)\s*)?(?:\.v([24])\s*)?\.(\w+)\s+"
    r"([\w$%.]+)\s*((?:\[\s*\d*\s*\]\s*)*)(?:=\s*(.*))?$",
    re.DOTALL,
)
_NESTING = re.compile(r"[{\[(|]")
_MASKED = re.compile(r"(0[xX][fF]+0*)\s*\((.*)\)$", re.DOTALL)
_GENERIC = re.compile(r"generic\s*\(\s*([\w$]+)\s*\)")
_SYMBOL = re.compile(r"[A-Za-z_$%][\w$]*")
#: A predicate is passed as an integer.
TYPE_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "pred": 4}


def declared(text: str) -> list[Variable]:
    """Read a declaration of one variable, or of several of one type."""
    first, *others = split_operands(text)
    kind = re.match(r"(?:\.\w+(?:\([^)]*\))?\s*(?:\d+\s+)?)*", first)
    return [variable_of(first), *(variable_of(f"{kind[0] if kind else ''}{other}") for other in others)]


def variable_of(text: str) -> Variable:
    """Read a declaration of one variable."""
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
    item = TYPE_BYTES.get(kind.lstrip("bsuf"), 0)
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
    return Variable(name, space, int(align or vector_size), size, data, extern, references, kind)


def split_operands(text: str) -> list[str]:
    """Split operands at commas outside brackets; `d|p` counts as two operands, `5|3` as one."""
    if not _NESTING.search(text):
        return [part.strip() for part in text.split(",") if part.strip()]
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "{[(") - (char in "}])")
        paired = char == "|" and not begins_constant(text[start : start + 20].lstrip())
        if depth == 0 and (char == "," or paired):
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _initial_content(text: str, item: int) -> tuple[bytes, tuple[Reference, ...]]:
    """Return the bytes that an initialiser gives, with zeros in the place of addresses, and these.

    `item` are the bytes of an element.
    """
    content, references = b"", []
    for word in text.replace("{", " ").replace("}", " ").split(","):
        word = word.strip()
        if not word:
            continue
        if (held := content_of(word, item)) is None:
            references.append(_reference(word, len(content), item))
        content += (held or 0).to_bytes(item, "little")
    return content, tuple(references)


def _reference(word: str, offset: int, size: int) -> Reference:
    shift, inner = 0, word
    if masked := _MASKED.match(word):
        mask, inner = int(masked[1], 16), masked[2].strip()
        shift = (mask & -mask).bit_length() - 1
    plain, generic = _GENERIC.subn(r"\1", inner)
    symbol, addend = base_and_offset(plain)
    if not _SYMBOL.fullmatch(symbol):
        raise UnsupportedInstruction(f"initialiser {word}", 0)
    return Reference(offset, size, symbol, addend, shift, bool(generic))
