# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The files that a kernel file includes: read with it, so that it can be compiled wherever it travels.

NVRTC finds a travelling file by the very name that a directive uses, and knows no folders. So every file gets
one name, and the directives in files that travel are changed to these names; the kernel file stays as it is.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path, PurePosixPath

from gpuprof.cuda_source.include_names import included_names, with_names
from gpuprof.errors import PATH_ERRORS, HeaderError, reason
from gpuprof.files import read_input

#: What may travel with each case; a library larger than this is better installed where the cases run.
MOST_BYTES = 32 << 20

#: Files by the name that a directive uses, and by whether it stands in quotes.
Places = dict[tuple[str, bool], Path]


def carried_files(source: str, path: Path, folders: Sequence[Path]) -> Mapping[str, str]:
    """Every file that a kernel file may include, conditions not evaluated, by the names that include them.

    A name that is found nowhere is left to the compiler: it may be CUDA's, the host's, or under a condition.

    Args:
        source: The kernel file's text.
        path: Where it stands: names in quotes are looked for beside it first.
        folders: Where names are looked for besides, in order.

    Raises:
        HeaderError: A file cannot be read, or they are too large to travel.
    """
    direct = _places(source, path.parent, folders)
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
                fix="Name a toolkit's or an installed library's folder as an option of the compiler: "
                'compile_options = ["-I/folder"].',
            )
        inner = _places(text, place.parent, folders)
        for (name, quoted), other in inner.items():
            if other not in names:
                wanted = normpath(PurePosixPath(names[place]).parent / name) if quoted else name
                names[other] = _free(wanted, taken)
                pending.append(other)
        if included_names(text).by_macro:
            aliases = {**{name: other for (name, _), other in inner.items()}, **aliases}
        new = {key: names[other] for key, other in inner.items()}
        texts[names[place]] = with_names(text, lambda name, quoted, new=new: new.get((name, quoted)))  # type: ignore[misc]
    return {**{name: f'#include "{names[place]}"\n' for name, place in aliases.items()}, **texts}


def _places(text: str, folder: Path, folders: Sequence[Path]) -> Places:
    """Where the files are that a text includes."""
    includes = included_names(text)
    places = {}
    for name in includes.quoted:
        if (found := _find(name, (folder, *folders))) is not None:
            places[name, True] = found
    for name in includes.angled:
        if (found := _find(name, folders)) is not None:
            places[name, False] = found
    return places


def _find(name: str, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        try:
            path = (folder / name).resolve()
            if path.is_file():
                return path
        except PATH_ERRORS:
            continue
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
        return read_input(place)
    except PATH_ERRORS as error:
        raise HeaderError(
            f"{kernel_file} includes {place}, which cannot be read: {reason(error)}."
        ) from error
