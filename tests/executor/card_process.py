# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A process that runs cases on a card: a fault spoils the context that it happens in, and no other case."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, Self

#: Longest that a process may take to start, to compile, and to answer.
_PATIENCE_S = 180.0


class CaseRuns(Protocol):
    """What a process does.

    Attributes:
        arch: The device's architecture.
    """

    arch: str

    def run(self, case: Any) -> Any:
        """Run a case and return what it left behind."""


class CardTrouble(Exception):
    """A case that did not end well on the card: why."""


class CardProcess:
    """Runs cases one after the other in a process, and in a new one after each that fails.

    Args:
        opened: Opens the first device, given a folder for compiled kernels; a function of a module.
        folder: That folder.
    """

    def __init__(self, opened: Callable[[Path], CaseRuns], folder: Path) -> None:
        self._opened, self._folder = opened, folder
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None
        #: The device's architecture.
        self.arch: str = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def run(self, case: Any) -> Any:
        """Run a case and return what it left behind.

        Raises:
            CardTrouble: A fault, a hang, or a process that ended.
        """
        if self._connection is None:
            self._start()
        self._connection.send(case)
        return self._answer()

    def _start(self) -> str:
        spawning = multiprocessing.get_context("spawn")
        self._connection, theirs = spawning.Pipe()
        self._process = spawning.Process(
            target=_serve, args=(theirs, self._opened, self._folder), daemon=True
        )
        self._process.start()
        # With the last copy here closed, the end of the process is the end of the connection.
        theirs.close()
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._connection.recv() if self._connection.poll(_PATIENCE_S) else CardTrouble("silence")
        except (EOFError, ConnectionError):
            answer = CardTrouble("the process ended")
        if isinstance(answer, CardTrouble):
            self._stop()
            raise answer
        return answer

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._connection = self._process = None


def _serve(connection: Connection, opened: Callable[[Path], CaseRuns], folder: Path) -> None:
    """Answer cases until there are no more."""
    try:
        runs = opened(folder)
        connection.send(runs.arch)
        while True:
            connection.send(runs.run(connection.recv()))
    except EOFError:
        return
    except TimeoutError:
        connection.send(CardTrouble("the launch does not end"))
    except Exception as why:
        connection.send(CardTrouble(f"{type(why).__name__}: {why}"))
