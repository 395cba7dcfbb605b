# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A process that runs cases on a card: a fault spoils the context that it happens in, and no other case."""

import ctypes
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

#: Longest that a process may take to start, to compile, and to answer.
_PATIENCE_S = 180.0


class CaseRuns(Protocol):
    """What a process does, on a device of an architecture."""

    arch: str

    def run(self, case: Any) -> Any:
        """Run a case and return what it left behind."""


class KernelsOnCard:
    """Launches the kernels of one cubin on the first device."""

    def __init__(self, cubin: Path, content: bytes) -> None:
        sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
        from asking import Card

        self._card, self._cubin = Card(), cubin
        self.arch: str = self._card.describe()["arch"]
        if not cubin.exists():
            cubin.write_bytes(content)

    def launched(
        self,
        kernel: str,
        arrays: Sequence[np.ndarray],
        more: Sequence[Any] = (),
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int],
        shared: int = 0,
        first: Callable[[int], Any] = ctypes.c_void_p,
    ) -> list[np.ndarray]:
        """Return what arrays hold after a launch; `first` makes an argument of the first one's address."""
        card = self._card
        function = card.function(self._cubin, kernel, shared)
        addresses = [card.array(array.tobytes()) for array in arrays]
        values = [first(addresses[0]), *(ctypes.c_void_p(address) for address in addresses[1:]), *more]
        card.launch(function, grid, block, shared, values)
        found = [card.content(address, array) for address, array in zip(addresses, arrays, strict=True)]
        for address in addresses:
            card.free(address)
        return found


class CardTrouble(Exception):
    """A case that did not end well on the card: why."""


class CardProcess:
    """Runs cases one after the other in a process, and in a new one after each that fails.

    `opened`, a function of a module, opens the first device, given a folder for compiled kernels.
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
        """Return what a case left behind; CardTrouble tells of a fault, a hang, or a lost process."""
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
