# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What ran when, in every process of a command, as a trace that Perfetto and chrome://tracing show.

`GPUPROF_TIMELINE=FILE gpuprof gemm` appends to the file: a JSON array of complete events, whose last bracket
the format lets one leave out. `ts` counts microseconds of this machine's monotonic clock, `tdur` those for
which the thread had a processor.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpuprof.errors import InputError, reason

_VARIABLE = "GPUPROF_TIMELINE"
_path = os.environ.get(_VARIABLE, "")


def begin() -> None:
    """Begin the file, if one is wanted."""
    if not _path:
        return
    try:
        with open(_path, "x", encoding="utf-8") as file:
            file.write("[\n")
    except OSError as error:
        raise InputError(
            f"{_VARIABLE}: cannot write {_path}: {reason(error)}.", fix="Name a new file, or unset it."
        ) from error


@contextmanager
def span(name: str, of: str = "") -> Iterator[None]:
    """Note how long the body takes."""
    if not _path:
        yield
        return
    begun, worked = time.monotonic_ns(), time.thread_time_ns()
    try:
        yield
    finally:
        ended, worked = time.monotonic_ns(), time.thread_time_ns() - worked
        _note(
            {
                **{"name": name, "ph": "X", "ts": begun / 1e3, "dur": (ended - begun) / 1e3},
                **{"tdur": worked / 1e3, "pid": os.getpid(), "tid": threading.get_native_id()},
                "args": {"of": of},
            }
        )


def _note(event: dict[str, object]) -> None:
    global _path
    try:
        # One write of a whole line: processes append side by side.
        file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(file, (json.dumps(event) + ",\n").encode())
        finally:
            os.close(file)
    except OSError:  # what is measured matters more: the trace ends here
        _path = ""
