# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask a compiler that is the user's own, in a child of the user's process.

The child has the function that is to be compiled already, wherever it was defined: a script, a module or a
notebook. A compiler that crashes or does not end takes nothing along.
"""

import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
#: What is said of an error.
Told = Callable[[BaseException], str]


def ask(
    questions: Sequence[Callable[[], T]], told: Sequence[Told], who: str, timeout_s: float, at_once: int
) -> list[T | str]:
    """The answer to each question, some asked at once, or a sentence on why there is none."""
    answers: list[T | str] = []
    waiting = zip(questions, told, strict=True)
    while group := list(islice(waiting, max(1, at_once))):
        children = [_started(*each) for each in group]
        end = time.monotonic() + timeout_s
        answers += [_answer(*child, end, who) for child in children]
    return answers


def version_of(*packages: str) -> str:
    """The version of the first of some packages that is installed."""
    for package in packages:
        with suppress(PackageNotFoundError):
            return version(package)
    return "of this process"


def _started(question: Callable[[], object], told: Told) -> tuple[int, int]:
    """A child that answers: its number, and where it writes."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The child does nothing but compile and end, whatever threads the user's program has.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.close(reading)
    warnings.simplefilter("ignore")
    answer: object
    try:
        answer = question()
    except BaseException as error:  # whatever it is, the parent tells it
        answer = told(error)
    with os.fdopen(writing, "wb") as file:
        file.write(pickle.dumps(answer))
    os._exit(0)


def _answer(child: int, reading: int, end: float, who: str) -> "T | str":
    """What a child wrote, once it has ended."""
    os.set_blocking(reading, False)
    content, ended = bytearray(), False
    with os.fdopen(reading, "rb", buffering=0) as file:
        while not ended and time.monotonic() < end:
            piece = file.read(1 << 20)
            if piece:
                content += piece
            ended = piece == b""
            if piece is None:
                time.sleep(0.005)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ended:
        return f"{who} took longer than the compile timeout."
    if not content:
        return f"{who}'s process ended with status {os.waitstatus_to_exitcode(status)}."
    answer: T | str = pickle.loads(bytes(content))
    return answer
