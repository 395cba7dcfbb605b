# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Calls of macros that make kernels or launch them, each as what the macro makes of it."""

import re
from collections.abc import Mapping

from gpuprof.cuda_source.brackets import end_of, split_list
from gpuprof.cuda_source.masking import masked, without_directives
from gpuprof.text import renamed

_DEFINED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)\((?P<taken>[^()\n]*)\)(?P<body>(?:[^\\\n]|\\.)*)",
    re.MULTILINE | re.DOTALL,
)
#: A macro, of whichever kind, and its body.
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\\\n]|\\.)*)", re.MULTILINE | re.DOTALL)
_MADE = re.compile(r"\b__global__\b|<<\s*<")
#: Macros that call macros, as anybody writes them, and characters that all of them make.
_DEEPEST = 8
_LONGEST = 1 << 20


def makers(code: str, made: re.Pattern[str]) -> dict[str, tuple[str, str]]:
    """Macros of masked code that make something when they are called: what each takes, and its body."""
    macros = {one["name"]: (one["taken"], one["body"]) for one in _DEFINED.finditer(code)}
    found = {name for name, (_, body) in macros.items() if made.search(body)}
    for _ in range(_DEEPEST if found else 0):
        called = ((name, re.findall(r"\w+", body)) for name, (_, body) in macros.items())
        found |= {name for name, words in called if not found.isdisjoint(words)}
    return {name: macro for name, macro in macros.items() if name in found}


def half_brackets(code: str) -> "re.Pattern[str]":
    """What finds macros of masked code that open what others close, as a namespace is by libraries."""
    words: dict[str, list[str]] = {}
    for name, body in _MACRO.findall(code):  # of each branch of a conditional
        words.setdefault(name, []).extend(re.findall(r"\w+|[{}]", body))
    opened = dict.fromkeys(words, 0)
    for _ in range(_DEEPEST):
        known = {**opened, "{": 1, "}": -1}
        opened = {name: sum(known.get(word, 0) for word in body) for name, body in words.items()}
    halves = "|".join(name for name, count in opened.items() if count)
    return re.compile(rf"\b({halves or '(?!)'})\b(?:\s*\([^()]*\))?")


def unfolded(source: str) -> str:
    """Masked code with as many lines in which every kernel and launch that a macro makes is written out."""
    code = masked(source)
    macros = makers(code, _MADE)
    calls = re.compile(rf"\b({'|'.join(macros)})\s*(?=\()")
    for _ in range(_DEEPEST if macros else 0):
        parts, position = [], 0
        for call in calls.finditer(without_directives(code)):
            end = end_of(code, call.end())
            if end is None or call.start() < position:
                continue
            given = split_list(code[call.end() + 1 : end - 1])
            made = _expanded(*macros[call[1]], given) + "\n" * code.count("\n", call.start(), end)
            parts += [code[position : call.start()], made]
            position = end
        if not parts or sum(map(len, parts)) > _LONGEST:
            break
        code = "".join((*parts, code[position:]))
    return code


def _expanded(taken: str, body: str, given: list[str]) -> str:
    """What a macro makes of its arguments, on one line."""
    names = split_list(taken)
    values: Mapping[str, str] = dict(zip(names, given, strict=False))
    if names[-1:] == ["..."]:
        values = {**values, "__VA_ARGS__": ", ".join(given[len(names) - 1 :])}
    return " ".join(re.sub(r"\s*##\s*", "", renamed(body.replace("\\\n", " "), values)).split())
