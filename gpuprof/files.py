# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Files of the user's: read to their end, written whole or not at all, and nothing lost."""

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from gpuprof.errors import PATH_ERRORS, GpuprofError, InputError, OutputError, reason

#: What a run calls its files in the folder that it writes.
RESULTS_NAME = "results.json"
REPORT_NAME = "report.html"
#: The most that is read of what people write (kernels, declarations, settings), and of results and pages:
#: a hundred times what the largest known ones hold.
MOST_TEXT_BYTES = 4 << 20
MOST_RESULTS_BYTES = 512 << 20


def replace_text(path: Path, text: str) -> None:
    """Write a UTF-8 file so that a crash or a full disk leaves either the old file or the new one.

    A symbolic link stays one: what it points to is replaced. A new file gets the permissions that the umask
    leaves, a replaced one keeps its own. A path on the command line need not be text: its stray bytes are
    escaped, as JSON escapes them.
    """
    if path.exists() and not path.is_file():  # a device such as /dev/null, which must stay one
        # A pipe that nobody reads is refused, not waited for.
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(encoded(text))
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = open_beside(target)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encoded(text))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class NotOwn(PermissionError):
    """A file belongs neither to this user nor to the administrator."""


def read_input(
    path: Path, most_bytes: int = MOST_TEXT_BYTES, *, encoding: str = "utf-8-sig", own: bool = False
) -> str:
    """The text of a file that a person wrote, its lines ended by line feeds."""
    return _with_line_feeds(read_content(path, most_bytes, own=own).decode(encoding))


def read_code(path: Path) -> str:
    """The text of a file for a compiler, whose comments may be in any encoding that has ASCII's bytes."""
    content = read_content(path)
    return _with_line_feeds(content.decode("utf-8-sig", "strict" if b"\0" in content else "replace"))


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_content(path: Path, most_bytes: int = MOST_TEXT_BYTES, *, own: bool = False) -> bytes:
    """All of a file, as long as it is when it is opened: the one way in for what may be a stranger's.

    Pipes and devices are refused: their content need have no end, and a pipe may never begin.

    Raises:
        NotOwn: It must be this user's `own`, and is another's.
        OSError: It cannot be read, is no regular file, or holds more than `most_bytes`.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is a device, a pipe or a folder, not a file", os.fspath(path))
        if own and state.st_uid not in (os.geteuid(), 0):
            raise NotOwn(errno.EPERM, "it belongs to another user", os.fspath(path))
        # A run may be appending to it. Files that the system makes up have no size.
        too_large = state.st_size > most_bytes
        content = b"" if too_large else file.read(state.st_size or most_bytes + 1)
    if too_large or len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it holds more than {most_bytes >> 20} MiB", os.fspath(path))
    return content


def encoded(text: str) -> bytes:
    """A file's text as bytes; a path's stray bytes, which no encoding holds, are escaped."""
    return text.encode("utf-8", errors="backslashreplace")


def open_beside(target: Path) -> tuple[int, Path]:
    """A new file in a target's directory, to take its place when it is whole."""
    while True:
        path = target.with_name(f".writing-{os.urandom(8).hex()}")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        with suppress(OSError):  # a new file, or one whose permissions cannot be given to another
            os.fchmod(descriptor, os.stat(target).st_mode & 0o777)
        return descriptor, path


def check_writable(path: Path, force: bool, fix: str = "Name another path.") -> None:
    """Refuse an output path before any work is done, where it cannot be written with a fix; none is created.

    Raises:
        InputError: It exists and `force` is False, or it cannot be written; OutputError for want of room.
    """
    try:
        if "\0" in str(path):
            raise ValueError("embedded null character")
        if path.parts[:1] == ("-",):
            raise InputError(f"{path} is not a file: - stands for standard output.", fix="Name another path.")
        if path.is_dir():
            raise InputError(f"{path} is a directory.", fix="Name a file in it.")
        if path.exists() and not (path.is_file() or path.is_char_device()):
            raise InputError(
                f"{path} is a pipe or a device, not a file.",
                fix="Name a file; - is standard output.",
            )
        if path.exists() and not force:
            raise InputError(
                f"{path} exists already.", fix="Name another path, or add --force to replace it."
            )
        # A link that leads nowhere, or to itself, is no directory that could be made.
        nearest = next(parent for parent in path.parents if os.path.lexists(parent))
        with tempfile.TemporaryFile(dir=nearest):
            return
    except PATH_ERRORS as error:
        raise unwritable(path, error, fix) from error


def write_file(path: Path, text: str, fix: str = "Name another path.") -> None:
    """Write a file whole, or say why that cannot be, with a fix."""
    try:
        replace_text(path, text)
    except PATH_ERRORS as error:
        raise unwritable(path, error, fix) from error


def unwritable(path: Path, error: Exception, fix: str = "Name another path.") -> GpuprofError:
    """What to say where a file cannot be written: a fix, or that there is no room."""
    what = f"Cannot write {path}: {reason(error)}."
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(what, fix=f"Make room, or {fix[0].lower()}{fix[1:]}")
    return InputError(what, fix=fix)


def same_file(first: Path, second: Path) -> bool:
    """Whether two paths name one file, which need not exist; names that lead nowhere are compared as text."""
    try:
        return os.path.realpath(first) == os.path.realpath(second)
    except PATH_ERRORS:  # the working directory is gone, say
        return os.path.normpath(first) == os.path.normpath(second)
