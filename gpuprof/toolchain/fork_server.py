# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Work whose result depends on where its memory lies, done in copies of one process, which are all alike."""

import ctypes
import os
import pickle
import signal
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Barrier, Lock, Thread
from typing import Any, Generic, NoReturn, TypeVar

from gpuprof import signals
from gpuprof.machine import end_with_parent

A = TypeVar("A")
#: Parameters of `mallopt`, and threads that take what others have left.
_ARENA_MAX, _MMAP_THRESHOLD, _TAKERS = -8, -3, 16
#: Until a process that cannot get memory for its threads, or waits for a lost lock, is taken for what it is.
_PATIENCE_S = 30


def _in_new_memory(work: Callable[[], None]) -> None:
    """Do something in a thread to which glibc gives memory that nobody has used.

    Its addresses differ from those in any other process in their upper bits alone.
    """
    with suppress(AttributeError):  # of another library
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 1000)
        library.mallopt(_MMAP_THRESHOLD, 1 << 29)
    # Threads that were here have left such memory, which these take first.
    meeting = Barrier(_TAKERS + 1)

    def take() -> None:
        _allocate()
        meeting.wait()
        meeting.wait()

    def begin() -> None:
        _allocate()
        meeting.wait()
        work()

    for _ in range(_TAKERS):
        Thread(target=take, daemon=True).start()
    meeting.wait()
    last = Thread(target=begin)
    last.start()
    last.join()


def _allocate() -> None:
    """Allocate what Python does not have of its own: up to 512 bytes it has."""
    bytearray(1024)


class ForkServer(Generic[A]):
    """Answers each question in a copy of one process, which answers none itself.

    Args:
        prepare: What that process does once, for all answers.
        answer: Takes a question's parts.
    """

    def __init__(self, prepare: Callable[[], object], answer: Callable[..., A]) -> None:
        self._prepare = prepare
        self._answer = answer
        self._asked: socket.socket | None = None
        self._begin_anew()
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """Forget whom a parent asks: a child has other limits, and no thread that would free a lock."""
        if self._asked:
            self._asked.close()
        self._starting = Lock()
        self._asked = None
        self._has_answered = False

    def ask(self, *question: Any) -> A | None:
        """Return the answer, or raise what it raised; None where no copy is had, or ends without one."""
        try:
            ours, theirs = socket.socketpair()
            with ours, ours.makefile("rwb") as file:
                with theirs:
                    self._send(theirs.fileno())
                pickle.dump(question, file)
                file.flush()
                answer: A
                answer, error = pickle.load(file)
                self._has_answered = True
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        if error is not None:
            raise error
        return answer

    def _send(self, asker: int) -> None:
        """Say who asks, and in which folder, be it gone or locked; one lost after answers begins anew."""
        here = os.open("/proc/self/cwd", os.O_PATH)
        try:
            with self._starting:
                try:
                    socket.send_fds(self._origin(), [b"?"], [asker, here])
                except OSError:
                    if not (self._has_answered and self._asked):
                        raise
                    self._asked.close()
                    self._has_answered, self._asked = False, None
                    socket.send_fds(self._origin(), [b"?"], [asker, here])
        finally:
            os.close(here)

    def _origin(self) -> socket.socket:
        if self._asked is None:
            ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            with warnings.catch_warnings():
                # The child touches nothing that other threads hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if not child:
                self._serve(theirs)
            theirs.close()
            self._asked = ours
        return self._asked

    def _answered(self, question: tuple[Any, ...]) -> tuple[A | None, Exception | None]:
        try:
            return self._answer(*question), None
        except Exception as error:
            return None, error

    def _serve(self, asked: socket.socket) -> NoReturn:
        """Copy this process for each question, until nobody can ask any more."""
        try:
            os.closerange(3, asked.fileno())
            os.closerange(asked.fileno() + 1, 1 + max(map(int, os.listdir("/proc/self/fd"))))
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            # Ctrl-C and its like are the parent's to handle: without it this process ends.
            signals.disregard()
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_PATIENCE_S)
            warnings.simplefilter("ignore", DeprecationWarning)
            _in_new_memory(partial(self._copy_for_each, asked))
        finally:
            os._exit(0)

    def _copy_for_each(self, asked: socket.socket) -> None:
        try:
            self._prepare()
            signal.alarm(0)
            own = os.getpid()
            while numbers := socket.recv_fds(asked, 1, 2)[1]:
                if not os.fork():
                    asked.close()  # else whoever asks a lost process would not see that it is
                    end_with_parent(own)
                    with socket.socket(fileno=numbers[0]) as theirs, theirs.makefile("rwb") as file:
                        with suppress(PermissionError):  # where nobody finds a file either
                            os.fchdir(numbers[1])
                        pickle.dump(self._answered(pickle.load(file)), file)
                    break
                for number in numbers:
                    os.close(number)
        finally:
            os._exit(0)
