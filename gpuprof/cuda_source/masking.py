# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sources with the parts blanked that are no code, so that every position and line number stays."""

import re
from collections.abc import Iterable
from functools import lru_cache

_NO_CODE = re.compile(
    r"""
    (?P<comment>//[^\\\n]*(?:\\.[^\\\n]*)* | /\*.*?(?:\*/|\Z))   # perhaps continued on the next line
    | \bR"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
    | "[^"\\\n]*(?:\\.[^"\\\n]*)*"?
    | (?<![0-9A-Fa-f])'[^'\\\n]*(?:\\.[^'\\\n]*)*'?          # no digit separator: 1'000
    """,
    re.DOTALL | re.VERBOSE,
)
#: A preprocessor directive in masked code, with the lines that continue it.
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\.)*", re.MULTILINE | re.DOTALL)


def blank(text: str) -> str:
    """Spaces in the place of a text, its line ends kept."""
    return "\n".join(" " * len(line) for line in text.split("\n"))


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with what stands between some places blank, in order; what stands in another once."""
    parts: list[str] = []
    position = 0
    for begin, end in spans:
        if end > position:
            parts += (text[position:begin], blank(text[begin:end]))
            position = end
    return "".join((*parts, text[position:]))


@lru_cache(maxsize=64)
def masked(source: str) -> str:
    """A source whose comments and literals are blank, of the same length and with the same lines."""
    return _NO_CODE.sub(_blank_literal, source)


def _blank_literal(match: "re.Match[str]") -> str:
    """A comment or literal as blanks; one that is continued on the next line, in a macro, still is."""
    text = blank(match[0])
    if match["comment"] or "\\\n" not in match[0]:
        return text
    return "".join("\\" if match[0].startswith("\\\n", at) else mark for at, mark in enumerate(text))


@lru_cache(maxsize=64)
def uncommented(source: str) -> str:
    """A source whose comments are blank and whose strings stay, as include directives need them."""
    return _NO_CODE.sub(lambda match: blank(match[0]) if match["comment"] else match[0], source)


#: Where a branch of a conditional begins or ends, in masked code.
_BRANCH = re.compile(r"^[ \t]*#[ \t]*(?P<word>if|el|endif)[^\n]*", re.MULTILINE)
_GUARD = re.compile(
    r"\s*#[ \t]*(?:ifndef[ \t]+(\w+)|if[ \t]+!defined\(?(\w+)\)?)\s*#[ \t]*define[ \t]+(?:\1|\2)\b"
)


def one_branch(code: str, which: int) -> str:
    """Masked code with one branch of each conditional, by its index; the others are blank."""
    opened: list[list[int]] = []
    left_out: list[tuple[int, int]] = []
    for match in _BRANCH.finditer(code):
        if match["word"] == "if":
            opened.append([match.end()])
        elif opened:
            opened[-1] += match.span()
        if match["word"] == "endif" and opened:
            places = opened.pop()
            branches = list(zip(places[::2], places[1::2], strict=False))
            del branches[which]
            left_out += branches
    return without_spans(code, sorted(left_out))


def conditions_at(code: str, position: int) -> list[str]:
    """The conditionals around a place of masked code, outermost first, but include guards."""
    opened: list[str] = []
    for match in _BRANCH.finditer(code, 0, position):
        if match["word"] == "endif":
            del opened[-1:]
        elif match["word"] == "if":
            opened.append("" if _GUARD.match(code, match.start()) else match[0].strip())
        elif opened:
            opened[-1] = match[0].strip()
    return [text for text in opened if text]


@lru_cache(maxsize=64)
def without_directives(code: str) -> str:
    """Masked code whose preprocessor directives are blank too."""
    return DIRECTIVE.sub(lambda match: blank(match[0]), code)


def line_of(text: str, position: int) -> int:
    """The line on which a position stands, counted from 1."""
    return text.count("\n", 0, position) + 1
