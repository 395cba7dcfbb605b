# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What NVRTC is given for a kernel file: device code, headers by name, and where to find the rest."""

import errno
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from gpuprof.cuda_source.confined import confined
from gpuprof.cuda_source.host_code import device_parts, without_lines
from gpuprof.cuda_source.include_names import included_names
from gpuprof.cuda_source.masking import masked
from gpuprof.files import read_content
from gpuprof.records import replace
from gpuprof.text import ABSENT_HEADER
from gpuprof.toolchain.cuda_headers import CudaHeaders, find_cuda_headers, is_file, is_for_device, package_of
from gpuprof.toolchain.host_headers import GIVEN_BY_NVCC, HOST_HEADERS, USES_STD, stand_ins

_OPTIONS = re.compile(r"(?:-I|--include-path=)\s*(?P<path>.+)\Z")
#: Names a header that comes before the source's first line.
_PRE_INCLUDE = re.compile(r"(?:-include|--pre-include)[= ]\s*(?P<path>.+)\Z")

#: A macro that is a pragma: compilers that read what a preprocessor wrote take its line for one.
_PRAGMA_OF_MACRO = re.compile(
    r"^([ \t]*#[ \t]*define[ \t]+\w+(?:[ \t]|\\\n)+)#[ \t]*pragma[ \t]+((?:(?!/[/*])(?:[^\\\n]|\\\n))+)",
    re.MULTILINE,
)
#: Of C++20: a member's initial value by its name, and a concept.
_OF_CPP20 = re.compile(r"[{,]\s*\.\s*[A-Za-z_]\w*\s*=(?!=)|\bconcept\s+\w+\s*=")


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
    pending: list[tuple[tuple[Path, ...], Sequence[str]]] = [((), _names_of(text)) for text in texts]
    # These alone are looked for in the working directory too.
    pending.append(
        ((Path(),), [match["path"] for option in options if (match := _PRE_INCLUDE.match(option))])
    )
    while pending:
        beside, names = pending.pop()
        for name in names:
            for place in dict.fromkeys((*beside, *folders)):
                path = place / name
                content = None if path in found else _content(path)
                if content is not None:
                    found[path] = content
                    pending.append(((path.parent,), _names_of(content.decode(errors="replace"))))
    return found


def folders_of(options: Sequence[str]) -> list[Path]:
    """Where the compiler is told to look for included files."""
    return [Path(match["path"]) for option in options if (match := _OPTIONS.match(option))]


def _names_of(text: str) -> tuple[str, ...]:
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


#: Has cooperative groups do without CUDA's C++ library, which takes most of what compiling them does.
GROUPS_ALONE = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"
#: Options with which a file says itself that everything in it is for the device.
DEVICE_BY_DEFAULT = ("-default-device", "--device-as-default-execution-space")
#: Where an error stands that did not end the compilation at once.
_LAUNCH = "device-side kernel launch"
_ERROR = re.compile(r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): error\b", re.MULTILINE)


class NvrtcProgram(Struct, frozen=True):
    """One compilation's whole input, but for the files that NVRTC finds on this machine.

    Args:
        cuda_headers: CUDA's own headers on this machine, where the program names any; else None.
        left_out: Names of the file's functions, types and variables that are for the host.
        absent: Headers that are found nowhere and taken to be the host's, so that they are empty.
    """

    source: str
    headers: Mapping[str, str]
    options: tuple[str, ...]
    cuda_headers: CudaHeaders | None
    left_out: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()

    def without_errors(self, file_name: str, log: str, wanted: Container[str]) -> "NvrtcProgram | None":
        """The program without what errors are about that its wanted kernels do without; None for nothing."""
        places = dict.fromkeys((match["file"], int(match["line"])) for match in _ERROR.finditer(log))
        names = {file_name: "", **{name: name for name in self.headers}}
        lines = [(names[file], line) for file, line in places if file in names]
        given = {"": self.source, **self.headers}
        if _LAUNCH in log:  # which the compiler tells of the first alone
            lines += [
                (name, number)
                for name, text in given.items()
                for number, code in enumerate(masked(text).splitlines(), 1)
                if "<<<" in code
            ]
        texts, left_out = without_lines(given, lines, wanted)
        source = texts.pop("", self.source)
        headers = {**self.headers, **texts}
        if (source, headers) == (self.source, self.headers):
            return None
        return replace(self, source=source, headers=headers, left_out=self.left_out | left_out)


def make_program(
    source: str, carried: Mapping[str, str], options: Sequence[str], cuda_major: int
) -> NvrtcProgram:
    """Put together what a kernel file needs."""
    options = list(options)
    written = {"": source, **carried}
    texts = {name: _PRAGMA_OF_MACRO.sub(_as_operator, text) for name, text in written.items()}
    left_out = frozenset[str]()
    if not any(option in DEVICE_BY_DEFAULT for option in options):
        texts, left_out, unmarked = device_parts(texts)
        if unmarked:
            options.append(DEVICE_BY_DEFAULT[1])
    # Last, for what is left out leaves other lines.
    texts = confined(texts, options, carried)
    names = set(_names_in(texts.values()))
    code = [masked(text) for text in texts.values()]
    made = stand_ins(names - carried.keys(), "\n".join(code))
    headers = {**HOST_HEADERS, **made} if names or made else {}
    # What kernels use of another package is declared in its headers for the host too.
    used = {package_of(name) for name in names - HOST_HEADERS.keys()} - {""}
    headers = {name: text for name, text in headers.items() if package_of(name) not in used}
    uses_std = any(re.search(r"\bstd\s*::", text) for text in code)
    if uses_std and names:
        options.append(f"-D{USES_STD}")
    grouped = any(name.startswith("cooperative_groups") for name in names)
    if grouped and not any("cuda::" in text for text in code):
        options.append(GROUPS_ALONE)
    if any("__int128" in text for text in code):
        options.append("--device-int128")  # as nvcc does
    if any(map(_OF_CPP20.search, code)) and sum("-std=" in option for option in options) == 1:
        options.append("--std=c++20")  # compilers of the host take it in older C++ too
    if GIVEN_BY_NVCC in made:
        options.append(f"--pre-include={GIVEN_BY_NVCC}")
    first = {match["path"] for option in options if (match := _PRE_INCLUDE.match(option))}
    names |= first | set(_names_in(made.values()))
    foreign = names - carried.keys() - headers.keys()
    forwarded = uses_std and any("cuda/std" in HOST_HEADERS.get(name, "") for name in names)
    found = find_cuda_headers(cuda_major) if foreign or forwarded else None
    folders = (*folders_of(options), *(found.directories if found else ()))
    lacking = sorted(foreign - first, key=lambda name: (not package_of(name), name))  # what has a fix first
    absent = tuple(name for name in lacking if _is_absent(name, folders))
    headers |= {name: f'#pragma once\n#warning "{name} {ABSENT_HEADER}"\n' for name in absent}
    source = texts.pop("")
    return NvrtcProgram(source, {**headers, **texts}, tuple(options), found, left_out, absent)


def _as_operator(match: "re.Match[str]") -> str:
    """A macro's pragma as the operator that macros may hold, on as many lines."""
    told = match[2].replace('"', r"\"")
    return f'{match[1]}_Pragma("{told}")'


def _is_absent(name: str, folders: Iterable[Path]) -> bool:
    """Whether a header stands nowhere, and is none that all of a file needs of NVIDIA."""
    needed = is_for_device(name) or (package_of(name) and not name.startswith("curand"))
    return not (needed or any(is_file(one / name) for one in folders))


def _names_in(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from included_names(text).names
