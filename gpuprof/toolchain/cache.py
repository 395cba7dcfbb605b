# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels and rates of devices, kept on disk by everything that decides them."""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from gpuprof.private_folder import PrivateFolder
from gpuprof.schema import from_json, to_json
from gpuprof.toolchain.nvrtc import CompiledKernel, compile_entries, nvrtc_version
from gpuprof.toolchain.nvrtc_program import UnknownInclude, included_files, make_program

T = TypeVar("T")

#: Entries kept, with locks; the least recently used go first. More than the cases of any one run, which would
#: otherwise push out its own beginning each time.
_MAX_ENTRIES = 5000
#: Entries that a process writes from one look at how many there are to the next.
_WRITES_PER_LOOK = 64
#: How long to wait for somebody else's compilation.
_PATIENCE_S = 60.0
#: The folder's files that a cache writes: others may be the user's.
_OWN_NAMES = re.compile(r"[0-9a-f]{64}\.(?:json|lock)|\.writing-.*")


def cache_directory() -> Path | None:
    """`GPUPROF_CACHE_DIR`, else `gpuprof` under the user's cache directory; None without a home.

    The XDG specification has a relative `XDG_CACHE_HOME` ignored.
    """
    chosen = os.environ.get("GPUPROF_CACHE_DIR")
    if chosen:
        return Path(chosen)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (shared if shared.is_absolute() else Path.home() / ".cache") / "gpuprof"
    except RuntimeError:
        return None


def compile_entries_cached(
    source: str,
    file_name: str,
    entries: Sequence[str],
    options: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> tuple[CompiledKernel, ...]:
    """Compile a source, or return what an earlier compilation of the same text and options gave.

    A cache that cannot be read or written, or that others may write to, costs time, never a failure.
    """
    version = nvrtc_version()
    program = make_program(source, headers or {}, options, version[0])
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
    return kept(kernels_named(entries), identity, lambda: compile_entries(program, file_name, entries))


def kernels_named(entries: Sequence[str]) -> Any:
    """The type of as many kernels."""
    return tuple[(CompiledKernel,) * len(entries)]  # type: ignore[misc]


def kept(kind: type[T], identity: Sequence[Any], make: Callable[[], T]) -> T:
    """What was made before, or is made now, of what `identity` says in full."""
    key = _digest(identity)
    return kept_together(kind, [key], lambda _: [make()])[key]


def kept_together(
    kind: type[T], keys: Sequence[str], make: Callable[[Sequence[str]], Sequence[T]]
) -> dict[str, T]:
    """What was made before by its key; where the first is missing, all that is gets made together."""
    folder = open_cache()
    if folder is None:
        return dict(zip(keys, make(keys), strict=True))
    found: dict[str, T] = {}

    def missing(folder: PrivateFolder) -> list[str]:
        for key in keys:
            if key not in found and (made := _read(kind, folder, f"{key}.json")) is not None:
                folder.touch(f"{key}.json")
                found[key] = made
        return [key for key in keys if key not in found]

    with folder:
        if keys[0] in (lacking := missing(folder)):
            # Another worker, or another run, may be making some: it takes the same seconds once, not twice.
            deadline = time.monotonic() + _PATIENCE_S
            with ExitStack() as locks:
                for key in sorted(lacking):
                    locks.enter_context(folder.locked(f"{key}.lock", deadline - time.monotonic()))
                if keys[0] in (lacking := missing(folder)):
                    for key, made in zip(lacking, make(lacking), strict=True):
                        _write(folder, f"{key}.json", made)
                        found[key] = made
        return found


def open_cache() -> PrivateFolder | None:
    """The cache's folder; None where there is none that is this user's alone."""
    directory = cache_directory()
    try:
        return None if directory is None else PrivateFolder(directory)
    except OSError:
        return None


def _read(kind: type[T], folder: PrivateFolder, name: str) -> T | None:
    """An entry, or None where it is missing, damaged in any way, or somebody else's."""
    try:
        document = json.loads(folder.read(name))
        return from_json(kind, document["made"]) if document["sha256"] == _digest(document["made"]) else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _write(folder: PrivateFolder, name: str, made: Any) -> None:
    plain = to_json(made)
    try:
        folder.write(name, json.dumps({"sha256": _digest(plain), "made": plain}).encode())
        if next(_writes) % _WRITES_PER_LOOK == 0:
            _drop_old(folder)
    except OSError:
        return


#: Counts what this process has written.
_writes = count()


def _drop_old(folder: PrivateFolder) -> None:
    found = {name: age for name, age in folder.ages().items() if _OWN_NAMES.fullmatch(name)}
    for stale in sorted(found, key=lambda name: found[name])[:-_MAX_ENTRIES]:
        folder.remove(stale)
