# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Text from files made safe to show: it may not steer a terminal, reorder what is read, or drown it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

#: Control characters other than newline and tab, and the Unicode characters that reorder text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
#: What begins a new line, or leaps within one.
_BREAKING = re.compile("[\t\n\u2028\u2029]")

T = TypeVar("T")
#: Threads of a block, or blocks of a grid, in x, y and z.
Extent = tuple[int, int, int]

#: How kernel files end: CUDA C++, PTX and machine code.
KERNEL_ENDINGS = (".cu", ".ptx", ".cubin")
#: What `gpuprof new` copies a kernel from.
SOURCE_ENDINGS = (".cu", ".cuh", ".h", ".hpp", ".inl")
#: What a compiler's log says of a header that was found nowhere, behind its name.
ABSENT_HEADER = "is not found, and empty"

#: Characters of one text that a table, a list or a message shows.
MOST_SHOWN = 2000


def visible(text: str) -> str:
    """The text with each steering character replaced by the escape that a string literal would use."""
    return _STEERING.sub(_escape, text)


def one_line(text: str) -> str:
    """The same for a name within a line: line breaks and tabs are escaped too."""
    return _BREAKING.sub(_escape, visible(text))


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """The beginning of a text that is too long to show, with how much is left out."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def listed(names: Sequence[str], most: int = 0) -> str:
    """Names in a row: `a, b and c`; of more than `most`, where given, `a, b, c and 2 more`."""
    if most and len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def renamed(text: str, names: Mapping[str, object]) -> str:
    """Return a text of C or of formulas in which each word that is one of `names` is replaced."""
    return re.sub(r"[A-Za-z_]\w*", lambda word: str(names.get(word[0], word[0])), text)


def in_xyz(given: Iterable[T], filler: T) -> tuple[T, T, T]:
    """One to three values for x, y and z; those that are not given are the filler."""
    x, y, z, *_ = (*given, filler, filler)
    return x, y, z


def format_extent(extent: Extent) -> str:
    """A block or grid as users write it: `8x32`, with z only when it is not 1."""
    return "x".join(map(str, extent if extent[2] != 1 else extent[:2]))


def cut_lines(text: str, most: int) -> str:
    """The first lines of a text that has too many, with how many are left out."""
    end = -1
    for _ in range(most):
        end = text.find("\n", end + 1)
        if end < 0:
            return text
    left = text.count("\n", end + 1) + (not text.endswith("\n"))
    return f"{text[: end + 1]} … ({left:,} more lines)" if left else text


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
