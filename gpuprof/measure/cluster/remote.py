# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What runs on a cluster's workers: it starts gpuprof's own worker process there and passes messages on.

A kernel that crashes takes that process with it, and never the cluster's worker. Messages travel as the text
that they are between processes of one machine, so that both ends may be of any Python.
"""

import platform
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gpuprof import __version__
from gpuprof.errors import GpuprofError
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout
from gpuprof.measure.protocol import Open, Refused, decode, encode
from gpuprof.measure.versions import versions

Kind = Literal["answer", "died", "taken", "memory", "timeout", "compiling"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a message."""

    kind: Kind
    text: str


class HeldWorker:
    """A worker process on this machine: it lives as long as this object, which a cluster keeps as a result.

    The cluster forgets the result when its client lets go of it or is gone, whatever ended that.
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
            self._first = Reply("answer", encode(Refused(error.what, error.fix, int(error.exit_code))))
            return
        weakref.finalize(self, self._worker.close)
        self._first = Reply("answer", encode(self._worker.opened))

    def opened(self) -> Reply:
        """What the process answered to the first message."""
        return self._first

    def ask(self, message: str, timeout_s: float, compile_s: float | None) -> Reply:
        """Pass a message on, and bring its answer."""
        if self._worker is None:
            return self._first
        try:
            return Reply("answer", encode(self._worker.ask(decode(message), timeout_s, compile_s=compile_s)))
        except GpuprofError as error:
            return Reply("answer", encode(Refused(error.what, error.fix, int(error.exit_code))))
        except WorkerTimeout as error:
            return Reply("compiling" if error.compiling else "timeout", str(error))
        except WorkerDied as error:
            kind: Kind = "memory" if error.out_of_memory else "taken" if error.taken else "died"
            return Reply(kind, str(error))

    def tell(self, message: str) -> None:
        """Pass on a message that has no answer."""
        if self._worker is not None:
            try:
                self._worker.tell(decode(message))
            except WorkerDied:  # the next question will say so
                return

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a process does not travel")


def ask(held: HeldWorker, message: str, timeout_s: float, compile_s: float | None) -> Reply:
    """`Held.ask`, as a task."""
    return held.ask(message, timeout_s, compile_s)


def tell(held: HeldWorker, message: str) -> None:
    """`Held.tell`, as a task."""
    held.tell(message)


def opened(held: HeldWorker) -> Reply:
    """`Held.opened`, as a task."""
    return held.opened()


def software() -> dict[str, str]:
    """What this worker has of the software that decides what is measured, and its machine's name."""
    return {"gpuprof": __version__, "host": platform.node(), **versions()}
