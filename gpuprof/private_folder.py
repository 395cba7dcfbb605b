# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A folder that this user alone writes to, for what is believed when it is read again."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

#: More than a kept file ever has.
_MOST_BYTES = 256 << 20
_POLL_S = 0.02
_WRITING = ".writing-"


class PrivateFolder:
    """A folder of this user's, made where there is none: nobody else can plant files in it.

    Every file is reached from the folder as it was opened, by its name alone, and no link is followed.

    Raises:
        OSError: It cannot be opened, belongs to another user, or others may write to it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        self._folder = _opened(path)
        state = os.fstat(self._folder)
        if not _is_own(state) or _others_write(state):
            self.close()
            why = "others may write to it" if _is_own(state) else "it belongs to another user"
            raise PermissionError(errno.EPERM, why, os.fspath(path))

    def __enter__(self) -> "PrivateFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._folder)

    def read(self, name: str) -> bytes:
        """A file of this user's.

        Raises:
            OSError: There is none that is and that nobody else may write to, or it is a link or too large.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=self._folder), "rb") as file:
            state = os.fstat(file.fileno())
            own = stat.S_ISREG(state.st_mode) and _is_own(state) and not _others_write(state)
            if not own or state.st_size > _MOST_BYTES:
                raise PermissionError(errno.EPERM, "it is not a file of this user's alone", name)
            return file.read(_MOST_BYTES)

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all."""
        temporary = f"{_WRITING}{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=self._folder), "wb") as file:
            try:
                file.write(content)
                file.flush()
                os.replace(temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            except BaseException:
                self.remove(temporary)
                raise

    @contextmanager
    def locked(self, name: str, patience_s: float) -> Iterator[None]:
        """Wait while another process holds a name, no longer than that, and not where it cannot be held."""
        with ExitStack() as held:
            with suppress(OSError):
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                lock = os.open(name, flags, 0o600, dir_fd=self._folder)
                held.callback(os.close, lock)
                held.callback(self.remove, name)
                deadline = time.monotonic() + patience_s
                while not _taken(lock) and time.monotonic() < deadline:
                    time.sleep(_POLL_S)
            yield

    def touch(self, name: str) -> None:
        """Say that a file was used now."""
        with suppress(OSError):
            os.utime(name, dir_fd=self._folder, follow_symlinks=False)

    def ages(self) -> dict[str, float]:
        """When each file was written or touched, by its name: also those whose writing was cut short."""
        with os.scandir(self._folder) as entries:
            return {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}

    def remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


def _opened(path: Path) -> int:
    """A folder, open; a person may keep it elsewhere: a link of one's own is followed, another's is not.

    What is followed is the link that was looked at, whatever stands in its place by then.
    """
    itself = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        state = os.fstat(itself)
        own_link = stat.S_ISLNK(state.st_mode) and _is_own(state)
        place = path.parent / os.readlink("", dir_fd=itself) if own_link else path
    finally:
        os.close(itself)
    follow = 0 if own_link else os.O_NOFOLLOW
    return os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | follow)


def _is_own(state: os.stat_result) -> bool:
    return state.st_uid in (os.geteuid(), 0)


def _others_write(state: os.stat_result) -> bool:
    return bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
