# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Worker processes on a cluster's machines, spoken to as if they were here."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuprof import signals
from gpuprof.measure.cluster import remote
from gpuprof.measure.cluster.connection import Connection, Member, import_distributed
from gpuprof.measure.process import WorkerDied, WorkerTimeout
from gpuprof.measure.protocol import Open, Opened, Refused, decode, encode
from gpuprof.measure.transport import PlaceLost, WorkerVanished

_POLL_S = 0.1
#: How long a reply may be on its way until it is asked whether the worker that has it is still there.
_FETCH_S = 5.0
#: How long opening may take: drivers on cold machines are slow.
_OPEN_S = 180.0
#: How long a worker that vanished is given to come back.
_RETURN_S = 30.0


class WorkerSlot:
    """One place on one of a cluster's workers: it runs one worker process at a time."""

    def __init__(
        self, connection: Connection, member: Member, *, uses_gpu: bool, patience_s: float = _RETURN_S
    ) -> None:
        self.connection = connection
        self.member = member
        self._resources = {"GPU": 1} if uses_gpu else {}
        self._patience_s = patience_s

    def open(self, request: Open) -> "ClusterWorker":
        """Start a worker process there."""
        for _ in range(2):
            address = self._present_address()
            try:
                return ClusterWorker(self, address, request)
            except WorkerVanished:
                continue
            except (WorkerDied, WorkerTimeout) as error:
                raise PlaceLost(f"{self.member.name} cannot start a worker process: {error}") from error
        raise PlaceLost(f"{self._who} is lost whenever a worker process is started there")

    def submit(self, address: str, function: Any, *arguments: Any) -> Any:
        """A future of a function's result at an address."""
        return self.connection.client.submit(
            function,
            *arguments,
            workers=[address],
            allow_other_workers=False,
            resources=self._resources,
            pure=False,
        )

    @property
    def _who(self) -> str:
        return f"the worker {self.member.name}" + (f" on {self.member.host}" if self.member.host else "")

    def _present_address(self) -> str:
        """Where the worker answers now, which changes when it is started again."""
        end = time.monotonic() + self._patience_s
        while True:
            signals.check()
            if why := self.connection.lost:
                raise PlaceLost(why)
            for member in self.connection.members():
                # Its nanny started it again, or whoever gave it its name did.
                if self.member.key == member.key or self.member.name == member.name:
                    return member.address
            if time.monotonic() > end:
                raise PlaceLost(f"{self._who} was lost and did not come back within {self._patience_s:g} s")
            time.sleep(_POLL_S)


class ClusterWorker:
    """A worker process on a cluster's machine."""

    def __init__(self, slot: WorkerSlot, address: str, request: Open) -> None:
        self._slot = slot
        self._address = address
        self._closed = threading.Event()
        arrays = _files(request.given_arrays)
        self._held = slot.submit(address, remote.HeldWorker, encode(request), arrays, _OPEN_S)
        try:
            opened = self._answer(slot.submit(address, remote.opened, self._held))
            assert isinstance(opened, Opened)
        except BaseException:
            self.close()
            raise
        self.opened = opened

    def ask(self, request: Any, timeout_s: float, *, compile_s: float | None = None) -> Any:
        """Send a request and wait for its answer, behind whatever else the cluster's worker has to do."""
        return self._answer(
            self._slot.submit(self._address, remote.ask, self._held, encode(request), timeout_s, compile_s)
        )

    def tell(self, request: Any) -> None:
        """Send a request that has no answer."""
        if not self._slot.connection.is_there(self._address):
            raise WorkerDied("its machine was lost")
        # Nobody waits for it: the cluster keeps it until it is done, however soon this reference ends.
        future = self._slot.submit(self._address, remote.tell, self._held, encode(request))
        import_distributed().fire_and_forget(future)

    def close(self) -> None:
        """End the process."""
        self._closed.set()
        self._held.release()

    def _answer(self, future: Any) -> Any:
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(_POLL_S):
                self._check_worth_waiting()
            reply = self._reply(future)
        finally:
            future.release()
        if reply.kind in ("timeout", "compiling"):
            raise WorkerTimeout(reply.text, compiling=reply.kind == "compiling")
        if reply.kind in ("died", "taken", "memory"):
            raise WorkerDied(reply.text, taken=reply.kind == "taken", out_of_memory=reply.kind == "memory")
        try:
            answer = decode(reply.text)
        except ValueError as error:
            raise WorkerDied(f"its reply is invalid ({error})") from error
        if isinstance(answer, Refused):
            raise answer.error()
        return answer

    def _reply(self, future: Any) -> remote.Reply:
        while future.status == "finished":
            try:
                reply = future.result(timeout=_FETCH_S)
            except TimeoutError:  # it is slow, or went with the worker that has it
                self._check_worth_waiting()
                continue
            assert isinstance(reply, remote.Reply)
            return reply
        signals.check()
        if future.status == "error":
            raise WorkerDied(f"the cluster's worker failed: {future.exception()!r}")
        raise WorkerVanished(self._slot.connection.lost or self._vanished)

    def _check_worth_waiting(self) -> None:
        signals.check()
        if self._closed.is_set():
            raise WorkerDied("the run ends")
        if not self._slot.connection.is_there(self._address):
            raise WorkerVanished(self._slot.connection.lost or self._vanished)

    @property
    def _vanished(self) -> str:
        return f"the cluster's worker {self._slot.member.name} at {self._address} was lost"


def _files(folder: str) -> Mapping[str, bytes]:
    """The arrays that a program gave: they travel, as sources do."""
    if not folder:
        return {}
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
