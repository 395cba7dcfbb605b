# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Records to JSON and back, held to their types.

msgspec checks every key, type and constraint (`Meta`), so that a damaged or foreign file is refused with the
path of the offending value instead of failing later. Unknown keys are ignored, so that added fields stay
readable.
"""

import json
import math
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from gpuprof.text import cut

T = TypeVar("T")

# Ranges of the numbers that a results file may hold: what lies outside is no measurement. They are wide, so
# that nothing real is ever refused, and still narrow enough that a reader may divide by any that is not 0,
# and multiply several, without leaving the range of a double.

#: Every double above 4e-21 is a multiple of it, and of those below, which measure nothing, only few are.
_STEP = 2.0**-120
#: Any integer of 64 bits.
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
#: Events, bytes, samples, or a limit of a device.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
#: A side of a problem, a block or a grid, or what there is at least one of: up to CUDA's largest grid extent.
Extent = Annotated[int, Meta(ge=1, le=2**31 - 1)]
#: A time, a rate or a clock that others are divided by, in whatever unit its name ends with.
Positive = Annotated[float, Meta(ge=1e-18, le=1e18)]
#: The same where it may be 0, and a share in percent, which may exceed 100.
NonNegative = Annotated[float, Meta(ge=0.0, le=1e30, multiple_of=_STEP)]
#: An error or its bound, which a wrong kernel may drive as far as a double goes.
Error = Annotated[float, Meta(ge=0.0)]
#: What a counter counted, scaled up from a sample perhaps.
Tally = Annotated[int, Meta(ge=0, le=2**63 - 1)] | Annotated[float, Meta(ge=0.0, le=1e30, multiple_of=_STEP)]

#: What msgspec raises at a text or a value that it does not take.
_OBJECTIONS = (msgspec.MsgspecError, ValueError, RecursionError)
#: Most characters of a message that quotes a file.
_MOST_QUOTED = 240


class SchemaError(ValueError):
    """A JSON value that does not have the shape of its type; the message begins with where it stands."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'top level'}: {cut(problem, _MOST_QUOTED)}")


def to_text(value: Any, **how: Any) -> str:
    """The JSON text of records, tuples and mappings, bytes in base 64; `how` is for `json.dumps`.

    Raises:
        ValueError: A float is NaN or infinite; JSON has neither, and no measurement may be one.
    """
    return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), allow_nan=False, **how)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):  # of NumPy, such as a sample
        return float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_json(value: Any) -> Any:
    """The same as plain values."""
    return json.loads(to_text(value))


def loads(text: str | bytes) -> Any:
    """The plain values of a JSON text.

    Raises:
        json.JSONDecodeError: It is no JSON.
        ValueError: A number is not finite, or has too many digits.
        RecursionError: It is nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except _OBJECTIONS:
        # Half of a surrogate pair, as a path's stray bytes become; or no JSON, in Python's words.
        return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return number


def decoded(kind: type[T], text: bytes) -> T | None:
    """An instance of `kind` from a JSON text in UTF-8, without plain values between; None where it is none.

    Of what no field of `kind` is named after, only the shape is looked at.
    """
    try:
        found: T = _decoder(cast(Hashable, kind)).decode(text)
    except _OBJECTIONS:
        return None
    return found


@cache
def _decoder(kind: Hashable) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(cast(Any, kind))


def from_json(kind: type[T], value: Any) -> T:
    """An instance of a record, or of any type that its fields may have, from what `loads` returns.

    Raises:
        SchemaError: A key is missing, or a value has the wrong type or breaks a constraint of its type.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise SchemaError(path.strip(".`"), problem[:1].lower() + problem[1:]) from error


def complaint_about(kind: Any, value: Any) -> str | None:
    """What is wrong with a value of an annotated type, as the rest of a sentence; None when nothing is."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return f"is {cut(repr(value), 80)}: {str(error)[:1].lower()}{str(error)[1:]}"
    return None
