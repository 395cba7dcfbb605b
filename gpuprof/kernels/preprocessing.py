# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel file is compiled with, from its header and the command line: options, folders, macros.

Of the compiler's options a kernel file may ask for those that only decide over its own code. NVRTC also
writes files (`--create-pch`, `--time`, `--fdevice-time-trace`), reads them (`-I`, `--pre-include`) and passes
options on (`--ptxas-options`). A kernel file may come from anybody, so that what is not known here is
refused, spelt as it may be.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from gpuprof.cuda_source.brackets import without_template_lists
from gpuprof.cuda_source.functions import template_names
from gpuprof.cuda_source.masking import DIRECTIVE, line_of, masked
from gpuprof.errors import PATH_ERRORS, HeaderError, InputError
from gpuprof.kernels.carried import carried_files
from gpuprof.kernels.kernel import Kernel
from gpuprof.tables import TableReader, is_identifier, is_integer

_NAME = r"[A-Za-z_]\w*"
_BOOL = "=(?:true|false)"
_NUMBERS = r"=\d{1,6}(?:,\d{1,6}){0,99}"
#: Long names, behind one dash or two, by what may follow.
_LONG = {
    "": (
        *("use_fast_math", "extra-device-vectorization", "restrict", "device-as-default-execution-space"),
        *("default-device", "device-int128", "device-float128", "device-debug", "generate-line-info"),
        *("lineinfo", "disable-warnings", "Wreorder", "display-error-number", "err-no"),
        *("no-display-error-number", "no-err-no"),
    ),
    _BOOL: (
        *("ftz", "prec-div", "prec-sqrt", "fmad", "builtin-move-forward", "builtin-initializer-list"),
        *("brief-diagnostics", "brief-diag", "modify-stack-limit", "device-stack-protector"),
    ),
    _NUMBERS: ("diag-suppress", "diag-warn", "diag-error"),
    r"=\d{1,3}": ("maxrregcount",),
    r"=c\+\+\d\d": ("std",),
    "=on": ("dopt",),
    "=inline": ("optimization-info", "opt-info"),
    "=reorder": ("Werror", "warning-as-error"),
}
_ALLOWED = re.compile(
    "|".join(
        (
            *(f"--?(?:{'|'.join(map(re.escape, names))}){value}" for value, names in _LONG.items()),
            rf"(?:-D ?|--define-macro=){_NAME}(?:=[^\r\n\0]*)?",
            rf"(?:-U ?|--undefine-macro=){_NAME}",
            "-[Gw]",
        )
    ),
    re.ASCII,
)
#: Those whose value may be the next entry of the list, and what joins the two.
_SEPARATE = {
    **dict.fromkeys(("-D", "-U"), ""),
    **dict.fromkeys(("--define-macro", "--undefine-macro", "--maxrregcount", "-maxrregcount"), "="),
}
#: For the message: what the allowed ones are for.
ALLOWED_TEXT = (
    "A header may set macros (-D, -U), mathematics (--use_fast_math, --ftz, --prec-div, --prec-sqrt, --fmad),"
    " --maxrregcount=N, --std=c++NN, -G, -lineinfo, --restrict, --extra-device-vectorization,"
    " -default-device and which warnings show. Others may read or write files; folders of"
    " headers are typed: -I DIR."
)


def refused_option(options: Sequence[str]) -> str | None:
    """The first of joined options that a kernel file may not ask for; None where all are fine."""
    return next((option for option in options if _ALLOWED.fullmatch(option) is None), None)


def joined(options: Sequence[str]) -> tuple[str, ...]:
    """Options, each with its value where that is an entry of its own."""
    entries = iter(options)
    return tuple(
        option if (joint := _SEPARATE.get(option)) is None else option + joint + next(entries, "")
        for option in entries
    )


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


#: Macros that every kernel gets.
OWN_MACROS = ("real", "BLOCK_X", "BLOCK_Y", "BLOCK_Z")
#: A file of CUDA's own headers, and one of the host's, by which their folders are known.
_OF_CUDA = ("cuda_runtime_api.h", "cuda_fp16.h", "cuda/std/version")
_OF_HOST = "stdio.h"


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What the preprocessor is told."""

    include: tuple[Path, ...] = ()
    define: Mapping[str, str] = field(default_factory=dict)


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
    # CUDA's own headers are too many to travel: they are read where they stand, if a person says so.
    installed = [folder for folder in command.include if _holds(folder, _OF_CUDA)]
    own = [folder for folder in (*command.include, *header.include) if folder not in installed]
    return replace(
        kernel,
        defines={**header.define, **command.define},
        headers=carried_files(kernel.source, path, own),
        compile_options=(*kernel.compile_options, *(f"--include-path={folder}" for folder in installed)),
    )


def _is_unfit(text: str) -> bool:
    return re.search(r"[\r\n\0]", text) is not None


def _folder_complaint(folder: Path) -> str:
    """What is wrong with a folder of headers, as the rest of a sentence; empty for a good one."""
    try:
        if not folder.is_dir():
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
