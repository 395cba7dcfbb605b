# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A connection to a Dask cluster: who works there, who has vanished, and whether it is there at all."""

import logging
import platform
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpuprof import __version__
from gpuprof.errors import BackendUnavailable, InputError, ToolError, foreign
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
    """A cluster, for as long as a run lasts: by its scheduler's address, or a file that has it.

    Raises:
        InputError: The address makes no sense.
        BackendUnavailable: Nobody answers there.
        ToolError: Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        distributed = import_distributed()
        # What it has to say of lost connections, the run says itself.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self.address = address
        where = {"scheduler_file": address} if _is_scheduler_file(address) else {"address": address}
        try:
            self.client = distributed.Client(**where, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise BackendUnavailable(
                f"No cluster answers at {address}: {_first_line(error)}.",
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
        return f"the cluster at {self.address} has not answered for {silence:.0f} s"

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


def _is_scheduler_file(address: str) -> bool:
    if _ADDRESS.fullmatch(address):
        return False
    if Path(address).is_file():
        return True
    raise InputError(
        f"--cluster {address} is neither an address nor a scheduler's file.",
        fix="Write tcp://HOST:8786, as the scheduler tells it, or the path of its --scheduler-file.",
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
