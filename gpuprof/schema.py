# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Strict conversion between frozen dataclasses and JSON values.

Reading checks every key and every type, so that a damaged or foreign file is refused with the path of the
offending value instead of failing later. Unknown keys are ignored, so that added fields stay readable.
"""

import base64
import dataclasses
import math
import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gpuprof import decoding
from gpuprof.constraints import MOST_QUOTED, complaint_about, quoted
from gpuprof.text import cut

T = TypeVar("T")
_SCALARS = frozenset((bool, int, float, str))


class SchemaError(ValueError):
    """A JSON value that does not have the shape of its type; `path` says where it stands."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{cut(path, 3 * MOST_QUOTED) or 'top level'}: {problem}")
        self.path = path


#: Kinds of values that JSON has too. Most values are of these, so that they are looked for first.
_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


#: Names of the fields of each class met; none for one that is no dataclass.
_FIELDS: dict[type, tuple[str, ...]] = {}


def _field_names(kind: type) -> tuple[str, ...]:
    found = _FIELDS.get(kind)
    if found is None:
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        found = _FIELDS[kind] = tuple(field.name for field in fields)
    return found


def to_json(value: Any) -> Any:
    """Turn dataclasses, tuples and mappings into plain JSON values, bytes into base 64.

    Raises:
        ValueError: A float is NaN or infinite; JSON has neither, and no measurement may be one.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON form")
        return value
    if names := _field_names(kind):
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        # Samples, which are most of a run.
        if set(map(type, value)) == {float} and all(map(math.isfinite, value)):
            return list(value)
        return [to_json(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    return value


def from_json(kind: type[T], value: Any, path: str = "") -> T:
    """Build an instance of `kind` from a JSON value.

    Args:
        kind: A dataclass, or any type its fields may have.
        value: What `json.load` returned.
        path: Where the value stands in the document, for messages.

    Raises:
        SchemaError: A key is missing, or a value has the wrong type or breaks a constraint of its type.
    """
    found = decoding.converted(kind, value)
    if found is None:
        found = _convert(kind, value, path)
    return cast(T, found)


@cache
def _field_types(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _convert(kind: Any, value: Any, path: str) -> Any:
    if kind is Any:
        return value
    if isinstance(value, (int, float)) and not _is_finite(value):
        raise SchemaError(path, "not a finite number")
    if kind in _SCALARS:  # first, because a run has a million samples
        return _convert_scalar(kind, value, path)
    origin = get_origin(kind)
    if origin is Annotated:
        return _convert_constrained(kind, value, path)
    if origin is Literal:
        if value not in get_args(kind):
            raise SchemaError(path, f"{quoted(value)} is none of {', '.join(map(repr, get_args(kind)))}")
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(kind, value, path)
    if origin is tuple:
        return _convert_tuple(get_args(kind), value, path)
    if origin in (dict, Mapping) or getattr(origin, "__name__", "") == "Mapping":
        if not isinstance(value, dict):
            raise SchemaError(path, f"expected an object, found {_name(value)}")
        item_kind = get_args(kind)[1]
        return {key: _convert(item_kind, item, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _convert_dataclass(kind, value, path)
    return _convert_scalar(kind, value, path)


def _convert_constrained(kind: Any, value: Any, path: str) -> Any:
    converted = _convert(get_args(kind)[0], value, path)
    complaint = complaint_about(kind, converted)
    if complaint:
        raise SchemaError(path, complaint)
    return converted


def _convert_scalar(kind: Any, value: Any, path: str) -> Any:
    if kind is bytes and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError as error:
            raise SchemaError(path, "not base 64") from error
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise SchemaError(path, f"expected {kind.__name__}, found {_name(value)}")
    return value


def _convert_tuple(arguments: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise SchemaError(path, f"expected a list, found {_name(value)}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_convert(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(value))
    if len(value) != len(arguments):
        raise SchemaError(path, f"expected {len(arguments)} items, found {len(value)}")
    return tuple(
        _convert(kind, item, f"{path}[{i}]")
        for i, (kind, item) in enumerate(zip(arguments, value, strict=True))
    )


def _convert_union(kind: Any, value: Any, path: str) -> Any:
    choices = get_args(kind)
    if value is None and type(None) in choices:
        return None
    choices = tuple(choice for choice in choices if choice is not type(None))
    if len(choices) == 1:
        return _convert(choices[0], value, path)
    for choice in choices:
        if isinstance(choice, type) and type(value) is choice:
            return value
    raise SchemaError(path, f"expected one of {', '.join(getattr(c, '__name__', str(c)) for c in choices)}")


def _convert_dataclass(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise SchemaError(path, f"expected an object, found {_name(value)}")
    hints = _field_types(kind)
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        where = f"{path}.{field.name}" if path else field.name
        if field.name in value:
            arguments[field.name] = _convert(hints[field.name], value[field.name], where)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise SchemaError(where, "missing")
    return kind(**arguments)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _name(value: Any) -> str:
    return "null" if value is None else type(value).__name__
