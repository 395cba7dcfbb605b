# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which files a source names in its include directives."""

import re
from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

from gpuprof.cuda_source.masking import uncommented

#: An include directive; of a name that a macro stands for, only that there is one.
_INCLUDE = re.compile(
    r"^(?P<directive>[ \t]*#[ \t]*include[ \t]*)"
    r'(?:"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>|(?P<macro>[^\s"<]))',
    re.MULTILINE,
)
#: A macro whose text is the name of a file, and may stand in a directive.
_NAMED = re.compile(r'^[ \t]*#[ \t]*define[ \t]+\w+[ \t]+(?:"([^"\n]+)"|<([^>\n]+)>)[ \t]*$', re.MULTILINE)


class Includes(Struct, frozen=True):
    """What a text includes, conditions not evaluated; what macros stand for counts as a name in quotes."""

    quoted: tuple[str, ...]
    angled: tuple[str, ...]
    by_macro: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.quoted, *self.angled)))


@lru_cache(maxsize=64)
def included_names(text: str) -> Includes:
    """The names in a text's include directives, in order, each once."""
    code = uncommented(text)
    found = list(_INCLUDE.finditer(code))
    by_macro = any(match["macro"] for match in found)
    named = [quoted or angled for quoted, angled in _NAMED.findall(code)] if by_macro else []
    quoted = [match["quoted"] for match in found if match["quoted"]]
    angled = [match["angled"] for match in found if match["angled"]]
    return Includes(tuple(dict.fromkeys((*quoted, *named))), tuple(dict.fromkeys(angled)), by_macro)


def with_names(text: str, rename: Callable[[str, bool], str | None]) -> str:
    """A text whose include directives name what `rename` gives for a name, and whether it stood in quotes."""
    parts: list[str] = []
    position = 0
    for match in _INCLUDE.finditer(uncommented(text)):
        name = match["quoted"] or match["angled"]
        new = rename(name, match["quoted"] is not None) if name else None
        if new is not None:
            parts += (text[position : match.start()], f'{match["directive"]}"{new}"')
            position = match.end()
    return "".join((*parts, text[position:]))
