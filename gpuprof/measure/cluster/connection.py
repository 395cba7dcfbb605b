# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A connection to a Dask cluster: who works there, who has vanished, and whether it is there at all.

Whoever reaches a port of a Dask cluster runs programs as its user. So one that is made of this machine, for
`--cluster local:N`, listens on the loopback address alone, and to those alone that have the key which is made
for the run: other users of the machine have not.
"""

import logging
import os
import platform
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpuprof import __version__
from gpuprof.errors import BackendUnavailable, InputError, ToolError, did_you_mean, foreign
from gpuprof.toolchain.nvrtc import software_versions

#: How often the cluster is asked who works there.
_PULSE_S = 1.0
#: A cluster that has said nothing for so long is gone.
_SILENCE_S = 15.0
#: The heartbeat timeout: a worker that sends none for so long hangs, or its machine does.
_HEARTBEAT_S = 60.0
#: How long connecting, and asking all workers for their software, may take.
_CONNECT_S = 20.0
#: What Dask calls a scheduler by: a protocol, which may be left out, a host and a port.
_ADDRESS = re.compile(r"(?:[a-z]+://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
MISSING_FIX = "Install it with gpuprof's extra: pip install '.[cluster]' in gpuprof's checkout."


class Member(Struct, frozen=True):
    """A worker of the cluster, whose `key` stays the same when it is started again."""

    address: str
    key: str
    name: str
    host: str
    threads: int
    gpus: int


def import_distributed() -> Any:
    """The library."""
    try:
        import distributed
    except ImportError as error:
        what = f"--cluster needs Dask's library distributed: {foreign(error)}."
        raise ToolError(what, fix=MISSING_FIX) from error
    return distributed


class Connection:
    """A cluster, for as long as a run lasts: by its scheduler's address, a file that has it, or an object.

    Raises:
        InputError: The address makes no sense.
        BackendUnavailable: Nobody answers there.
        ToolError: Dask is not installed.
    """

    def __init__(self, address: Any, shown: str, on_close: Callable[[], None] = lambda: None) -> None:
        distributed = import_distributed()
        # What it has to say of lost connections, the run says itself.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self.shown = shown
        self._on_close = on_close
        where = {"scheduler_file": address} if _is_scheduler_file(address) else {"address": address}
        try:
            self.client = distributed.Client(**where, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise BackendUnavailable(
                f"No cluster answers at {shown}: {_first_line(error)}.",
                fix="Start one (dask scheduler), and check the address and the firewall.",
            ) from error
        self._members: dict[str, Member] = {}
        #: Of each worker its last heartbeat, and when this process noticed it.
        self._beats: dict[str, tuple[float, float]] = {}
        self._answered = time.monotonic()
        self._closed = threading.Event()
        self._look()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def members(self) -> list[Member]:
        """Those that work there now and send heartbeats."""
        now = time.monotonic()
        return [
            member for member in self._members.values() if now - self._beats[member.address][1] < _HEARTBEAT_S
        ]

    @property
    def lost(self) -> str:
        """Why nobody there can be reached any more; empty while the cluster answers."""
        if self._closed.is_set():
            return "the run ends"
        silence = time.monotonic() - self._answered
        if silence < _SILENCE_S:
            return ""
        return f"the cluster at {self.shown} has not answered for {silence:.0f} s"

    def is_there(self, address: str) -> bool:
        return not self.lost and any(member.address == address for member in self.members())

    def software(self) -> Mapping[str, Mapping[str, str] | str]:
        """What each worker has of the software that matters, by address; or why it cannot say."""
        answers = self.client.run(_software, on_error="return")
        return {
            address: answer if isinstance(answer, dict) else _first_line(answer)
            for address, answer in answers.items()
        }

    def close(self) -> None:
        """Leave the cluster; what it keeps for this client, it forgets."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._watcher.join(_PULSE_S)
        with suppress(Exception):  # a cluster that is gone already has many ways to say so
            self.client.close(timeout=5)
        with suppress(Exception):
            self._on_close()

    def _watch(self) -> None:
        while not self._closed.wait(_PULSE_S):
            with suppress(Exception):  # whatever it is, the silence grows
                self._look()

    def _look(self) -> None:
        found = self.client.sync(self.client.scheduler.identity, callback_timeout=_SILENCE_S)["workers"]
        now = time.monotonic()
        for address, worker in found.items():
            beat, noticed = self._beats.get(address, (None, now))
            self._beats[address] = worker["last_seen"], noticed if beat == worker["last_seen"] else now
        self._members = {address: _member(address, worker) for address, worker in found.items()}
        self._answered = now


def _software() -> dict[str, str]:
    """What the worker where this runs has of the software that decides what is measured, and its machine."""
    return {"gpuprof": __version__, "host": platform.node(), **software_versions()}


