# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A results file while its run goes on: claimed by one run, a case appended at a time, whole at any moment.

A case costs the writing of that case only, however many stand before it. The file is valid JSON after every
append; should the process die within one, what stood before is still there, and `reading.read_run` finds it.
"""

import dataclasses
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpuprof.errors import InputError, reason
from gpuprof.files import encoded, open_beside, replace_text
from gpuprof.results import CASES_END, NO_CASES_END, Measurement, Run, dumps, dumps_case


class ResultsFile:
    """The results of one run on disk; nobody else writes there until it is closed.

    Args:
        path: Where they stand. A symbolic link is followed; its directory is made.
        run: The run before its first case.
        replace: Whether an existing file may be replaced.

    Raises:
        InputError: The file exists and may not be replaced, another run is writing it, or it cannot be
            written.
    """

    def __init__(self, path: Path, run: Run, *, replace: bool) -> None:
        self.path = path
        self._target = Path(os.path.realpath(path))
        self._descriptor: int | None = None
        self._content = encoded(dumps(dataclasses.replace(run, cases=())))
        #: Where the list of cases ends, and the text after it begins.
        self._end = len(self._content) - len(NO_CASES_END)
        self._tail = NO_CASES_END
        if path.exists() and not path.is_file():  # a device or a pipe takes the finished run only
            return
        try:
            self._claim(replace)
        except OSError as error:
            raise self._refused(error) from error

    def append(self, measurement: Measurement) -> None:
        """Add a case.

        Raises:
            InputError: It cannot be written; the file holds the cases before it.
        """
        if self._descriptor is None:
            return
        comma = "," if self._tail == CASES_END else ""
        added = encoded(f"{comma}\n{dumps_case(measurement)}")
        try:
            _write_all(self._descriptor, added + CASES_END, self._end)
        except OSError as error:
            with suppress(OSError):  # what was there before, as if nothing had been tried
                os.pwrite(self._descriptor, self._tail, self._end)
                os.ftruncate(self._descriptor, self._end + len(self._tail))
            raise self._refused(error) from error
        self._end, self._tail = self._end + len(added), CASES_END

    def finish(self, run: Run) -> None:
        """Write the whole run in the place of what was appended.

        Raises:
            InputError: It cannot be written; the file holds what was appended.
        """
        try:
            if self._descriptor is None:
                replace_text(self.path, dumps(run))
            else:
                self._replace(encoded(dumps(run)))
        except OSError as error:
            raise self._refused(error) from error

    def close(self) -> None:
        """Let others write the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _claim(self, may_replace: bool) -> None:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        if may_replace and self._target.exists():
            with _locked(self._target):
                self._replace(self._content)
            return
        descriptor, temporary = open_beside(self._target)
        try:
            _lock(descriptor)
            _write_all(descriptor, self._content, 0)
            _place(temporary, self._target)
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            temporary.unlink(missing_ok=True)
        self._descriptor = descriptor

    def _replace(self, content: bytes) -> None:
        """Put a new file in the place of the old one, locked before anybody can see it."""
        descriptor, temporary = open_beside(self._target)
        try:
            _lock(descriptor)
            _write_all(descriptor, content, 0)
            os.replace(temporary, self._target)
        except BaseException:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        self.close()
        self._descriptor = descriptor

    def _refused(self, error: OSError) -> InputError:
        fix = "Name another path with --json or -o."
        if isinstance(error, FileExistsError):
            return InputError(
                f"{self.path} exists already.", fix="Name another path, or add --force to replace it."
            )
        if isinstance(error, BlockingIOError):
            return InputError(f"Another run of gpuprof is writing {self.path}.", fix=fix)
        return InputError(f"Cannot write {self.path}: {reason(error)}.", fix=fix)


def write_run(run: Run, path: Path) -> None:
    """Write a results file so that a crash leaves either the old file or the new one.

    Raises:
        InputError: The path cannot be written.
    """
    try:
        replace_text(path, dumps(run))
    except OSError as error:
        raise InputError(
            f"Cannot write {path}: {reason(error)}.", fix="Name another path with --json or -o."
        ) from error


def _place(temporary: Path, target: Path) -> None:
    """Give a file its name; unlike a rename, it never replaces what another run has put there meanwhile.

    Raises:
        FileExistsError: The name is taken.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        os.replace(temporary, target)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock.

    Raises:
        BlockingIOError: A run holds it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Take a file's lock, where its file system has locks.

    Raises:
        BlockingIOError: Somebody else holds it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _write_all(descriptor: int, content: bytes, offset: int) -> None:
    """Write at an offset, to the last byte or not at all as far as the caller is told.

    Raises:
        OSError: For example a full disk, which a short write announces.
    """
    while content:
        written = os.pwrite(descriptor, content, offset)
        content, offset = content[written:], offset + written
