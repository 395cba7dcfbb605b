# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The quick way from JSON to frozen dataclasses, for what is right; `schema` is asked about all the rest.

A compiled decoder (msgspec) checks every key and every type. An expression that is put together once for each
type then looks at what the decoder does not know: the constraints of annotations. Whatever either of them
objects to is left to `schema`, whose word counts and who names the place. So this way may refuse what is
right, and never takes what `schema` would not.
"""

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
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
    """An instance of `kind` from a JSON text in UTF-8; None where that is not certainly right.

    Of what no field of `kind` is named after, only the shape is looked at.
    """
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
    return _check_of(kind)(value)


@cache
def _check_of(kind: Any) -> Check:
    """Whether a value of a type keeps what the decoder does not look at: one expression, compiled once."""
    return _Checks().function(kind)


class _Checks:
    """Puts the check of a type together as an expression of Python, for each class that it holds a function.

    A run has thousands of numbers: a comparison within an expression takes a fifth of what calling a function
    for it does.
    """

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"all": all, "map": map}
        self._classes: dict[Any, str] = {}

    def function(self, kind: Any) -> Check:
        """The check of a type as a function."""
        return self._compiled(self._of(kind, "value") or "True")

    def _compiled(self, expression: str) -> Check:
        return cast(Check, eval(f"lambda value: {expression}", self._names))

    def _named(self, thing: Any) -> str:
        """A name by which expressions know a function or a value."""
        name = f"known_{len(self._names)}"
        self._names[name] = thing
        return name

    def _of(self, kind: Any, it: str, constraints: tuple[Any, ...] = ()) -> str:
        """What must hold of `it` under constraints that an annotation adds; empty where nothing can be wrong.

        Args:
            kind: Its type.
            it: The expression by which it is known.
            constraints: From around the type.
        """
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._of(arguments[0], it, arguments[1:])
        if origin in (Union, types.UnionType):
            return self._of_union(arguments, it, constraints)
        if kind in (int, float):
            return self._within(it, constraints)
        parts = [f"{self._named(constraint.complaint)}({it}) is None" for constraint in constraints]
        parts.append(self._of_shape(kind, it))
        return " and ".join(filter(None, parts))

    def _of_shape(self, kind: Any, it: str) -> str:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is tuple and arguments[1:] != (Ellipsis,):
            parts = [self._of(item, f"{it}[{place}]") for place, item in enumerate(arguments)]
            return " and ".join(filter(None, parts))
        if origin is tuple:
            return self._of_each(arguments[0], it)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._of_each(arguments[1], f"{it}.values()")
        if is_dataclass(kind):
            name = self._of_class(kind)
            return name and f"{name}({it})"
        return ""

    def _of_each(self, kind: Any, items: str) -> str:
        each = self._of(kind, "value")
        return each and f"all(map({self._named(self._compiled(each))}, {items}))"

    def _of_union(self, choices: tuple[Any, ...], it: str, constraints: tuple[Any, ...]) -> str:
        """Numbers are held against their constraints, and the one class that there may be against its own."""
        rest = [choice for choice in choices if choice is not type(None)]
        if float in rest and int not in rest and len(rest) > 1:
            # It may have been an integer, which is none of the choices.
            return f"{it}.__class__ is not {self._named(float)}"
        if len(rest) == 1 or set(rest) == {float, int}:
            found = self._of(rest[0], it, constraints)
            return f"({it} is None or {found})" if found and len(rest) < len(choices) else found
        number = self._named((int, float))
        return f"(not {self._named(isinstance)}({it}, {number}) or {self._within(it, constraints)})"

    def _of_class(self, kind: Any) -> str:
        """The name of a class's check; empty where it needs none."""
        if kind not in self._classes:
            # A class may hold itself: then its check is asked for when it is there.
            self._classes[kind] = self._named(lambda value: _keeps(kind, value))
            hints = get_type_hints(kind, include_extras=True)
            parts = [self._of(hints[field.name], f"value.{field.name}") for field in fields(kind)]
            whole = " and ".join(filter(None, parts))
            self._classes[kind] = whole and self._named(self._compiled(whole))
        return self._classes[kind]

    def _within(self, it: str, constraints: Iterable[Any]) -> str:
        """That a number is finite and keeps all constraints."""
        low, high, zero = -_LARGEST, _LARGEST, False
        for constraint in constraints:
            match constraint:
                case AtLeast(minimum, or_zero):
                    low, zero = minimum, or_zero
                case AtMost(maximum):
                    high = maximum
                case _:
                    raise TypeError(f"{constraint} says nothing of a number")
        return f"({low!r} <= {it} <= {high!r}{f' or {it} == 0' if zero else ''})"
