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


@lru_cache(maxsize=16)
def own_names(source: str) -> frozenset[str]:
    """Names that a source gives a meaning of its own: its templates' parameters, types, and macros.

    Such a name is not made a macro: `template <int BM>` could not be read, and `#define real float` wins.
    """
    code = masked(source)
    defined = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", code, re.MULTILINE)
    unless = re.findall(r"^[ \t]*#[ \t]*if(?:ndef[ \t]+|[^\n]*!\s*defined\s*\(?\s*)(\w+)", code, re.MULTILINE)
    types = re.findall(r"\busing\s+(\w+)\s*=", code)
    types += re.findall(r"\btypedef\b[^;{}()]{0,200}?\b(\w+)\s*;", code)
    return frozenset((*types, *(set(defined) - set(unless)))) | template_names(source)


def clash(source: str, names: Iterable[str]) -> tuple[str, int] | None:
    """A parameter of the header's that the source gives a value itself, and on which line; None for none.

    Both cannot be: the source's value would win over the one that the launch is worked out with. What stands
    between `#ifndef NAME` and `#endif` is a default, and fine.
    """
    code = masked(source)
    plain, _ = without_template_lists(code)
    # What a hundred names are looked for in is short.
    directives = "\n".join(match[0] for match in DIRECTIVE.finditer(code))
    declared = {match["name"] for match in _DECLARED.finditer(plain)}
    templates = template_names(source)
    for name in names:
        if re.search(
            rf"^[ \t]*#[ \t]*if(?:ndef[ \t]+|[^\n]*!\s*defined\s*\(?\s*){name}\b", directives, re.MULTILINE
        ):
            continue
        macro = rf"^[ \t]*#[ \t]*define[ \t]+{name}\b"
        if re.search(macro, directives, re.MULTILINE):
            found = re.search(macro, code, re.MULTILINE)
        elif name in declared and name not in templates:
            found = next((match for match in _DECLARED.finditer(code) if match["name"] == name), None)
        else:
            continue
        return name, line_of(code, found.start()) if found else 1
    return None
