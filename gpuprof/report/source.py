# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel's source as HTML: highlighted, one row per line, with the counts of each line beside it."""

import difflib
import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from gpuprof.analysis.lines import LineFigures, line_figures
from gpuprof.results import Measurement
from gpuprof.text import visible

#: Each piece takes what it can and gives nothing back, so that no text takes more than linear time.
_TOKEN = re.compile(
    r"(?P<comment>/\*.*?(?:\*/|\Z)|//[^\n]*)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*+"?)'
    r"|(?P<directive>^[ \t]*\#[ \t]*\w+)"
    r"|(?P<number>\b(?:0[xX][0-9a-fA-F]++|\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?)[uUlLfF]*+\b)"
    r"|(?P<keyword>\b(?:const|constexpr|extern|static|volatile|inline|template|typename|struct|return|if|else"
    r"|for|while|do|break|continue|switch|case|default|sizeof|using|__global__|__device__|__shared__"
    r"|__launch_bounds__|__restrict__|__forceinline__|__syncthreads|__syncwarp|asm)\b)"
    r"|(?P<type>\b(?:void|bool|char|short|int|long|unsigned|float|double|real|size_t|float2|float4|double2"
    r"|u?int(?:8|16|32|64)_t)\b)"
    r"|(?P<builtin>\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize)\b)",
    re.DOTALL | re.MULTILINE,
)
_HEADER_BEGIN = re.compile(r"/\*gpuprof\b")
_HEADER_END = re.compile(r"\*/[ \t]*\n*")
#: Lines of a source up to which it is compared with another: comparing takes the square of that.
_MOST_COMPARED = 2000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of source.

    Args:
        number: From 1, in the kernel file.
        code: Highlighted and escaped.
        figures: Its counts, None without any.
    """

    number: int
    code: Markup
    figures: LineFigures | None


def highlight(source: str) -> list[Markup]:
    """Each line of the source, escaped, with its tokens in spans; a token's span never crosses a line."""
    pieces: list[str] = []
    end = 0
    for match in _TOKEN.finditer(source):
        pieces.append(str(escape(source[end : match.start()])))
        kind = match.lastgroup
        pieces.append(
            "\n".join(
                f'<span class="t-{kind}">{escape(part)}</span>' if part else ""
                for part in match[0].split("\n")
            )
        )
        end = match.end()
    pieces.append(str(escape(source[end:])))
    return [Markup(line) for line in "".join(pieces).removesuffix("\n").split("\n")]


def header_lines(source: str) -> int:
    """How many lines the licence and the TOML header take; the kernel starts after them."""
    begin = _HEADER_BEGIN.search(source)
    end = _HEADER_END.search(source, begin.end()) if begin else None
    return source.count("\n", 0, end.end()) if end else 0


def source_lines(source: str, case: Measurement | None) -> list[Line]:
    """All lines with the counts of one case."""
    figures = line_figures(case) if case else {}
    return [
        Line(number, code, figures.get(number)) for number, code in enumerate(highlight(visible(source)), 1)
    ]


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """How two kernels differ, headers aside: (`+`, `-`, ` ` or `@`, text) per line."""
    old, new = (text.splitlines()[header_lines(text) :] for text in (before, after))
    if max(len(old), len(new)) > _MOST_COMPARED:
        return [("@", f"not compared: more than {_MOST_COMPARED:,} lines")]
    return [
        (line[0], line[1:] if line[0] in "+- " else line)
        for line in list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    ]
