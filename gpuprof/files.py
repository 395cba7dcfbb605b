# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Writing files: whole or not at all, and only where nothing of the user's is lost."""

import os
import tempfile
from pathlib import Path

from gpuprof.errors import InputError


def replace_text(path: Path, text: str) -> None:
    """Write a UTF-8 file so that a crash or a full disk leaves either the old file or the new one.

    A path on the command line need not be text: its stray bytes are escaped, as JSON escapes them.

    Raises:
        OSError: The path cannot be written.
    """
    if path.exists() and not path.is_file():  # a device such as /dev/null, which must stay one
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def check_writable(path: Path, force: bool) -> None:
    """Refuse an output path before any work is done; nothing is created.

    Args:
        path: A file to be written.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: It exists and `force` is False, or it cannot be written.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a directory.", fix="Name a file, or use -o for a directory.")
        if path.exists() and not force:
            raise InputError(
                f"{path} exists already.", fix="Name another path, or add --force to replace it."
            )
        nearest = next(parent for parent in path.parents if parent.exists())
        with tempfile.TemporaryFile(dir=nearest):
            return
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.", fix="Name another path.") from error


def check_distinct(first: Path, second: Path) -> None:
    """Refuse two names for one file.

    Raises:
        InputError: Writing one would destroy the other.
    """
    if os.path.realpath(first) == os.path.realpath(second):
        raise InputError(
            f"The results and the report cannot both be {second}.", fix="Give the report another name."
        )
