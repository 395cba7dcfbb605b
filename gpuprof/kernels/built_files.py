# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel files that hold PTX or machine code: their header, what is run, and the text that lines are of."""

import re
from pathlib import Path, PurePosixPath

from msgspec import Struct

from gpuprof.cubin_file import function_of, kernels_in
from gpuprof.errors import PATH_ERRORS, BackendUnavailable, HeaderError, reason
from gpuprof.files import read_content, read_input
from gpuprof.kernels.carried import file_below
from gpuprof.kernels.kernel import Built
from gpuprof.ptx_directives import ptx_entries

#: The most that is read of what a compiler wrote: modules of Warp are 4.5 MiB of PTX, most of it constants.
_MOST_BYTES = 16 << 20
_LOC = re.compile(r"^[ \t]*\.loc\b[^\n]*", re.MULTILINE)
_FIRST_LOC = re.compile(r"^[ \t]*\.loc[ \t]+(\d+)", re.MULTILINE)


class BuiltFile(Struct, frozen=True):
    """What one file of PTX or machine code holds."""

    built: Built
    source: str
    header: str
    header_path: Path
    entries: tuple[str, ...]

    def default_entry(self, stem: str) -> str:
        """The function of a header that names none: the one called like the file, else the only one."""
        named = [entry for entry in self.entries if function_of(entry) == stem]
        return stem if named or len(self.entries) != 1 else self.entries[0]


def read_built(path: Path) -> BuiltFile:
    """Read a file of PTX or machine code; the header of either may stand beside it, in a `.toml` file.

    Raises:
        HeaderError: It cannot be read, or is none.
    """
    beside = path.with_suffix(".toml")
    try:
        header = f"/*gpuprof {read_input(beside)}*/" if beside.is_file() else ""
        if path.suffix == ".ptx":
            return _of_ptx(read_input(path, _MOST_BYTES), path, header, beside, path.parent)
        cubin = read_content(path, _MOST_BYTES)
        entries = tuple(kernels_in(cubin))
    except PATH_ERRORS as error:
        what = error.args[0] if type(error) is ValueError else reason(error)
        raise HeaderError(f"Cannot read the kernel file {path}: {what}.") from error
    return BuiltFile(Built(cubin=cubin), _listing(cubin), header, beside, entries)


def built_of_ptx(ptx: str, path: Path) -> BuiltFile:
    """What a PTX text holds that is no file, and whose lines are its own."""
    return _of_ptx(ptx, path, "", path, None)


def _of_ptx(ptx: str, path: Path, header: str, beside: Path, folder: Path | None) -> BuiltFile:
    """PTX, whose lines are those of the file that its `.loc` names, where that is beside it; else its own."""
    ptx = ptx.rstrip("\0")  # with which NVRTC ends it
    source = _named_source(ptx, folder) if folder is not None else None
    built = Built(ptx=_LOC.sub("", ptx) if source is None else ptx)
    place = (header, beside) if header else (ptx, path)
    return BuiltFile(built, ptx if source is None else source, *place, ptx_entries(ptx))


def _named_source(ptx: str, folder: Path) -> str | None:
    first = _FIRST_LOC.search(ptx, max(0, ptx.find(".entry")))
    file = rf'^[ \t]*\.file[ \t]+{first[1]}[ \t]+"([^"\n]+)"' if first else "(?!)"
    named = re.search(file, ptx, re.MULTILINE)
    found = file_below(folder, PurePosixPath(named[1]).name) if named else None
    try:
        return None if found is None else read_input(found)
    except PATH_ERRORS:
        return None


def _listing(cubin: bytes) -> str:
    """Machine code as text, or why there is none."""
    from gpuprof.machine_code.disassembler import disassemble

    try:
        return disassemble(cubin, lines=False)
    except BackendUnavailable as error:
        return f"// Machine code, not disassembled. {error}\n"
