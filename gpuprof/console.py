# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Standard output and error: every line that a command says, and streams that no reader can break.

A command's files matter more than its lines. A reader that leaves early, as `| head` does, is none of its
business; a full disk behind standard output is told once, at the end; a broken standard error cannot be
told of anything.
"""

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

from gpuprof.errors import ExitCode, GpuprofError
from gpuprof.text import cut, one_line, visible

#: Longest message; of a longer one, its middle is somebody's file and no sentence.
_LONGEST = 4000


def say(line: str) -> None:
    """Print one line on standard output, with nothing in it that steers the terminal."""
    print(one_line(line), file=sys.stdout, flush=True)  # noqa: T201 - the one place that prints


def say_lines(text: str) -> None:
    """The same for several lines."""
    print(visible(text), file=sys.stdout, flush=True)  # noqa: T201


def hand_over(text: str) -> None:
    """Write a file's text on standard output, byte for byte as the file would hold it."""
    sys.stdout.flush()
    raw = _raw_output()
    if raw is not None and raw.absent:  # lines may be lost on it, not a file that was asked for
        raw.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.buffer.write(text.encode("utf-8", errors="backslashreplace"))
    sys.stdout.buffer.flush()


def tell(line: str) -> None:
    """Print one line on standard error, with nothing in it that steers the terminal."""
    print(one_line(_middle_cut(line)), file=sys.stderr)  # noqa: T201


def tell_lines(text: str) -> None:
    """The same for several lines."""
    print(visible(_middle_cut(text)), file=sys.stderr)  # noqa: T201


def tell_error(error: GpuprofError) -> ExitCode:
    """Print what went wrong, and how to mend it, on standard error; the status that the command ends with."""
    tell(f"gpuprof: {error.what}")
    if error.fix:
        tell_lines(f"  {error.fix}")
    return error.exit_code


def _middle_cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{cut(text[:-half], half)} … {text[-half:]}"


class _Descriptor(io.FileIO):
    """A standard stream that takes every byte.

    `absent` where the shell had closed it: what is written goes nowhere. `failure` says why it lost
    something.
    """

    absent = False
    failure: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            while (written := super().write(data)) is None:  # a pipe that does not block, and is full
                select.select([], [self], [])
        except OSError as error:
            self.failure = self.failure or error
            return len(data)
        return written


def open_streams() -> None:
    """Put streams that cannot fail in the place of Python's."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # closed by the shell, as with `>&-`: the next file opened would take its place
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _forgiving(sys.stdout, 1)
    sys.stderr = _forgiving(sys.stderr, 2)


def close_streams() -> OSError | None:
    """Write out what is buffered.

    The result says why standard output lost something; a reader that has gone is no loss.
    """
    sys.stdout.flush()
    raw = _raw_output()
    failure = raw.failure if raw is not None else None
    return None if isinstance(failure, BrokenPipeError) else failure


def _raw_output() -> _Descriptor | None:
    """What lies behind standard output, where this module put it there."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Descriptor) else None


def _forgiving(stream: TextIO | None, descriptor: int) -> TextIO:
    """A stream that neither its reader, nor a full disk, nor a character that its encoding lacks breaks."""
    raw = _Descriptor(descriptor, "w", closefd=False)
    raw.absent = stream is None
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",
        line_buffering=descriptor == 2 or (stream is not None and stream.isatty()),
    )
