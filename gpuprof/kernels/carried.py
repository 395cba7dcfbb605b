# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The files that a kernel file includes: read with it, so that it can be compiled wherever it travels.

NVRTC finds a travelling file by the very name that a directive uses, and knows no folders. So every file gets
one name, and the directives in files that travel are changed to these names; the kernel file stays as it is.
"""

import os
import re
from collections import deque
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path, PurePosixPath

from gpuprof.cuda_source.include_names import included_names, with_names
from gpuprof.errors import PATH_ERRORS, HeaderError, reason
from gpuprof.files import read_code, same_file
from gpuprof.kernels.shipped import KERNEL_ROOT

#: Device code that shipped ladders share.
_SHARED = KERNEL_ROOT / "shared"
#: What may travel with each case; a library larger than this is better installed where the cases run.
MOST_BYTES = 32 << 20
#: Headers of C, and of C++, without an ending. Others in angle brackets may stand beside: projects say -I.
_OF_C = re.compile(
    r"[^.]*|(?:assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|malloc|math|memory|setjmp|signal|std\w+"
    r"|string|strings|time|wchar)\.h"
)

#: Files by the name that a directive uses, and by whether it stands in quotes.
Places = dict[tuple[str, bool], Path]


def carried_files(source: str, path: Path, folders: Sequence[Path]) -> Mapping[str, str]:
    """Every file that a kernel file may include, conditions not evaluated, by the names that include them.

    A name that is found nowhere is left to the compiler: it may be CUDA's, the host's, or under a condition.
    So is one that leads elsewhere than into the kernel file's own folder and those that are given, links
    resolved, or to a hidden file: the compiler does not find it either.

    Raises:
        HeaderError: A file cannot be read, or they are too large to travel.
    """
    if same_file(path / "../..", KERNEL_ROOT):
        folders = (*folders, _SHARED)
    find = _Finder(path.parent, folders)
    direct = find.places(source, path.parent)
    names: dict[Path, str] = {}
    for (name, _), place in direct.items():
        names.setdefault(place, name)
    aliases = {name: place for (name, _), place in reversed(direct.items())}
    taken = {*names.values(), *aliases}
    texts: dict[str, str] = {}
    left = MOST_BYTES
    pending = deque(names)
    while pending:
        place = pending.popleft()
        text = _read(place, path)
        left -= len(text)
        if left < 0:
            raise HeaderError(
                f"{path} includes more than {MOST_BYTES >> 20} MiB of files.",
                fix="Include less of it.",
            )
        inner = find.places(text, place.parent)
        for (name, quoted), other in inner.items():
            if other not in names:
                beside = quoted and other == _resolved(place.parent, name)
                wanted = normpath(PurePosixPath(names[place]).parent / name) if beside else name
                names[other] = _free(wanted, taken)
                pending.append(other)
        if included_names(text).by_macro:
            aliases = {**{name: other for (name, _), other in inner.items()}, **aliases}
        new = {key: names[other] for key, other in inner.items()}
        texts[names[place]] = with_names(text, lambda name, quoted, new=new: new.get((name, quoted)))  # type: ignore[misc]
    return {**{name: f'#include "{names[place]}"\n' for name, place in aliases.items()}, **texts}


def file_below(folder: Path, name: str) -> Path | None:
    """A file of a folder, unless it is hidden or a link leads out; None where there is none."""
    return _Finder(folder, ())._find(name, (folder,))


class _Finder:
    """Finds included files, in some folders and below alone."""

    def __init__(self, own: Path, folders: Sequence[Path]) -> None:
        self._own, self._folders = own, tuple(folders)
        self._roots = tuple(resolved for folder in (own, *folders) if (resolved := _resolved(folder)))

    def places(self, text: str, folder: Path) -> Places:
        """Where the files are that a text in a folder includes; last, in the kernel file's own."""
        includes = included_names(text)
        places = {}
        for name in includes.quoted:
            if (found := self._find(name, (folder, *self._folders, self._own))) is not None:
                places[name, True] = found
        for name in includes.angled:
            beside = () if _OF_C.fullmatch(name) else (folder, self._own)
            if (found := self._find(name, (*self._folders, *beside))) is not None:
                places[name, False] = found
        return places

    def _find(self, name: str, folders: Sequence[Path]) -> Path | None:
        found = (path for folder in folders if (path := _resolved(folder, name)) and self._may_read(path))
        return next(found, None)

    def _may_read(self, path: Path) -> bool:
        within = (path.relative_to(root) for root in self._roots if path.is_relative_to(root))
        return any(not any(part.startswith(".") for part in relative.parts) for relative in within)


def _resolved(folder: Path, name: str = "") -> Path | None:
    """A path without links; of a name, only where a file is called so."""
    try:
        path = (folder / os.fsdecode(name.encode())).resolve()  # as UTF-8, whatever the locale
        return path if not name or path.is_file() else None
    except PATH_ERRORS:
        return None


def _free(name: str, taken: set[str]) -> str:
    """The name, or one made from it that nothing else has."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{number}/{name}"
    taken.add(free)
    return free


def _read(place: Path, kernel_file: Path) -> str:
    try:
        return read_code(place)
    except PATH_ERRORS as error:
        raise HeaderError(
            f"{kernel_file} includes {place}, which cannot be read: {reason(error)}."
        ) from error
