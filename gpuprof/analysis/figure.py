# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a figure is: its names, its unit, and how it follows from a case, or why it does not exist."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.kinds import on_host
from gpuprof.analysis.limits import limits_of
from gpuprof.analysis.speed import speed_of, why_no_speed
from gpuprof.counters import Better
from gpuprof.results import Measurement, Run

_NO_REASON = "no reason was recorded"


class Standing(Protocol):
    """What figures read of a rung: how many times as fast it is as others; None where nothing compares."""

    @property
    def gain(self) -> float | None: ...

    @property
    def vs_reference(self) -> float | None: ...

    @property
    def vs_fastest(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Subject:
    """What a figure is read from: a case of a run, and its rung where it is looked at as one."""

    run: Run
    case: Measurement
    rung: Standing | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure of one subject; its value is None where it does not exist, and `reason` says why."""

    value: float | str | None
    reason: str = ""


Read = Callable[[Subject], Reading]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; its key is a stable name, a counter's own for a counter.

    The unit is as `numbers.in_unit` takes it, or `text`. `telling` says how much more a change of it
    explains than one that merely follows from it.
    """

    key: str
    label: str
    group: str
    short: str
    phrase: str
    unit: str
    meaning: str
    read: Read
    better: Better = "neither"
    telling: float = 1.0

    @property
    def is_text(self) -> bool:
        """True for words, which align left."""
        return self.unit == "text"

    def value(self, subject: Subject) -> float | None:
        """The figure as a number; None where it does not exist or is not a number."""
        value = self.read(subject).value
        return value if isinstance(value, int | float) else None

    def write(self, value: float, digits: int = 3) -> str:
        return numbers.in_unit(value, self.unit, digits)


def _reading(value: float | str | None, *reasons: str | None) -> Reading:
    """The value, or the first reason that there is for having none."""
    return Reading(value) if value is not None else Reading(None, next(filter(None, reasons), _NO_REASON))


#: What a figure may be read from: the object, and where there is none, why.
_Held = tuple[Any, tuple[str | None, ...]]


def _speed(subject: Subject) -> _Held:
    speed = speed_of(subject.run, subject.case)
    return speed, () if speed else (why_no_speed(subject.run, subject.case),)


def _rung(subject: Subject) -> _Held:
    """Only the case that stands for its rung is compared with others."""
    speed, why = _speed(subject)
    return (subject.rung, ("another case represents the kernel",)) if speed else (None, why)


_SOURCES: dict[str, Callable[[Subject], _Held]] = {
    "speed": _speed,
    "rung": _rung,
    "resources": lambda of: (of.case.resources, (of.case.resources_reason, of.case.reason)),
    "occupancy": lambda of: (of.case.occupancy, (of.case.occupancy_reason, of.case.reason)),
    "verification": lambda of: (of.case.verification, (of.case.verification_reason, of.case.reason)),
    "model": lambda of: (of.case.model, (of.case.model_reason, of.case.reason)),
    "limits": lambda of: (
        limits_of(of.run, of.case),
        (of.case.bounds_reason, of.case.reason, "exact counts are missing"),
    ),
}


def of_path(path: str, absent: str) -> Read:
    """A figure that an object of a case holds, by path: `speed.timing.p05_us`; `absent` is why it may not."""
    name, _, rest = path.partition(".")
    source, get = _SOURCES[name], attrgetter(rest)

    def read(subject: Subject) -> Reading:
        held, why = source(subject)
        if held is None:
            return _reading(None, *why)
        value = get(held)
        return Reading(value) if value is not None else _reading(None, *_reasons(name, held, subject), absent)

    return read


def _reasons(name: str, held: Any, subject: Subject) -> tuple[str | None, ...]:
    """Why an object that is there does not hold a figure, where that depends on the case."""
    match name:
        case "speed" if on_host(subject.run, subject.case):
            return ("it ran on the CPU",)
        case "occupancy":
            return (held.achieved_reason,)
        case "verification":
            return (held.detail,)
        case "limits":
            return (why_no_speed(subject.run, subject.case),)
    return ()


def of_counts(read: Callable[[Measurement], float | None]) -> Read:
    """A figure made of several counters."""
    return lambda of: _reading(
        read(of.case), of.case.counters_reason, of.case.reason, "this kernel has no such counter"
    )


def of_counter(name: str) -> Read:
    """One counter."""

    def read(subject: Subject) -> Reading:
        case = subject.case
        counter = counts.find(case, name)
        if counter is None:
            return _reading(None, case.counters_reason, case.reason, "this case has no such counter")
        return _reading(counter.value, counter.reason)

    return read


def interval(subject: Subject) -> Reading:
    """Half width of the median's 95 % confidence interval, in percent."""
    speed, why = _speed(subject)
    width = speed.timing.ci95_rel if speed else None
    return _reading(None if width is None else 100.0 * width, *why, "too few samples for an interval")


def sample_count(subject: Subject) -> Reading:
    """Samples of the cold timing."""
    speed, why = _speed(subject)
    return _reading(len(speed.timing.samples_us) if speed else None, *why)


def published(subject: Subject) -> Reading:
    """The time that a kernel's authors published for this size."""
    case = subject.case
    for figure in kernel_record(subject.run, case.kernel).published:
        if figure.size == case.problem.label and figure.time_ms is not None:
            return Reading(figure.time_ms * 1e3)
    return _reading(None, "its authors published no time for this size")


def of_grid(read: Callable[[Subject], float | None]) -> Read:
    """A figure of the grid, which is worked out of what was compiled."""
    return lambda of: _reading(read(of), of.case.resources_reason, of.case.occupancy_reason, of.case.reason)
