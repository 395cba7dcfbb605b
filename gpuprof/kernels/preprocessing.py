# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel file is preprocessed with, from its header and the command line: folders and macros."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from gpuprof.errors import PATH_ERRORS, HeaderError, InputError
from gpuprof.kernels.carried import carried_files
from gpuprof.kernels.kernel import Kernel
from gpuprof.records import replace
from gpuprof.tables import TableReader, is_identifier, is_integer

#: Macros that every kernel gets.
OWN_MACROS = ("real", "BLOCK_X", "BLOCK_Y", "BLOCK_Z")
#: A file of CUDA's own headers, and one of the host's, by which their folders are known.
_OF_CUDA = ("cuda_runtime_api.h", "cuda_fp16.h", "cuda/std/version", "cub/version.cuh", "thrust/version.h")
_OF_HOST = "stdio.h"


class Preprocessing(Struct, frozen=True):
    """What the preprocessor is told."""

    include: tuple[Path, ...] = ()
    define: Mapping[str, str] = {}


NOTHING = Preprocessing()


def parse_preprocessing(folders: Iterable[Path], definitions: Iterable[str]) -> Preprocessing:
    """What was typed behind `-I` and `-D`."""
    define = {}
    for text in definitions:
        name, equals, value = text.partition("=")
        if not is_identifier(name) or _is_unfit(value):
            raise InputError(
                f"-D {text!r} is no definition.", fix="Write NAME or NAME=VALUE, for example -D TILE=32."
            )
        define[name] = value if equals else "1"
    include = tuple(folders)
    for folder in include:
        if complaint := _folder_complaint(folder):
            raise InputError(f"-I {str(folder)!r} {complaint}.")
    return Preprocessing(include, define)


def included(folders: str | Path | Sequence[str | Path]) -> Preprocessing:
    """Folders of headers as a program gives them."""
    return parse_preprocessing(map(Path, [folders] if isinstance(folders, str | Path) else folders), ())


def read_preprocessing(reader: TableReader, folder: Path) -> Preprocessing:
    """The fields `include` and `define` of a header."""
    include = tuple(folder / name for name in reader.strings("include", []))
    for path in include:
        if complaint := _folder_complaint(path):
            raise reader.error("include", f"names {str(path)!r}, which {complaint}")
        if not path.resolve().is_relative_to(folder.resolve()):
            what = f"names {str(path)!r}, which is no folder below the file's own"
            raise reader.error("include", what, f"Type it on the command line: -I {shlex.quote(str(path))}")
    return Preprocessing(include, read_define(reader))


def read_define(reader: TableReader) -> Mapping[str, str]:
    """The table `define`: integers, texts, or `true` for a macro that is only there."""
    define = {}
    for name, value in reader.take("define", dict, {}).items():
        if not is_identifier(name):
            raise reader.error("define", f"names {name!r}, which is not the name of a macro")
        if name in OWN_MACROS:
            raise reader.error(f"define.{name}", "is a macro of gpuprof's own")
        if value is True:
            define[name] = "1"
        elif (is_integer(value) and abs(value) < 2**64) or (isinstance(value, str) and not _is_unfit(value)):
            define[name] = str(value)
        else:
            raise reader.error(f"define.{name}", f"must be an integer, a line of text or true, not {value!r}")
    return define


def prepared(kernel: Kernel, path: Path, header: Preprocessing, command: Preprocessing) -> Kernel:
    """A kernel with what it is compiled with: macros, and the files that it includes."""
    for names, error in ((header.define, HeaderError), (command.define, InputError)):
        for name in names:
            if name in (*kernel.integers, *kernel.derived):
                raise error(
                    f"{path}: {name} is a parameter of the header, and cannot be defined besides.",
                    fix=f"Write -k {path}:{name}=VALUE, or change it under [parameters].",
                )
            if name in OWN_MACROS:
                raise error(
                    f"{path}: {name} is a macro of gpuprof's own.",
                    fix="--dtype and --block decide over them.",
                )
    headers, options = found_headers(kernel.source, path, command.include, header.include)
    return replace(
        kernel,
        defines={**header.define, **command.define},
        headers=headers,
        compile_options=(*kernel.compile_options, *options),
    )


def found_headers(
    source: str, path: Path, folders: Sequence[Path], below: Iterable[Path] = ()
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The files that a source includes of folders, and options for what does not travel.

    CUDA's own headers are too many to: they are read where they stand, if a person says so.
    """
    installed = [folder for folder in folders if _holds(folder, _OF_CUDA)]
    own = [folder for folder in (*folders, *below) if folder not in installed]
    return carried_files(source, path, own), tuple(f"--include-path={folder}" for folder in installed)


def _is_unfit(text: str) -> bool:
    return re.search(r"[\r\n\0]", text) is not None


def _folder_complaint(folder: Path) -> str:
    """What is wrong with a folder of headers, as the rest of a sentence; empty for a good one."""
    try:
        if not folder.absolute().is_dir():  # nor is one beside a working directory that is gone
            return "is no folder"
    except PATH_ERRORS:
        return "is no folder"
    if _holds(folder, (_OF_HOST,)):
        return "holds the host's headers, which are not for device code"
    return ""


def _holds(folder: Path, names: Iterable[str]) -> bool:
    try:
        return any((folder / name).is_file() for name in names)
    except PATH_ERRORS:
        return False
