# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a value must be besides its type: constraints in annotations, such as `Annotated[int, AtLeast(1)]`."""

import dataclasses
import re
from typing import Any, Protocol, get_args

from gpuprof.text import cut

#: Characters of a foreign value, or of where it stands, that a message quotes.
MOST_QUOTED = 80


class Constraint(Protocol):
    """One thing that a value must be."""

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a value of the right type; None when nothing is."""
        ...

    def keywords(self) -> dict[str, Any]:
        """The constraint in the words of JSON Schema."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class AtLeast:
    """A number that is not below `minimum`, unless it is 0 where `or_zero`."""

    minimum: float
    or_zero: bool = False

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a number; None when nothing is."""
        if value >= self.minimum or (self.or_zero and value == 0):
            return None
        return f"must be {'0 or ' if self.or_zero else ''}at least {self.minimum:,}, not {quoted(value)}"

    def keywords(self) -> dict[str, Any]:
        """The constraint in the words of JSON Schema."""
        return (
            {"anyOf": [{"const": 0}, {"minimum": self.minimum}]}
            if self.or_zero
            else {"minimum": self.minimum}
        )


@dataclasses.dataclass(frozen=True, slots=True)
class AtMost:
    """A number that is not above `maximum`."""

    maximum: float

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a number; None when nothing is."""
        return f"must be at most {self.maximum:,}, not {quoted(value)}" if value > self.maximum else None

    def keywords(self) -> dict[str, Any]:
        """The constraint in the words of JSON Schema."""
        return {"maximum": self.maximum}


@dataclasses.dataclass(frozen=True, slots=True)
class Matches:
    """A text that a regular expression describes as a whole.

    Args:
        pattern: The expression, which must take linear time.
        example: A text that it matches, for the message.
    """

    pattern: str
    example: str

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a text; None when nothing is."""
        matches = re.fullmatch(self.pattern, value)
        return None if matches else f"must be written like {self.example}, not {quoted(value)}"

    def keywords(self) -> dict[str, Any]:
        """The constraint in the words of JSON Schema."""
        return {"pattern": f"^(?:{self.pattern})$"}


@dataclasses.dataclass(frozen=True, slots=True)
class NotEmpty:
    """A list with something in it."""

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a list; None when nothing is."""
        return None if value else "must not be empty"

    def keywords(self) -> dict[str, Any]:
        """The constraint in the words of JSON Schema."""
        return {"minItems": 1}


def complaint_about(kind: Any, value: Any) -> str | None:
    """What a value of the right type breaks among the constraints of an annotated type; None when nothing.

    Args:
        kind: For example `Annotated[int, AtLeast(1)]`.
        value: A value of the type that is annotated.
    """
    constraints: tuple[Constraint, ...] = get_args(kind)[1:]
    return next(filter(None, (constraint.complaint(value) for constraint in constraints)), None)


def quoted(value: Any) -> str:
    """A foreign value within a message, which it must not fill."""
    return cut(repr(value[:MOST_QUOTED] if isinstance(value, str) else value), MOST_QUOTED)
