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
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

#: What is said of an error.
Told = Callable[[BaseException], str]


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """What a compiler made of a function, or why nothing.

    Args:
        taken: Of Triton's: the parameters that the machine code takes, in order; others have become part of
            the code.
        ctas: Blocks of a program, which are a cluster.
        scratch_bytes: Of a block, for each hidden pointer that Triton adds to them.
    """

    ptx: str = ""
    cubin: bytes = b""
    entry: str = ""
    threads: int = 0
    shared_bytes: int = 0
    taken: tuple[str, ...] = ()
    ctas: int = 1
    scratch_bytes: tuple[int, ...] = ()
    error: str = ""


Question = Callable[[], FunctionCode]


def ask(
    questions: Sequence[Question], told: Sequence[Told], who: str, timeout_s: float, at_once: int
) -> list[FunctionCode]:
    """The answer to each question, some asked at once."""
    answers: list[FunctionCode] = []
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


def _started(question: Question, told: Told) -> tuple[int, int]:
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
    try:
        answer = question()
    except BaseException as error:  # whatever it is, the parent tells it
        answer = FunctionCode(error=told(error))
    with os.fdopen(writing, "wb") as file:
        file.write(pickle.dumps(answer))
    os._exit(0)


def _answer(child: int, reading: int, end: float, who: str) -> FunctionCode:
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
        return FunctionCode(error=f"{who} took longer than the compile timeout.")
    if not content:
        ended_with = os.waitstatus_to_exitcode(status)
        return FunctionCode(error=f"{who}'s process ended with status {ended_with}.")
    answer: FunctionCode = pickle.loads(bytes(content))
    return answer
