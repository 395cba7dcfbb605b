# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run nvdisasm, NVIDIA's disassembler: the package's, else the one on the path or of an installed toolkit."""

import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from gpuprof.errors import BackendUnavailable
from gpuprof.machine_code.merged_cubins import kind_of, merged, parted
from gpuprof.records import grouped
from gpuprof.toolchain.assembling import installed, packaged
from gpuprof.toolchain.cache import kept_together

_PACKAGE = "nvidia-cuda-nvdisasm"
_FIX = f"Install it with: pip install {_PACKAGE}"
_TIMEOUT_S = 120.0
#: The flow of data takes long, and tells where jumps by a table go.
_WITHOUT_FLOW = "--no-dataflow"
_BY_TABLE = re.compile(r"^\s+/\*\w+\*/.*\bBRXU?\b", re.MULTILINE)


@cache
def find_nvdisasm() -> Path:
    """Return where nvdisasm is.

    Raises:
        BackendUnavailable: It is nowhere.
    """
    found = [*packaged("nvdisasm", _PACKAGE), *installed("nvdisasm")]
    if not found:
        what = "Instructions are not counted: the disassembler nvdisasm is missing."
        raise BackendUnavailable(what, fix=_FIX)
    return found[0]


def listings_of(cubins: Sequence[bytes]) -> dict[bytes, str]:
    """What `disassemble` returns of cubins: from the cache, or where the first is not there of all together.

    Others that are not in the cache are left out where the first is.

    Raises:
        BackendUnavailable: nvdisasm is missing, or cannot read one of the files.
    """
    tool = [str(path := find_nvdisasm()), path.stat().st_size, path.stat().st_mtime_ns, _BY_TABLE.pattern]
    by_key = {hashlib.sha256(repr(tool).encode() + cubin).hexdigest(): cubin for cubin in cubins}

    def make(keys: Sequence[str]) -> list[str]:
        return disassemble_together([by_key[key] for key in keys])

    found = kept_together(str, [*by_key], make)
    return {by_key[key]: listing for key, listing in found.items()}


def disassemble_together(cubins: Sequence[bytes]) -> list[str]:
    """Return what `disassemble` returns of each cubin, for little more than the time of one.

    Raises:
        BackendUnavailable: nvdisasm is missing, or cannot read one of the files.
    """
    found = [""] * len(cubins)
    for numbers in grouped(range(len(cubins)), lambda number: kind_of(cubins[number])).values():
        for number, listing in zip(numbers, _of_one_kind([cubins[n] for n in numbers]), strict=True):
            found[number] = listing
    return found


def _of_one_kind(cubins: Sequence[bytes]) -> list[str]:
    if len(cubins) > 1:
        # What cannot be merged, or not be read then, is told of the file that is to blame.
        with suppress(ValueError, BackendUnavailable):
            listings = parted(_printed(merged(cubins), True, _WITHOUT_FLOW), len(cubins))
            return [_with_tables(*pair, lines=True) for pair in zip(listings, cubins, strict=True)]
    return [disassemble(cubin) for cubin in cubins]


def disassemble(cubin: bytes, *, lines: bool = True) -> str:
    """Return a cubin's machine code as text, with the line of the PTX that each instruction came from.

    Without `lines` it is for people to read.

    Raises:
        BackendUnavailable: nvdisasm is missing, or cannot read the file.
    """
    return _with_tables(_printed(cubin, lines, _WITHOUT_FLOW), cubin, lines=lines)


def _with_tables(listing: str, cubin: bytes, *, lines: bool) -> str:
    """A listing, printed again where it has jumps by a table."""
    return _printed(cubin, lines) if _BY_TABLE.search(listing) else listing


def _printed(cubin: bytes, lines: bool, *options: str) -> str:
    nvdisasm = find_nvdisasm()
    try:
        # A file without a folder: it goes with the last process that has it open, however that ends.
        with os.fdopen(os.memfd_create("kernel.cubin"), "wb") as file:
            file.write(cubin)
            file.flush()
            shown = ["--print-code", *(["--print-line-info-ptx"] if lines else [])]
            done = subprocess.run(
                [nvdisasm, *shown, *options, f"/proc/self/fd/{file.fileno()}"],
                pass_fds=[file.fileno()],
                capture_output=True,
                timeout=_TIMEOUT_S,
                text=True,
                errors="replace",
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendUnavailable(f"{nvdisasm} cannot be run: {error}.", fix=_FIX) from error
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[0]
        raise BackendUnavailable(f"nvdisasm cannot read the machine code: {words}.", fix=_FIX)
    return done.stdout
