# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a module variable starts with: numbers, and addresses that are known at the launch only.

A table of pointers names what it points to: `{f, generic(x)+8}`. Where the pointer is part of a struct, the
variable is an array of bytes and each byte names its share: `0xFF00(f)` is the second byte of f's address.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpuprof.executor.faults import UnsupportedInstruction

_MASKED = re.compile(r"(0[xX][fF]+0*)\s*\((.*)\)$", re.DOTALL)
_GENERIC = re.compile(r"generic\s*\(\s*([\w$]+)\s*\)")
_SYMBOL = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:([+-])\s*(\d+))?$")


@dataclass(frozen=True)
class Reference:
    """A place in a variable's content that holds an address, or a byte of one.

    Attributes:
        offset: Of the place in the variable, in bytes.
        size: Of the place, in bytes.
        symbol: Whose address.
        addend: Bytes added to it.
        shift: Bits of the address below those that are held.
        generic: Whether it is the generic address, not the one in the symbol's own space.
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


def initial_content(
    text: str, item: int, size: int, number: Callable[[str], int | None]
) -> tuple[bytes, tuple[Reference, ...]]:
    """Return the bytes that an initialiser gives, with zeros in the place of addresses, and these.

    Args:
        text: What stands behind the equals sign.
        item: Bytes of an element.
        size: Bytes of the variable.
        number: Returns the bits of a literal; None where a word is none.

    Raises:
        UnsupportedInstruction: A word is neither a number nor an address.
    """
    content, references = b"", []
    for word in text.replace("{", " ").replace("}", " ").split(","):
        word = word.strip()
        if not word:
            continue
        bits = number(word)
        if bits is None:
            references.append(_reference(word, len(content), item))
        content += ((bits or 0) & ((1 << 8 * item) - 1)).to_bytes(item, "little")
    return content.ljust(size, b"\0"), tuple(references)


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
