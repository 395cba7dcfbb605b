# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which files on this machine a compilation may read: what decides its machine code besides its own text."""

import errno
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuprof.cuda_source.include_names import included_names
from gpuprof.files import read_content

_OPTIONS = re.compile(r"(?:-I|--include-path=)\s*(?P<path>.+)\Z")
_PRE_INCLUDES = re.compile(r"(?:-include|--pre-include)[= ]\s*(?P<path>.+)\Z")


class UnknownInclude(Exception):
    """A source includes a file whose name only the preprocessor knows."""


def included_files(texts: Iterable[str], options: Sequence[str]) -> dict[Path, bytes]:
    """Every file that texts may include, with its content.

    Conditions are not evaluated, and where a name is found in several places all of them count: a file too
    many costs a compilation, one too few the truth.

    Raises:
        UnknownInclude: A directive names a macro, or more than is read of a file.
    """
    folders = folders_of(options)
    found: dict[Path, bytes] = {}
    pending: list[tuple[tuple[Path, ...], Sequence[str]]] = [((), _names_in(text)) for text in texts]
    # These alone are looked for in the working directory too.
    pending.append(
        ((Path(),), [match["path"] for option in options if (match := _PRE_INCLUDES.match(option))])
    )
    while pending:
        beside, names = pending.pop()
        for name in names:
            for place in dict.fromkeys((*beside, *folders)):
                path = place / name
                content = None if path in found else _content(path)
                if content is not None:
                    found[path] = content
                    pending.append(((path.parent,), _names_in(content.decode(errors="replace"))))
    return found


def folders_of(options: Sequence[str]) -> list[Path]:
    """Where the compiler is told to look for included files."""
    return [Path(match["path"]) for option in options if (match := _OPTIONS.match(option))]


def _names_in(text: str) -> tuple[str, ...]:
    includes = included_names(text)
    if includes.by_macro:
        raise UnknownInclude
    return includes.names


def _content(path: Path) -> bytes | None:
    try:
        return read_content(path)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise UnknownInclude from error
        return None
