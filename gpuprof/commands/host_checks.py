# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What gpuprof may use of the machine itself: cores, memory and folders."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpuprof.commands.doctor_check import DoctorCheck
from gpuprof.machine import available_memory_bytes, usable_cores
from gpuprof.private_folder import PrivateFolder
from gpuprof.toolchain.cache import cache_directory

_GIB, _MIB = 2**30, 2**20
#: The executor holds a problem's arrays, their references, and what a batch of blocks is doing.
_LITTLE_MEMORY = 2 * _GIB
_LITTLE_ROOM = 100 * _MIB


def host_checks() -> Iterator[DoctorCheck]:
    """Cores, memory, and the folders that are written to."""
    cores, all_cores = usable_cores(), os.cpu_count() or 1
    text = f"{cores} of {all_cores}" if cores < all_cores else f"{cores}"
    limited = ": limited by affinity or a control group" if cores < all_cores else ""
    yield DoctorCheck("Cores", "ok", text + limited)
    memory = available_memory_bytes()
    text = f"{memory / _GIB:.1f} GiB available"
    if memory < _LITTLE_MEMORY:
        fix = "Sizes of some thousands need 2 GiB: free some, or raise the container's limit."
        yield DoctorCheck("Memory", "disturbs", text, fix)
    else:
        yield DoctorCheck("Memory", "ok", text)
    yield _folder("Temporary files", Path(tempfile.gettempdir()), "TMPDIR")
    cache = cache_directory()
    if cache is None:
        fix = "Set GPUPROF_CACHE_DIR, or kernels are compiled anew each time."
        yield DoctorCheck("Compile cache", "absent", "there is no home folder", fix)
    else:
        yield _cache(cache)


def _cache(folder: Path) -> DoctorCheck:
    """Whether compiled kernels can be kept, where nobody else can write."""
    if folder.is_dir():
        try:
            PrivateFolder(folder).close()
        except OSError as error:
            fix = f"Until then kernels are compiled anew each time. Make it yours alone: chmod go-w {folder}"
            return DoctorCheck("Compile cache", "disturbs", f"{folder}: {error.strerror or error}", fix)
    return _folder("Compile cache", folder, "GPUPROF_CACHE_DIR")


def _folder(name: str, folder: Path, variable: str) -> DoctorCheck:
    """Whether a file can be written to a folder, or to the nearest one above it that exists."""
    present = next(path for path in (folder, *folder.parents) if path.exists())
    fix = f"Name another folder in {variable}."
    try:
        with tempfile.NamedTemporaryFile(dir=present) as trial:
            trial.write(b"\0")
        room = shutil.disk_usage(present).free
    except OSError as error:
        return DoctorCheck(name, "broken", f"{folder} cannot be written: {error.strerror or error}", fix)
    if room < _LITTLE_ROOM:
        return DoctorCheck(name, "disturbs", f"{folder} has {room / _MIB:.0f} MiB left", fix)
    return DoctorCheck(name, "ok", f"{folder}, {room / _GIB:.1f} GiB free")
