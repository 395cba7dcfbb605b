# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Worker processes on a cluster's machines, spoken to as if they were here.

A task on a cluster's worker starts gpuprof's own worker process there and passes messages on: a kernel that
crashes takes that process with it, and never the cluster's worker. Messages travel as the text that they are
between processes of one machine, so that both ends may be of any Python.
"""

import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuprof import signals
from gpuprof.errors import GpuprofError
from gpuprof.measure.cluster.connection import Connection, Member, import_distributed
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import (
    Open,
    Opened,
    PlaceLost,
    Refused,
    WorkerLost,
    answer_of,
    decode,
    encode,
)
from gpuprof.records import replace

_POLL_S = 0.1
#: How long a reply may be on its way until it is asked whether the worker that has it is still there.
_FETCH_S = 5.0
#: How long opening may take: drivers on cold machines are slow.
_OPEN_S = 180.0
#: How long a worker that vanished is given to come back.
_RETURN_S = 30.0


class HeldWorker:
    """A worker process on the machine of a cluster's worker, which keeps this object as a task's result.

    The cluster forgets the result when its client lets go of it or is gone, whatever ended that; the process
    ends with it. Arrays that a program gave come along as files, by name.
    """

    def __init__(self, opening: str, arrays: Mapping[str, bytes], patience_s: float) -> None:
        self._worker: WorkerProcess | None = None
        request = decode(opening)
        assert isinstance(request, Open)
        if arrays:
            folder = tempfile.TemporaryDirectory(prefix="gpuprof-", ignore_cleanup_errors=True)
            weakref.finalize(self, folder.cleanup)
            for name, content in arrays.items():
                Path(folder.name, Path(name).name).write_bytes(content)
            request = replace(request, given_arrays=folder.name)
        try:
            self._worker = WorkerProcess(request, patience_s)
        except GpuprofError as error:
            self._first = encode(Refused.by(error))
            return
        weakref.finalize(self, self._worker.close)
        self._first = encode(self._worker.opened)

    def opened(self) -> str:
        return self._first

    def ask(self, message: str, timeout_s: float, compile_s: float | None) -> str:
        """Pass a message on, and bring its answer."""
        if self._worker is None:
            return self._first
        try:
            return encode(self._worker.ask(decode(message), timeout_s, compile_s=compile_s))
        except (GpuprofError, WorkerLost) as error:
            return encode(error if isinstance(error, WorkerLost) else Refused.by(error))

    def tell(self, message: str) -> None:
        if self._worker is not None:
            try:
                self._worker.tell(decode(message))
            except WorkerLost:  # the next question will say so
                return

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a process does not travel")


class WorkerSlot:
    """One place on one of a cluster's workers, a transport: it runs one worker process at a time."""

    def __init__(
        self, connection: Connection, member: Member, *, uses_gpu: bool, patience_s: float = _RETURN_S
    ) -> None:
        self.connection = connection
        self.member = member
        self._resources = {"GPU": 1} if uses_gpu else {}
        self._patience_s = patience_s

    def __call__(self, request: Open) -> "ClusterWorker":
        for _ in range(2):
            address = self._present_address()
            try:
                return ClusterWorker(self, address, request)
            except WorkerLost as error:
                if error.how != "vanished":
                    raise PlaceLost(f"{self.member.name} cannot start a worker process: {error}") from error
        raise PlaceLost(f"{self._who} is lost whenever a worker process is started there")

    def submit(self, address: str, function: Any, *arguments: Any) -> Any:
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
    """A worker process on a cluster's machine; the end of the machine, or of the connection, is its own."""

    def __init__(self, slot: WorkerSlot, address: str, request: Open) -> None:
        self._slot = slot
        self._address = address
        self._closed = threading.Event()
        arrays = _files(request.given_arrays)
        self._held = slot.submit(address, HeldWorker, encode(request), arrays, _OPEN_S)
        try:
            opened = self._answer(slot.submit(address, HeldWorker.opened, self._held))
            assert isinstance(opened, Opened)
        except BaseException:
            self.close()
            raise
        self.opened = opened

    def ask(self, request: Any, timeout_s: float, *, compile_s: float | None = None) -> Any:
        """Send a request and wait for its answer, behind whatever else the cluster's worker has to do."""
        arguments = self._held, encode(request), timeout_s, compile_s
        return self._answer(self._slot.submit(self._address, HeldWorker.ask, *arguments))

    def tell(self, request: Any) -> None:
        if not self._slot.connection.is_there(self._address):
            raise WorkerLost("its machine was lost")
        # Nobody waits for it: the cluster keeps it until it is done, however soon this reference ends.
        future = self._slot.submit(self._address, HeldWorker.tell, self._held, encode(request))
        import_distributed().fire_and_forget(future)

    def close(self) -> None:
        self._closed.set()
        self._held.release()

    def _answer(self, future: Any) -> Any:
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(_POLL_S):
                self._check_worth_waiting()
            line = self._line(future)
        finally:
            future.release()
        return answer_of(line)

    def _line(self, future: Any) -> str:
        while future.status == "finished":
            try:
                return str(future.result(timeout=_FETCH_S))
            except TimeoutError:  # it is slow, or went with the worker that has it
                self._check_worth_waiting()
        signals.check()
        if future.status == "error":
            raise WorkerLost(f"the cluster's worker failed: {future.exception()!r}")
        raise self._vanished

    def _check_worth_waiting(self) -> None:
        signals.check()
        if self._closed.is_set():
            raise WorkerLost("the run ends")
        if not self._slot.connection.is_there(self._address):
            raise self._vanished

    @property
    def _vanished(self) -> WorkerLost:
        lost = f"the cluster's worker {self._slot.member.name} at {self._address} was lost"
        return WorkerLost(self._slot.connection.lost or lost, "vanished")


def _files(folder: str) -> Mapping[str, bytes]:
    """The arrays that a program gave: they travel, as sources do."""
    if not folder:
        return {}
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
