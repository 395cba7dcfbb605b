# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Workers side by side, each with a thread that hands it its work: cases to measure, to count, to compile."""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from gpuprof import signals
from gpuprof.errors import GpuprofError
from gpuprof.measure.protocol import PlaceLost, WorkerLost

#: How soon a request to end the run is noticed, and how long threads are given to leave.
_POLL_S = 0.1
_FAREWELL_S = 5.0


class Seat(Protocol):
    """A place for one worker at a time, which lives as long as the thread that starts it."""

    def open(self) -> object:
        """Have the worker there before there is work for it."""
        ...

    def close(self) -> None:
        """End the worker, and whatever it is doing."""
        ...


S = TypeVar("S", bound=Seat)


class Pool(Generic[S]):
    """Some seats, and the work that nobody has taken, in order.

    A worker keeps what it decoded of a kernel: if possible it gets all of the kernel's work. A seat ends with
    what its work raises; a place that is lost leaves its work to any other.
    """

    def __init__(self, seats: Sequence[S], *, ahead: bool) -> None:
        #: Notified of whatever changes here, and held while it does.
        self.changed = threading.Condition()
        self.closed = False
        self._paused = False
        self._error: BaseException | None = None
        self._lost: list[str] = []
        self._waiting: list[tuple[Hashable, Callable[[S], None]]] = []
        self._decoded_by: dict[Hashable, S] = {}
        self._seats = tuple(seats)
        self._busy = self._live = len(seats)
        # They live as long as their workers are to.
        self._threads = [
            threading.Thread(target=self._serve, args=(seat, ahead), daemon=True) for seat in seats
        ]
        for thread in self._threads:
            thread.start()

    def add(self, kernel: Hashable, work: Callable[[S], None]) -> None:
        """Let some worker do what has to be done for a kernel."""
        with self.changed:
            self._waiting.append((kernel, work))
            self.changed.notify_all()

    def settle(self) -> None:
        """Wait until all work is done.

        Raises:
            KeyboardInterrupt: The run was asked to end.
            PlaceLost: No seat is left, and some work is.
            BaseException: What some of the work raised.
        """
        self.wait(lambda: bool(self._waiting or self._busy))
        if self._waiting and not self.closed:
            raise PlaceLost("; ".join(dict.fromkeys(self._lost)))

    def wait(self, while_so: Callable[[], bool]) -> None:
        """Wait as long as something is so and a seat is left, as `settle` does."""
        with self.changed:
            while while_so() and self._live and not self.closed:
                signals.check()
                self.changed.wait(_POLL_S)
        if self._error is not None:
            signals.check()
            raise self._error

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do nothing within the block; what is under way ends first."""
        try:
            with self.changed:
                self._paused = True
                while self._busy and not self.closed:
                    signals.check()
                    self.changed.wait(_POLL_S)
            yield
        finally:
            with self.changed:
                self._paused = False
                self.changed.notify_all()

    def close(self, *, wait: bool = True) -> None:
        """End all workers; what is not done stays undone. Memory takes a while to be given back."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        ending = threading.Thread(target=self._end)
        ending.start()
        if wait:
            ending.join()

    def _end(self) -> None:
        for seat in self._seats:
            seat.close()
        for thread in self._threads:
            thread.join(_FAREWELL_S)

    def _serve(self, seat: S, ahead: bool) -> None:
        try:
            if ahead:
                with suppress(WorkerLost, PlaceLost, GpuprofError, KeyboardInterrupt):  # told of work for it
                    seat.open()
            while (found := self._next(seat)) is not None:
                try:
                    found[1](seat)
                except PlaceLost as lost:
                    self._give_back(found, seat, str(lost))
                    break
        except BaseException as error:
            self._error = self._error or error
        finally:
            with self.changed:
                self._live -= 1
                self._busy -= 1
                self.changed.notify_all()
            seat.close()  # perhaps it was opened while the others were closed

    def _next(self, seat: S) -> tuple[Hashable, Callable[[S], None]] | None:
        """The next work, if possible of a kernel that no other seat has decoded; None at the end."""
        with self.changed:
            self._busy -= 1
            self.changed.notify_all()
            while not self.closed and (self._paused or not self._waiting):
                self.changed.wait()
            self._busy += 1
            if self.closed:
                return None
            own = (one for one in self._waiting if self._decoded_by.get(one[0], seat) is seat)
            found = next(own, self._waiting[0])
            self._waiting.remove(found)
            self._decoded_by.setdefault(found[0], seat)
            return found

    def _give_back(self, found: tuple[Hashable, Callable[[S], None]], seat: S, why: str) -> None:
        """Leave work to any other seat: this one is lost, with what it knew."""
        with self.changed:
            self._lost.append(why)
            self._waiting.insert(0, found)
            self._decoded_by = {kernel: one for kernel, one in self._decoded_by.items() if one is not seat}
