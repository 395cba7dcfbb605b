# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `__global__` functions of a source: their names, where they stand and what they take."""

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from gpuprof.cuda_source.brackets import end_of, split_list, without_template_lists
from gpuprof.cuda_source.declarations import declarations
from gpuprof.cuda_source.masking import line_of, masked, without_directives

#: Macros that stand for macros, and kernels with their declarations, that anybody writes in one file.
_DEEPEST_MACROS = 8
_MOST_FUNCTIONS = 1000
#: The longest text between `__global__` and a function's parameters: attributes, type and name.
_LONGEST_HEAD = 1000
_CALLED = re.compile(r"(?P<name>~?\b[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)\s*\(")
_ATTRIBUTES = re.compile(r"__\w+__|alignas|decltype")
#: What stands behind a macro in front of a function, and behind no function's parameters.
_WORD = re.compile(r"\s*(?!__\w+__\b)\w")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<body>(?:[^\\\n]|\\.)*)", re.M | re.S)


class KernelFunction(Struct, frozen=True):
    """One `__global__` function; its parameters, and a template's, as the source writes them."""

    name: str
    line: int
    parameters: tuple[str, ...]
    template: tuple[str, ...] | None
    has_body: bool = True

    @property
    def entry(self) -> str:
        """How a header names it: `sgemm`, or `sgemm<BM, BN>` for a template."""
        return self.name if self.template is None else f"{self.name}<{', '.join(self.template_names)}>"

    @property
    def types(self) -> str:
        """What it takes, without the names: what tells it from others that are called like it."""
        return ", ".join(re.sub(r"(?<=\S)\s*\b[A-Za-z_]\w*\Z", "", one) for one in self.parameters)

    @property
    def template_names(self) -> tuple[str, ...]:
        """Names of its template's parameters; none where it is no template."""
        return tuple(map(_template_name, self.template or ()))


def split_types(entry: str) -> tuple[str, str | None]:
    """What names a function, and the types of its parameters where an entry has them in parentheses."""
    match = re.fullmatch(r"(.*[\w>])\s*\(([^()]*)\)\s*", entry)
    return (match[1], match[2]) if match else (entry, None)


def annotations(source: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Words that mark functions, and the macros of a source that stand for them."""
    found = list(words)
    macros = [(match["name"], set(re.findall(r"\w+", match["body"]))) for match in _MACRO.finditer(source)]
    for _ in range(_DEEPEST_MACROS):
        more = [name for name, body in macros if name not in found and body.intersection(found)]
        if not more:
            break
        found += more
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=64)
def kernel_functions(source: str) -> tuple[KernelFunction, ...]:
    """Every `__global__` function of a source, in order, as far as its text tells; each name once."""
    code = without_directives(masked(source))
    marks = re.compile(rf"\b(?:{'|'.join(map(re.escape, annotations(masked(source), ('__global__',))))})\b")
    found: dict[str, KernelFunction] = {}
    for mark in islice(marks.finditer(code), 2 * _MOST_FUNCTIONS):
        function = _function_at(source, code, mark.start(), mark.end())
        if function is not None and (function.has_body or function.name not in found):
            known = found.setdefault(function.name, function)
            if not known.has_body:
                found[function.name] = function
    return tuple(found.values())


def _function_at(source: str, code: str, mark: int, position: int) -> KernelFunction | None:
    limit = position + _LONGEST_HEAD
    while (match := _CALLED.search(code, position, limit)) and _is_attribute(code, position, match):
        position = end_of(code, match.end() - 1) or len(code)
    if match is None or re.search(r"[;{}]", code[position : match.start()]):
        return None
    end = end_of(code, match.end() - 1)
    if end is None:
        return None
    begin, namespaces = _surroundings(source, mark)
    before = code[begin:mark]
    _, lists = without_template_lists(before)
    if re.search(r"\btemplate\s*\Z", before):  # an explicit instantiation
        return None
    name = re.sub(r"\s", "", match["name"])
    return KernelFunction(
        name="::".join((*filter(None, namespaces), name)),
        line=line_of(source, match.start()),
        parameters=tuple(_plain(part.partition("=")[0]) for part in split_list(code[match.end() : end - 1])),
        template=tuple(map(_plain, split_list(lists[-1]))) if lists else None,
        has_body=not code[end:].lstrip().startswith(";"),
    )


def _is_attribute(code: str, position: int, called: "re.Match[str]") -> bool:
    """Whether what is called stands before a function: an attribute, or a macro that makes one."""
    end = end_of(code, called.end() - 1)
    follows = end is not None and not code[position : called.start()].strip() and _WORD.match(code, end)
    return bool(follows or _ATTRIBUTES.fullmatch(called["name"]))


def _surroundings(source: str, position: int) -> tuple[int, tuple[str, ...]]:
    """Where the declaration around a position begins, and in which namespaces."""
    cut = declarations(source) or ()
    index = bisect_right(cut, position, key=lambda declaration: declaration.begin) - 1
    if index >= 0 and position < cut[index].end:
        return cut[index].begin, cut[index].namespaces
    code = without_directives(masked(source))
    return max(code.rfind(mark, 0, position) for mark in ";}") + 1, ()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _template_name(parameter: str) -> str:
    """The name of a template's parameter: `int BM = 64` is `BM`."""
    words = re.findall(r"\w+", parameter.partition("=")[0])
    return words[-1] if words else "…"


def is_one_of_several(source: str, name: str) -> bool:
    """Whether a source defines several kernels of a name, as far as its text tells."""
    code = masked(source)
    found = re.finditer(rf"\b__global__\b[^;{{}}()]*\b{name}\s*\(", code)
    ends = [end_of(code, match.end() - 1) for match in found]
    return sum(end is not None and code[end:].lstrip().startswith("{") for end in ends) > 1


@lru_cache(maxsize=64)
def template_names(source: str) -> frozenset[str]:
    """Names of the parameters of every template in a source; no macro may be called like one."""
    _, lists = without_template_lists(without_directives(masked(source)))
    return frozenset(_template_name(part) for parts in lists for part in split_list(parts))