def _is_scheduler_file(address: Any) -> bool:
    """Whether an address is the file in which a scheduler tells its own."""
    if not isinstance(address, str) or _ADDRESS.fullmatch(address):
        return False
    if Path(address).is_file():
        return True
    raise InputError(
        f"--cluster {address} is neither an address nor a scheduler's file.",
        fix="Write tcp://HOST:8786, as the scheduler tells it, the path of its --scheduler-file, or local:2.",
    )


def _member(address: str, worker: Mapping[str, Any]) -> Member:
    name = str(worker.get("name") or address)
    return Member(
        address=address,
        key=str(worker.get("nanny") or name),
        name=name,
        host=str(worker.get("host") or ""),
        threads=int(worker.get("nthreads") or 1),
        gpus=int((worker.get("resources") or {}).get("GPU", 0)),
    )


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


#: Of what is no address, but a cluster of this machine: what a fleet does, without a fleet.
PREFIX = "local:"
_MOST = 256
_HERE = "127.0.0.1"
_SAFE_PATH = "PYTHONSAFEPATH"


def connect(address: str, *, gpus: bool) -> Connection:
    """Connect to a cluster, or make one of this machine."""
    if not address.startswith(PREFIX):
        if meant := _meant_local(address):
            raise InputError(f"--cluster {address} names no machine that is known.", fix=meant)
        return Connection(address, address)
    count = address.removeprefix(PREFIX)
    if not re.fullmatch("[0-9]{1,3}", count) or not 1 <= int(count) <= _MOST:
        raise InputError(
            f"--cluster {address} names no number of workers.", fix=f"Write local:1 to local:{_MOST}."
        )
    return _make(address, int(count), gpus=gpus)


def _meant_local(address: str) -> str:
    """A question, where an address is `local:N` misspelt and no machine's: nobody would ever answer."""
    host, _, count = address.partition(":")
    if not re.fullmatch("[0-9]{1,3}", count) or not (meant := did_you_mean(host, ["local"])):
        return ""
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return meant.replace("local", f"{PREFIX}{count}")
    return ""


def _make(address: str, count: int, *, gpus: bool) -> Connection:
    distributed = import_distributed()
    from dask import config

    visible = _gpus_here() if gpus else []
    if gpus and len(visible) < count:
        has = f"{len(visible) or 'no'} GPU{'s' if len(visible) > 1 else ''}"
        raise BackendUnavailable(
            f"--cluster {address} needs a GPU for each worker; this machine has {has}.",
            fix=f"{'Ask for fewer workers, or execute' if visible else 'Execute'}: --device sim.",
        )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        security = distributed.Security.temporary()  # written nowhere: it keeps all other processes out
    except ImportError as error:
        raise ToolError(f"--cluster {address} makes a key: {foreign(error)}.", fix=MISSING_FIX) from error
    closed = {"host": _HERE, "protocol": "tls", "security": security, "dashboard": False}
    each = {**closed, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    own = [{"resources": {"GPU": 1}, "env": {"CUDA_VISIBLE_DEVICES": gpu}} for gpu in visible] or [{}] * count
    workers = {
        number: {"cls": distributed.Nanny, "options": {**each, **own[number]}} for number in range(count)
    }
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {**closed, "dashboard_address": f"{_HERE}:0", "port": 0},
    }
    # Nothing is told over HTTP, which asks nobody for a key.
    silent: dict[str, list[str]] = {
        f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker", "nanny")
    }
    kept = ExitStack()
    kept.enter_context(_own_modules_only())
    try:
        with config.set(silent):
            cluster = distributed.SpecCluster(
                workers, scheduler, loop=_deaf_loop(kept), security=security, silence_logs=logging.CRITICAL
            )
    except (OSError, TimeoutError, RuntimeError) as error:
        kept.close()
        raise BackendUnavailable(f"--cluster {address} cannot be started: {foreign(error)}.") from error

    def close() -> None:
        with kept, suppress(Exception):  # its processes end with this one in any case
            cluster.close(timeout=5)

    try:
        return Connection(cluster, address, close)
    except BaseException:
        close()
        raise


def _deaf_loop(kept: ExitStack) -> Any:
    """The loop of a cluster whose processes leave Ctrl-C to this one; they inherit what its thread blocks."""
    from distributed.utils import LoopRunner

    runner: Any = LoopRunner()
    resource_tracker.ensure_running()  # else the first process that starts it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        runner.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    kept.callback(runner.stop)
    return runner.loop


@contextmanager
def _own_modules_only() -> Iterator[None]:
    """Have Python start processes that take no module from the working directory, maybe a stranger's."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _gpus_here() -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` of a process with one GPU is, for each of this machine's."""
    from gpuprof.backends.gpu.driver import device_count

    try:
        count = device_count()
    except BackendUnavailable:
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    listed = [name.strip() for name in named.split(",") if name.strip()]
    return (listed or [str(number) for number in range(count)])[:count]
