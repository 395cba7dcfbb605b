# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Command lines of gpuprof's in processes of their own that need not load it: forks of one that has.

A process that starts spends more time on imports than most commands take. What an import loads, and what
Python does before it, is tested by processes that start from nothing.
"""

import atexit
import faulthandler
import functools
import gc
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SAMPLE = Path(__file__).parents[1] / "samples" / "transpose-h200.json"


class CommandServer:
    """A process that has loaded gpuprof, and becomes a command line of it as often as asked.

    Args:
        python_path: What is found before all other modules, as a `sitecustomize`; nothing if empty.
    """

    def __init__(self, python_path: str = "") -> None:
        self._socket, theirs = socket.socketpair()
        told = {"PYTHONPATH": python_path} if python_path else {}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *(["site"] if python_path else [])],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **told},
                start_new_session=True,
            )

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout_s: float
    ) -> "subprocess.CompletedProcess[str]":
        """Run one command line; it finds standard input empty.

        Raises:
            subprocess.TimeoutExpired: It does not end; its processes are gone.
        """
        request = {"arguments": arguments, "cwd": os.fspath(cwd), "environment": dict(environment)}
        with (
            tempfile.TemporaryFile("w+") as asked,
            tempfile.TemporaryFile("w+") as output,
            tempfile.TemporaryFile("w+") as errors,
        ):
            json.dump(request, asked)
            asked.seek(0)
            self._socket.settimeout(timeout_s)
            socket.send_fds(self._socket, [b"?"], [file.fileno() for file in (asked, output, errors)])
            try:
                status = int(self._socket.recv(100))
            except TimeoutError:
                os.killpg(self._process.pid, signal.SIGKILL)
                command_server.cache_clear()
                raise subprocess.TimeoutExpired(arguments, timeout_s) from None
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(arguments, status, output.read(), errors.read())

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


@functools.cache
def command_server(python_path: str = "") -> CommandServer:
    """The one of this process, which ends with it."""
    server = CommandServer(python_path)
    atexit.register(server.close)
    return server


#: A driver that is open does not survive a fork.
MAY_FORK = not os.path.exists("/dev/nvidia0")


class ForkedWorker(subprocess.Popen):
    """A worker process that need not load anything either: a fork of the command that starts it.

    Args:
        main: What it does; what `python -m gpuprof.measure.worker PARENT [GPU …]` does if nothing is named.
    """

    def __init__(
        self, command: Sequence[str], main: Callable[[], None] | None = None, **options: Any
    ) -> None:
        self._main = main
        super().__init__(command, **options)

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others):
        stdin, _, _, stdout, _, stderr = others[3:9]
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            _be_a_worker(self._main, (stdin, stdout, stderr), env, args[3:])
        self._child_created = True
        for file in (stdin, stdout, stderr):
            os.close(file)


def _be_a_worker(
    main: Callable[[], None] | None,
    files: Sequence[int],
    environment: Mapping[str, str],
    arguments: Sequence[str],
) -> None:
    """Do what a worker does, and end."""
    from gpuprof.measure import worker

    status = 1
    gc.freeze()  # what it inherits is its parent's to clear away
    faulthandler.disable()
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        _close_but_kept()
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["gpuprof", *arguments]
        (main or worker.main)()
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for file in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                file.flush()
        os._exit(status)


def _close_but_kept() -> None:
    """Close all files but what modules keep: memory, and folders."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # that of the listing itself
            kept = os.readlink(f"/proc/self/fd/{number}")
            if number > 2 and not kept.startswith("/memfd:") and not os.path.isdir(kept):
                os.close(number)


def _start(command: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
    """Start a process; a worker is a fork, whose other threads wait here for their own workers."""
    if list(command[1:3]) != ["-m", "gpuprof.measure.worker"]:
        return subprocess.Popen(command, **options)
    import gpuprof.backends.sim.backend
    import gpuprof.measure.serving  # noqa: F401 - what a worker loads

    return ForkedWorker(command, **options)


def fork_workers() -> None:
    """Have workers begin as forks of the process that wants them."""
    from gpuprof.measure import starting

    starting.subprocess = SimpleNamespace(Popen=_start, PIPE=subprocess.PIPE)


#: Names what commands do without: nvdisasm takes longer to start than most kernels of tests to run.
UNREAD = "TESTS_READ_NO_MACHINE_CODE"


def read_no_machine_code(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Have this process, and workers that it forks, disassemble nothing, and so model no times."""
    from gpuprof.backends.sim.instructions import Links, NoLink

    replace(Links, "begin", lambda *_: None)
    replace(Links, "_link", lambda *_: NoLink("this test counts none of its instructions."))


def _load() -> None:
    """Load what commands and their workers import and read once, by commands that touch most of it."""
    if sys.argv[2:] != ["site"]:  # whose driver is loaded with it, and reads the environment then
        import cuda.bindings.nvrtc  # noqa: F401 - for those that compile

    import gpuprof.backends.sim.backend
    import gpuprof.commands.profile
    import gpuprof.measure.serving  # noqa: F401
    from gpuprof.cli import app

    fork_workers()

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        for arguments in (["list"], ["report", str(SAMPLE), "-o", f"{folder}/report.html"]):
            app(arguments, standalone_mode=False)


def _next_command(requests: socket.socket) -> bool:
    """Wait until this is a new process that shall be a command line; False where no more are wanted."""
    while True:
        message, (*files,), _, _ = socket.recv_fds(requests, 1, 3)
        if not message:
            return False
        child = os.fork()
        if not child:
            requests.close()
            _take_over(*files)
            return True
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _take_over(asked: int, output: int, errors: int) -> None:
    """Be the process of a command line, up to its first instruction."""
    with open(asked) as file:
        request = json.load(file)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[0] = request["cwd"]
    sys.argv = ["gpuprof", *request["arguments"]]


if __name__ == "__main__":
    _load()
    if _next_command(socket.socket(fileno=int(sys.argv[1]))):
        if UNREAD in os.environ:
            read_no_machine_code()
        runpy.run_module("gpuprof", run_name="__main__", alter_sys=True)
