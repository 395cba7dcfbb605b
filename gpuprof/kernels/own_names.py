# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Names that a source gives a meaning of its own, and those that a header gives one too."""

import re
from collections.abc import Iterable
from functools import lru_cache

from gpuprof.cuda_source.brackets import without_template_lists
from gpuprof.cuda_source.functions import template_names
from gpuprof.cuda_source.masking import DIRECTIVE, line_of, masked

#: Words that a declaration of an integer begins with, in front of its name.
_INTEGER = r"(?:int|unsigned|long|short|char|bool|auto|size_t|u?int(?:8|16|32|64)?(?:_t)?|uint)"
_DECLARED = re.compile(rf"\b{_INTEGER}\s+(?:const\s+)?(?P<name>\w+)\s*[=,;)({{\[]")
#: A macro's definition, and what stands in front of one that is a default.
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_UNLESS = re.compile(r"(?:^[ \t]*#[ \t]*ifndef[ \t]+|!\s*defined\s*\(?\s*)(\w+)", re.MULTILINE)


@lru_cache(maxsize=64)
def own_names(source: str) -> frozenset[str]:
    """Names that a source gives a meaning of its own: its templates' parameters, types, integers and macros.

    Such a name is not made a macro: `template <int BM>` could not be read, and `#define real float` wins.
    """
    defined, defaults = _macros(source)
    return own_types(source) | ({*defined, *_declared(source)} - defaults)


@lru_cache(maxsize=64)
def own_types(source: str) -> frozenset[str]:
    """The templates' parameters and types among them: what no macro may be called like in a header either."""
    code = masked(source)
    types = re.findall(r"\busing\s+(\w+)\s*=", code)
    types += re.findall(r"\btypedef\b[^;{}()]{0,200}?\b(\w+)\s*;", code)
    return template_names(source).union(types)


@lru_cache(maxsize=64)
def _macros(source: str) -> tuple[dict[str, int], frozenset[str]]:
    """Every macro that a source defines, with the place of its first definition, and which are defaults."""
    code = masked(source)
    directives = "\n".join(match[0] for match in DIRECTIVE.finditer(code))
    found = {match[1]: match.start() for match in reversed([*_DEFINED.finditer(code)])}
    return found, frozenset(_UNLESS.findall(directives))


@lru_cache(maxsize=64)
def _declared(source: str) -> frozenset[str]:
    plain, _ = without_template_lists(masked(source))
    return frozenset(match["name"] for match in _DECLARED.finditer(plain)) - template_names(source)


def clash(source: str, names: Iterable[str]) -> tuple[str, int] | None:
    """A parameter of the header's that the source gives a value itself, and on which line; None for none.

    Both cannot be: the source's value would win over the one that the launch is worked out with. What stands
    between `#ifndef NAME` and `#endif` is a default, and fine.
    """
    code = masked(source)
    defined, defaults = _macros(source)
    for name in names:
        if name in defaults:
            continue
        if name in defined:
            return name, line_of(code, defined[name])
        if name in _declared(source):
            places = (match.start() for match in _DECLARED.finditer(code) if match["name"] == name)
            return name, line_of(code, next(places, 0))
    return None
