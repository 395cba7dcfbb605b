# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Worker processes that are started before there is work for them: they load their code meanwhile.

Imports next to nothing: the first of them starts before the command line is read.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from gpuprof.machine import ONE_THREAD, usable_cores

if TYPE_CHECKING:
    from gpuprof.measure.protocol import Open

Process = subprocess.Popen[str]
#: What counts or explains beside a GPU leaves the processor to what measures.
_NICENESS = 5
#: What tells a process that it will execute: the device's name, too.
EXECUTOR = "sim"
_LADDERS = Path(__file__).parents[1] / "kernels"


class _Started(NamedTuple):
    """A process that no worker has taken yet, and whether it has stood back."""

    process: Process
    beside: bool = False


_ahead: list[_Started] = []
_lock = Lock()


def worker_process(device: str) -> Process:
    """A process that serves what it is asked; it ends with the thread that starts it.

    The GPU that `--device` names is opened before it is asked to, and the executor loaded.
    """
    executes = device.partition(":")[0] == EXECUTOR
    ahead = [EXECUTOR] if executes else _gpu(device)
    return subprocess.Popen(
        [sys.executable, "-m", "gpuprof.measure.worker", str(os.getpid()), *ahead],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=child_environment(),
    )


def child_environment() -> dict[str, str]:
    """The environment in which a child finds the modules that this process finds, and no others.

    What an import hook left on the path leads nowhere, and Python does not start with it where the working
    directory is gone.
    """
    path = os.pathsep.join(filter(os.path.exists, sys.path))
    return {**ONE_THREAD, **os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}


def end(process: Process) -> None:
    """End a process and free its files."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def start_for(words: Sequence[str]) -> None:
    """Start the process of the first worker where these words of a command line want one.

    Where there are cores for it, some of those that count beside it start, too: which cases there are is not
    known yet.
    """
    command = words[0] if words else ""
    # pathlib would raise where a name is too long for a file.
    of_ladder = command.isidentifier() and command[0] != "_" and os.path.isdir(_LADDERS / command)
    elsewhere = any(word.partition("=")[0] in ("-h", "--help", "--cluster") for word in words)
    # A pipe would take the place of a standard stream that the shell closed.
    streams = None not in (sys.stdin, sys.stdout, sys.stderr)
    if (of_ladder or command == "run") and streams and not elsewhere:
        line = "\0".join(("", *words, ""))
        named = re.search(r"\0--device[=\0](\d{1,3}|sim[^\0]*)\0", line)
        device = named[1] if named else "none"
        kernels = [1 + listed.count(",") for listed in re.findall(r"\0(?:-k|--kernel)[=\0]([^\0]+)", line)]
        with suppress(OSError):  # told where a worker is wanted
            _ahead.append(_Started(worker_process(device)))
            if device.isdecimal() and "--no-lines" not in words:
                some = usable_cores() // 2 - 1
                start_ahead(1 + min(some, sum(kernels) or some), beside=True)


def start_ahead(count: int, *, beside: bool = False) -> None:
    """Let so many processes be there of those that no worker has taken; new ones execute.

    They do it `beside` what measures, or measure themselves where there is no GPU.
    """
    while len(_ahead) < count:
        _ahead.append(_Started(worker_process(EXECUTOR), beside=beside))
        if beside:
            stand_back(_ahead[-1].process)


def stand_back(process: Process) -> None:
    """Let a process leave the processor to what measures."""
    with suppress(OSError):  # it has ended
        os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS)


@contextmanager
def started_ahead() -> Iterator[None]:
    """Start the process of the worker that is opened next; what nobody has taken by the end is ended."""
    if not _ahead:
        _ahead.append(_Started(worker_process("none")))
    try:
        yield
    finally:
        while _ahead:
            end(_ahead.pop().process)


def wake_ahead(device: str) -> None:
    """Let the process of the first worker, which is started ahead, open the GPU that it is to have."""
    for gpu in _gpu(device) if _ahead else ():
        with suppress(OSError):  # told of the worker that takes it
            tell(_ahead[0].process, f"{gpu}\n")


def _gpu(device: str) -> list[str]:
    """The number of the GPU that `--device` names, if it is one."""
    return re.findall(r"\A\d{1,3}\Z", "0" if device == "auto" else device)


def take(request: "Open") -> Process:
    """A process for a worker."""
    executes = request.executes is not None
    with _lock:
        free = next((one for one in _ahead if executes or not one.beside), None)
        if free is not None:
            _ahead.remove(free)
            return free.process
    return worker_process(EXECUTOR if executes else request.device)


def tell(process: Process, encoded: str) -> None:
    """Send a request to a process."""
    assert process.stdin is not None
    process.stdin.write(encoded)
    process.stdin.flush()
