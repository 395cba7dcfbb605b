# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Messages between a run and its worker process: one JSON object a line.

A worker is opened once, then asked for sizes or measurements one at a time; each answer is one line.
"""

import errno
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, ExitCode, GpuprofError, InputError
from gpuprof.measure.case import Case
from gpuprof.measure.options import RunOptions
from gpuprof.measure.symptoms import Question
from gpuprof.operation import ReferenceDeclaration
from gpuprof.problems.problem import Problem
from gpuprof.results import BackendName, Condition, Counter, Explanation, Measurement, SourceLine
from gpuprof.schema import from_json, to_text

T = TypeVar("T")
#: Status of a worker process that ends because an allocation failed; the last line that it prints says which.
OUT_OF_MEMORY = errno.ENOMEM
#: Kernel time of a case in each of many rounds: a median of some samples is what a round contributes.
_LEAST_SECONDS = 0.01


@dataclass(frozen=True)
class Open(RunOptions):
    """First request: which backend to open, for references of these libraries too."""

    libraries: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: RunOptions, references: Iterable[ReferenceDeclaration]) -> "Open":
        """What a worker opens for a run, of which it measures a round."""
        named = {each.name: getattr(options, each.name) for each in fields(RunOptions)}
        named["seconds_per_case"] = max(options.seconds_per_case / options.rounds, _LEAST_SECONDS)
        return cls(**named, libraries=tuple(dict.fromkeys(each.library for each in references)))


@dataclass(frozen=True, slots=True)
class OpenExecutor:
    """First request of a worker that explains or counts what a GPU ran."""

    device: Device
    seed: int
    given_arrays: str = ""
    sim_blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The backend is ready.

    Args:
        backend_reason: Why it is not what one would expect.
        memory_budget_bytes: Memory that a problem may take.
        labels: Names of all of a run's devices, where it has several: a run tells its watcher.
    """

    device: Device
    backend: BackendName
    backend_reason: str | None
    environment: Mapping[str, str]
    memory_budget_bytes: int
    bus_id: str = ""
    conditions: tuple[Condition, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """How much memory do these problems take?"""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Sized:
    """Bytes for each problem asked for."""

    bytes_needed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prepare:
    """Compile these cases in the background; no answer."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure one case, in no more memory than that; 0 for what there was when the process was ready."""

    case: Case
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Compiled:
    """On the way to `Measured`: the compiler is done with a kernel, whatever came of it."""

    kernel: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A case's measurement; `context_lost` says that the worker ends now."""

    measurement: Measurement
    context_lost: bool


@dataclass(frozen=True, slots=True)
class Explain:
    """Find out what made a case go wrong, in so many seconds."""

    case: Case
    question: Question
    seconds: float


@dataclass(frozen=True, slots=True)
class Explained:
    """What made it go wrong, or why that is not known."""

    explanation: Explanation | None
    reason: str


@dataclass(frozen=True, slots=True)
class Count:
    """Count one case that was verified elsewhere."""

    case: Case


@dataclass(frozen=True, slots=True)
class Counted:
    """A case's counts, or why there are none."""

    counters: Mapping[str, Counter]
    lines: tuple[SourceLine, ...] | None = None
    lines_reason: str | None = None
    remarks: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Build:
    """Compile one case, and say what it occupies; nothing runs."""

    case: Case


@dataclass(frozen=True, slots=True)
class Built:
    """A case with its resources, or with the reason why it cannot run."""

    measurement: Measurement


@dataclass(frozen=True, slots=True)
class Refused:
    """The request failed with a `GpuprofError`."""

    what: str
    fix: str
    exit_code: int

    def error(self) -> GpuprofError:
        """That error, as whoever asked raises it."""
        kind = InputError if self.exit_code == ExitCode.BAD_INPUT else BackendUnavailable
        return kind(self.what, fix=self.fix)


MESSAGES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Open, OpenExecutor, Opened, Size, Sized, Prepare),
        *(Measure, Compiled, Measured, Explain, Explained, Count, Counted, Build, Built, Refused),
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
