# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk, keyed by everything that decides the machine code."""

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpuprof.files import replace_text
from gpuprof.toolchain.nvrtc import CompiledKernel, compile_source, nvrtc_version

#: Entries kept; the least recently written go first.
_MAX_ENTRIES = 1000


def cache_directory() -> Path | None:
    """`GPUPROF_CACHE_DIR`, else `gpuprof` under the user's cache directory; None without a home."""
    chosen = os.environ.get("GPUPROF_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuprof"
    except RuntimeError:
        return None


def compile_cached(source: str, file_name: str, entry: str, options: Sequence[str]) -> CompiledKernel:
    """Compile a source, or return what an earlier compilation of the same text and options gave.

    A cache that cannot be read or written costs time, never a failure.

    Raises:
        CompileError: NVRTC rejected the source.
        BackendUnavailable: NVRTC is not installed.
    """
    directory = cache_directory()
    if directory is None:
        return compile_source(source, file_name, entry, options)
    identity = json.dumps([nvrtc_version(), file_name, entry, list(options), source])
    path = directory / f"{hashlib.sha256(identity.encode()).hexdigest()}.json"
    cached = _read(path)
    if cached is not None:
        return cached
    compiled = compile_source(source, file_name, entry, options)
    _write(path, compiled)
    return compiled


def _read(path: Path) -> CompiledKernel | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        document["cubin"] = base64.b64decode(document["cubin"])
        document["options"] = tuple(document["options"])
        return CompiledKernel(**document)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _write(path: Path, compiled: CompiledKernel) -> None:
    document = {**asdict(compiled), "cubin": base64.b64encode(compiled.cubin).decode()}
    try:
        replace_text(path, json.dumps(document))
        # Of the directory's files only those that a cache writes: the rest may be the user's.
        names = ("[0-9a-f]" * 64 + ".json", ".writing-*")
        files = (file for name in names for file in path.parent.glob(name))
        entries = sorted(files, key=lambda entry: entry.stat().st_mtime)
        for stale in entries[:-_MAX_ENTRIES]:
            stale.unlink(missing_ok=True)
    except OSError:
        return
