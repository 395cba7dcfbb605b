# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A results file while its run goes on: claimed by one run, a case appended at a time, whole at any moment.

A case costs the writing of that case only, however many stand before it. The file is valid JSON after every
append; should the process die within one, what stood before is still there, and `reading.read_run` finds it.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpuprof.errors import GpuprofError, InputError, OutputError, reason
from gpuprof.files import encoded, open_beside, replace_text, unwritable, write_file
from gpuprof.results import CASES_END, NO_CASES_END, Measurement, Run, dumps, dumps_case

_ELSEWHERE = "Name another path with -o."


class ResultsFile:
    """The results of one run on disk; nobody else writes there until it is closed.

    Where the folder is removed meanwhile, it comes back with every row; where the disk is full, the file
    holds what was there before.

    A symbolic link is followed, and the file's directory is made. The run is as before its first case, or as
    it was stopped.

    Raises:
        InputError: The file exists and may not be replaced, another run is writing it, or it cannot be
            written.
    """

    def __init__(self, path: Path, run: Run, *, replace: bool) -> None:
        self._set_up(path)
        self._begin(run)
        if path.exists() and not path.is_file():  # a device or a pipe takes the finished run only
            return
        try:
            self._claim(replace)
        except OSError as error:
            raise self._refused(error) from error

    @classmethod
    def resumed(cls, path: Path, read: Callable[[], Run]) -> "ResultsFile":
        """Go on with the file of a run that was stopped.

        `read` is called when nobody else can write the file any more, and gives the run as it goes on.

        Raises:
            InputError: Another run is writing it, it cannot be written, or `read` refuses it.
        """
        file = cls.__new__(cls)
        file._set_up(path)
        try:
            with _locked(file._target):
                file.continues = read()
                file._begin(file.continues)
                file._write(file._content, os.replace)
        except OSError as error:
            raise file._refused(error) from error
        return file

    def _set_up(self, path: Path) -> None:
        self.path = path
        #: The run that was in the file and goes on; None for a new one.
        self.continues: Run | None = None
        self._target = Path(os.path.realpath(path))
        self._descriptor: int | None = None

    def _begin(self, run: Run) -> None:
        self._content = encoded(dumps(run))
        #: Where the list of cases ends, and the text after it begins.
        self._tail = CASES_END if run.cases else NO_CASES_END
        self._end = len(self._content) - len(self._tail)

    def append(self, measurement: Measurement) -> None:
        """Add a case, or what is known better of one."""
        if self._descriptor is None:
            return
        comma = "," if self._tail == CASES_END else ""
        added = encoded(f"{comma}\n{dumps_case(measurement)}")
        try:
            if self._has_name():
                _write_all(self._descriptor, added + CASES_END, self._end)
            else:
                self._write_whole(os.pread(self._descriptor, self._end, 0) + added + CASES_END)
        except OSError as error:
            with suppress(OSError):  # what was there before, as if nothing had been tried
                os.pwrite(self._descriptor, self._tail, self._end)
                os.ftruncate(self._descriptor, self._end + len(self._tail))
            raise self._full(error) from error
        self._end, self._tail = self._end + len(added), CASES_END

    def compact(self, run: Run) -> None:
        """Write the run so far in the place of what was appended, each case once."""
        if self._descriptor is not None:
            self.finish(run)

    def finish(self, run: Run) -> None:
        """Write the whole run in the place of what was appended."""
        content = encoded(dumps(run))
        try:
            if self._descriptor is None:
                replace_text(self.path, dumps(run))
                return
            self._write_whole(content)
        except OSError as error:
            raise self._full(error) from error
        self._tail = CASES_END if run.cases else NO_CASES_END
        self._end = len(content) - len(self._tail)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _claim(self, may_replace: bool) -> None:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        if may_replace and self._target.exists():
            with _locked(self._target):
                self._write(self._content, os.replace)
            return
        self._write(self._content, _place)

    def _write(self, content: bytes, into_place: Callable[[Path, Path], None]) -> None:
        """Write a new file and give it its name, locked before anybody can see it."""
        descriptor, temporary = open_beside(self._target)
        try:
            _lock(descriptor)
            _write_all(descriptor, content, 0)
            into_place(temporary, self._target)
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            temporary.unlink(missing_ok=True)
        self.close()
        self._descriptor = descriptor

    def _has_name(self) -> bool:
        """Whether nobody has removed or replaced the file that this run writes."""
        return self._descriptor is not None and os.fstat(self._descriptor).st_nlink > 0

    def _write_whole(self, content: bytes) -> None:
        """Write everything anew, whatever became of the folder, and never over another run's file."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._write(content, os.replace if self._has_name() else _place)

    def _full(self, error: OSError) -> OutputError:
        return OutputError(
            f"Cannot write {self.path}: {reason(error)}.",
            fix=f"What was written before is in {self.path}: make room, and continue with --resume"
            f" {self.path.parent}.",
        )

    def _refused(self, error: OSError) -> GpuprofError:
        if isinstance(error, FileExistsError):
            return InputError(
                f"{self.path} exists already.", fix="Name another path, or add --force to replace it."
            )
        if isinstance(error, BlockingIOError):
            return InputError(f"Another run of gpuprof is writing {self.path}.", fix=_ELSEWHERE)
        return unwritable(self.path, error, _ELSEWHERE)


def is_being_written(path: Path) -> bool:
    """Whether a run is writing a results file at this moment."""
    try:
        with _locked(path):
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def write_run(run: Run, path: Path) -> None:
    """Write a results file so that a crash leaves either the old file or the new one."""
    write_file(path, dumps(run), _ELSEWHERE)


def _place(temporary: Path, target: Path) -> None:
    """Give a file its name; unlike a rename, it never replaces what another run has put there meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        os.replace(temporary, target)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe may have no end
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _write_all(descriptor: int, content: bytes, offset: int) -> None:
    """Write at an offset, to the last byte or not at all as far as the caller is told."""
    while content:
        written = os.pwrite(descriptor, content, offset)
        content, offset = content[written:], offset + written
