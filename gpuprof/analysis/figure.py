# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a figure is: its names, its unit, and how it is read from a case."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gpuprof.analysis import numbers
from gpuprof.counters import Better
from gpuprof.results import Measurement, Run


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
    """What a figure is read from.

    Args:
        run: The run.
        case: The case.
        rung: The rung that the case stands for, where it is looked at as one.
    """

    run: Run
    case: Measurement
    rung: Standing | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure of one subject.

    Args:
        value: The figure; None where it does not exist.
        reason: Why it does not.
    """

    value: float | str | None
    reason: str = ""


Read = Callable[[Subject], Reading]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Args:
        key: Stable name; that of a counter for a counter.
        label: Heading of its own column.
        group: Heading that it shares with its neighbours.
        short: Name for a narrow column.
        phrase: Name within a sentence.
        unit: As `numbers.in_unit` takes it; `text` for words.
        meaning: One sentence for the reader.
        read: How it follows from a measurement.
        better: Which direction is good for the same work.
        telling: How much more a change of it explains than one that merely follows from it.
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
        """A value of it in human units."""
        return numbers.in_unit(value, self.unit, digits)
