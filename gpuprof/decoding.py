# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The quick way from JSON to frozen dataclasses, for what is right; `schema` is asked about all the rest.

A compiled decoder (msgspec) checks every key and every type, and afterwards functions that are put together
once for each type look at what it does not know: the constraints of annotations. Whatever either of them
objects to is left to `schema`, whose word counts and who names the place. So this way may refuse what is
right, and never takes what `schema` would not.
"""

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import starmap
from operator import attrgetter, call
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from gpuprof.constraints import AtLeast, AtMost

T = TypeVar("T")
#: Says whether a value of the right type is as its annotations want it.
Check = Callable[[Any], bool]

#: The largest double, in either direction: beyond it no number is finite.
_LARGEST = 1.7976931348623157e308
#: What both the decoder and Python raise at a text or a value that they do not take.
_OBJECTIONS = (msgspec.MsgspecError, ValueError, RecursionError)


def loads(text: str) -> Any:
    """What `json.loads` returns, sooner.

    Raises:
        json.JSONDecodeError: It is no JSON.
        ValueError: A number has too many digits.
        RecursionError: It is nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except _OBJECTIONS:  # NaN and half of a surrogate pair are JSON to Python
        return json.loads(text)


def decoded(kind: type[T], text: bytes) -> T | None:
    """An instance of `kind` from a JSON text in UTF-8; None where that is not certainly right."""
    try:
        value = _decoder(cast(Any, kind)).decode(text)
    except _OBJECTIONS:
        return None
    return cast(T, value) if _keeps(kind, value) else None


def converted(kind: type[T], document: Any) -> T | None:
    """An instance of `kind` from a JSON value; None where that is not certainly right, or is null."""
    try:
        value = msgspec.convert(document, kind)
    except _OBJECTIONS:
        return None
    return value if _keeps(kind, value) else None


@cache
def _decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)


def _keeps(kind: Any, value: Any) -> bool:
    check = _check_of(kind)
    return check is None or check(value)


@cache
def _check_of(kind: Any) -> Check | None:
    """What the decoder leaves to be checked of a type; None where nothing is."""
    return _Checks().of(kind)


class _Checks:
    """Puts the check of a type together, each class that it holds once."""

    def __init__(self) -> None:
        self._classes: dict[Any, Check | None] = {}

    def of(self, kind: Any, constraints: tuple[Any, ...] = ()) -> Check | None:
        """The check of a type under constraints that its annotation adds; None where nothing can be wrong."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.of(arguments[0], arguments[1:])
        if origin in (Union, types.UnionType):
            return self._of_union(arguments, constraints)
        if kind in (int, float):
            return _within(constraints)
        inner = self._of_shape(kind, origin, arguments)
        outer = [constraint.complaint for constraint in constraints]
        if not outer:
            return inner
        return lambda value: (
            all(complaint(value) is None for complaint in outer) and (inner is None or inner(value))
        )

    def _of_shape(self, kind: Any, origin: Any, arguments: tuple[Any, ...]) -> Check | None:
        if origin is tuple:
            return self._of_tuple(arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            each = self.of(arguments[1])
            return each and (lambda value: all(map(each, value.values())))
        if is_dataclass(kind):
            return self._of_class(kind)
        return None

    def _of_union(self, choices: tuple[Any, ...], constraints: tuple[Any, ...]) -> Check | None:
        """Numbers are held against their constraints, and the one class that there may be against its own."""
        rest = [choice for choice in choices if choice is not type(None)]
        if float in rest and int not in rest and len(rest) > 1:
            return lambda value: type(value) is not float  # it may have been an integer, which is no choice
        if len(rest) == 1 or set(rest) == {float, int}:
            check = self.of(rest[0], constraints)
            if check is None or len(rest) == len(choices):
                return check
            return lambda value: value is None or check(value)
        number = _within(constraints)
        return lambda value: not isinstance(value, (int, float)) or number(value)

    def _of_tuple(self, items: tuple[Any, ...]) -> Check | None:
        if items[1:] == (Ellipsis,):
            each = self.of(items[0])
            return each and (lambda value: all(map(each, value)))
        checks = [self.of(item) for item in items]
        if not any(checks):
            return None
        if len(set(items)) == 1:
            same = checks[0]
            assert same is not None
            return lambda value: all(map(same, value))
        return lambda value: _all_keep(zip(checks, value, strict=True))

    def _of_class(self, kind: Any) -> Check | None:
        if kind not in self._classes:
            # A class may hold itself: then the check that is not there yet is asked for when it is needed.
            self._classes[kind] = lambda value: _keeps(kind, value)
            hints = get_type_hints(kind, include_extras=True)
            checks = {field.name: self.of(hints[field.name]) for field in fields(kind)}
            self._classes[kind] = _of_fields({name: check for name, check in checks.items() if check})
        return self._classes[kind]


def _within(constraints: Iterable[Any]) -> Check:
    """Whether a number is finite and keeps all constraints."""
    low, high, zero = -_LARGEST, _LARGEST, False
    for constraint in constraints:
        match constraint:
            case AtLeast(minimum, or_zero):
                low, zero = minimum, or_zero
            case AtMost(maximum):
                high = maximum
            case _:
                raise TypeError(f"{constraint} says nothing of a number")
    if zero:
        return lambda value: low <= value <= high or value == 0
    return lambda value: low <= value <= high


def _of_fields(checks: Mapping[str, Check]) -> Check | None:
    if not checks:
        return None
    if len(checks) == 1:
        ((name, only),) = checks.items()
        return lambda value: only(getattr(value, name))
    values, each = attrgetter(*checks), tuple(checks.values())

    return lambda value: all(map(call, each, values(value)))


def _all_keep(pairs: Iterable[tuple[Check | None, Any]]) -> bool:
    return all(starmap(lambda check, item: check is None or check(item), pairs))
