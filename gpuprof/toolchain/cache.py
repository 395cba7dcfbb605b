# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk, keyed by everything that decides the machine code."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

from gpuprof.files import replace_text
from gpuprof.schema import from_json, to_json
from gpuprof.toolchain.includes import UnknownInclude, included_files
from gpuprof.toolchain.nvrtc import CompiledKernel, compile_entries, nvrtc_version
from gpuprof.toolchain.nvrtc_program import make_program

#: Entries kept; the least recently used go first. More than the cases of any one run, which would otherwise
#: push out its own beginning each time.
_MAX_ENTRIES = 5000
#: Entries that a process writes from one look at how many there are to the next.
_WRITES_PER_LOOK = 64
#: How long to wait for somebody else's compilation, and how often to look.
_PATIENCE_S = 60.0
_POLL_S = 0.02


def cache_directory() -> Path | None:
    """`GPUPROF_CACHE_DIR`, else `gpuprof` under the user's cache directory; None without a home."""
    chosen = os.environ.get("GPUPROF_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuprof"
    except RuntimeError:
        return None


def compile_cached(
    source: str,
    file_name: str,
    entry: str,
    options: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> CompiledKernel:
    """Compile a source for one of its kernels; see `compile_entries_cached`."""
    return compile_entries_cached(source, file_name, (entry,), options, headers)[0]


def compile_entries_cached(
    source: str,
    file_name: str,
    entries: Sequence[str],
    options: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> tuple[CompiledKernel, ...]:
    """Compile a source, or return what an earlier compilation of the same text and options gave.

    A cache that cannot be read or written costs time, never a failure.

    Args:
        source: CUDA C++ text.
        file_name: Name shown in diagnostics and line information.
        entries: The kernels that are wanted, as `compile_entries` takes them.
        options: As `compiler_options` makes them.
        headers: Files of the user's own that the source includes, by name.

    Raises:
        CompileError: NVRTC rejected the source.
        BackendUnavailable: NVRTC is not installed.
    """
    version = nvrtc_version()
    program = make_program(source, headers or {}, options, version[0])
    directory = cache_directory()
    if directory is None:
        return compile_entries(program, file_name, entries)
    try:
        included = included_files((program.source, *program.headers.values()), program.options)
    except UnknownInclude:
        return compile_entries(program, file_name, entries)
    files = [[str(path), hashlib.sha256(content).hexdigest()] for path, content in sorted(included.items())]
    cuda = program.cuda_headers
    texts = [program.source, *map(list, program.headers.items())]
    # CUDA's own headers do not change under their version: they are too many to read each time.
    foreign = [*cuda.options, *cuda.versions] if cuda else []
    identity = [version, file_name, list(entries), list(program.options), texts, files, foreign]
    path = directory / f"{_digest(identity)}.json"
    made = _read(path)
    if made is not None:
        with suppress(OSError):
            os.utime(path)
    else:
        with _alone(path):
            made = _read(path)
            if made is None:
                made = compile_entries(program, file_name, entries)
                _write(path, made)
    return made


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait while another worker, or another run, makes an entry: it takes the same seconds once, not twice.

    Nobody is waited for in a cache that cannot be written, nor for longer than a compilation takes.
    """
    with ExitStack() as held:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.with_suffix(".lock")
            file = held.enter_context(lock.open("w"))
            held.callback(_removed, lock)
            deadline = time.monotonic() + _PATIENCE_S
            while not _locked(file) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        yield


def _removed(lock: Path) -> None:
    with suppress(OSError):
        lock.unlink(missing_ok=True)


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: Path) -> tuple[CompiledKernel, ...] | None:
    """An entry, or None where it is missing or damaged in any way."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["sha256"] != _digest(document["kernels"]):
            return None
        return tuple(from_json(CompiledKernel, kernel) for kernel in document["kernels"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _write(path: Path, compiled: Sequence[CompiledKernel]) -> None:
    kernels = [to_json(kernel) for kernel in compiled]
    try:
        replace_text(path, json.dumps({"sha256": _digest(kernels), "kernels": kernels}))
        if next(_writes) % _WRITES_PER_LOOK == 0:
            _drop_old(path.parent)
    except OSError:
        return


#: Counts what this process has written.
_writes = count()


def _drop_old(directory: Path) -> None:
    # Of the directory's files only those that a cache writes: the rest may be the user's.
    names = ("[0-9a-f]" * 64 + ".json", ".writing-*")
    found = [file for name in names for file in directory.glob(name)]
    if len(found) > _MAX_ENTRIES:
        found.sort(key=lambda entry: entry.stat().st_mtime)
        for stale in found[:-_MAX_ENTRIES]:
            stale.unlink(missing_ok=True)
