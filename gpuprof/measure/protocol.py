# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Messages between a run and its workers, and what a worker is, wherever its process runs.

A worker is opened once, then asked for sizes or measurements one at a time. A message is a JSON object on one
line, between processes of this machine as on the way to one of a cluster's: a worker answers the same there,
and its end means the same.
"""

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from gpuprof.backends.base import Findings
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, CaseSkipped, ExitCode, GpuprofError, InputError
from gpuprof.measure.case import Case, resolve
from gpuprof.operation import ReferenceDeclaration
from gpuprof.options import RunOptions
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import BackendName, Condition, Explanation, Measurement
from gpuprof.schema import from_json, to_text
from gpuprof.text import cut

#: Status of a worker process that ends because an allocation failed; the last line that it prints says which.
OUT_OF_MEMORY = errno.ENOMEM
#: Kernel time of a case in each of many rounds: a median of some samples is what a round contributes.
_LEAST_SECONDS = 0.01


@dataclass(frozen=True)
class Open(RunOptions):
    """First request: which backend to open, for references of these libraries too.

    Args:
        executes: The card that the executor is to stand for, to count or explain what another process runs,
            in the place of the backend that `device` names.
    """

    libraries: tuple[str, ...] = ()
    executes: Device | None = None

    @classmethod
    def of(cls, options: RunOptions, references: Iterable[ReferenceDeclaration]) -> "Open":
        """What a worker opens for a run, of which it measures a round."""
        named = {each.name: getattr(options, each.name) for each in fields(RunOptions)}
        named["seconds_per_case"] = max(options.seconds_per_case / options.rounds, _LEAST_SECONDS)
        return cls(**named, libraries=tuple(dict.fromkeys(each.library for each in references)))


class Opened(Struct, frozen=True):
    """The backend is ready. Which GPU it is was told before, as `Device`."""

    device: Device
    backend: BackendName
    backend_reason: str | None
    environment: Mapping[str, str]
    memory_budget_bytes: int
    bus_id: str = ""
    conditions: tuple[Condition, ...] = ()


class Size(Struct, frozen=True):
    """How much memory do these problems take?"""

    problems: tuple[Problem, ...]


class Sized(Struct, frozen=True):
    """Bytes for each problem asked for, and what of the environment shows when all is ready to measure."""

    bytes_needed: tuple[int, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


class Reach(Struct, frozen=True):
    """What does the device reach? Answered by the device."""


class Prepare(Struct, frozen=True):
    """Compile these cases in the background; no answer."""

    cases: tuple[Case, ...]

    @classmethod
    def of(cls, cases: Iterable[Case], device: Device) -> "Prepare":
        """What runs for these cases, under their names: kernels that were not chosen need no sending."""
        found = []
        for case in cases:
            if not case.is_reference:
                with suppress(CaseSkipped):  # it is told when the case's turn comes
                    found.append(replace(resolve(case, device)[0], name=case.name))
        return cls(tuple(found))


class Measure(Struct, frozen=True):
    """Measure one case, in no more memory than that; 0 for what there was when the process was ready."""

    case: Case
    memory_bytes: int = 0


class Compiled(Struct, frozen=True):
    """On the way to `Measured`: the compiler is done with the kernel, whatever came of it."""


class Measured(Struct, frozen=True):
    """A case's measurement; whether the worker ends now; names of cases that are still compiled there."""

    measurement: Measurement
    context_lost: bool
    compiling: tuple[str, ...] = ()


#: What a device showed: a kernel that it stopped, one that did not end, a wrong result.
Symptom = Literal["fault", "hang", "wrong"]


class Explain(Struct, frozen=True):
    """Find out what made a case go wrong, in so many seconds.

    Args:
        output: The array whose element was wrong first; empty where that is not known.
        as_run: Whether the executor itself ran the case, so that the same blocks show it again.
    """

    case: Case
    symptom: Symptom
    seconds: float
    output: str = ""
    element: int = 0
    as_run: bool = False


class Explained(Struct, frozen=True):
    """What made it go wrong, or why that is not known."""

    explanation: Explanation | None
    reason: str


class Count(Struct, frozen=True):
    """Count one case that was verified elsewhere: `Findings`, with a reason where nothing is counted."""

    case: Case


class Build(Struct, frozen=True):
    """Compile one case, and say what it occupies, or why it cannot run: `Measured`, though nothing runs."""

    case: Case


@dataclass(eq=False)
class WorkerLost(Exception):
    """A worker that gave no answer, also in the place of one; the text says how.

    Args:
        how: It `died`; it `vanished` with its machine or the connection, so that the case need not be to
            blame; or it was killed when its time was over, perhaps while it was still `compiling`.
        taken: Whether a signal ended it that comes from outside, be it for want of memory.
    """

    text: str
    how: Literal["died", "vanished", "timeout"] = "died"
    compiling: bool = False
    taken: bool = False
    out_of_memory: bool = False

    def __str__(self) -> str:
        return self.text


class PlaceLost(Exception):
    """No worker can be had any more where there was one; the text says why, as a clause."""


class Refused(Struct, frozen=True):
    """In the place of an answer: what a user has to mend, in the request or where it was to be answered."""

    what: str
    fix: str
    is_input: bool

    @classmethod
    def by(cls, error: GpuprofError) -> "Refused":
        return cls(error.what, error.fix, error.exit_code == ExitCode.BAD_INPUT)


class Worker(Protocol):
    """A process with an open backend, wherever it is."""

    @property
    def opened(self) -> Opened: ...

    def ask(self, request: Any, timeout_s: float, *, compile_s: float | None = None) -> Any:
        """Send a request and wait for its answer.

        Args:
            compile_s: Longest that the compiler may take before that, where it is asked too.

        Raises:
            GpuprofError: The worker refused the request.
            WorkerLost: It ended instead, or did not answer in time and has been killed.
            KeyboardInterrupt: The run was asked to end.
        """
        ...

    def tell(self, request: Any) -> None:
        """Send a request that has no answer.

        Raises:
            WorkerLost: The worker is gone.
        """
        ...

    def close(self) -> None: ...


#: A place where worker processes can be had, one at a time. Opening one there raises `GpuprofError` where the
#: backend cannot be opened, `PlaceLost` where there is no such place any more.
Transport = Callable[[Open], Worker]

MESSAGES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Open, Opened, Size, Sized, Prepare, Reach, Device),
        *(Measure, Compiled, Measured, Explain, Explained, Count, Findings, Build, Refused, WorkerLost),
    )
}


def encode(message: Any) -> str:
    """One line of text, newline included."""
    return to_text({"type": type(message).__name__, "body": message}) + "\n"


def decode(line: str) -> Any:
    """The message of one line."""
    match json.loads(line):
        case {"type": str(name), "body": body} if name in MESSAGES:
            return from_json(MESSAGES[name], body)
    raise ValueError(f"no message: {line!r}")


def answer_of(line: str) -> Any:
    """The answer that a line holds."""
    try:
        answer = decode(line)
    except ValueError as error:
        raise WorkerLost(f"its reply is invalid ({cut(str(error), 200)})") from error
    if isinstance(answer, WorkerLost):
        raise answer
    if isinstance(answer, Refused):
        raise (InputError if answer.is_input else BackendUnavailable)(answer.what, fix=answer.fix)
    return answer
