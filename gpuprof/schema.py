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
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class SchemaError(ValueError):
    """A JSON value that does not have the shape of its type; `path` says where it stands."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'top level'}: {problem}")
        self.path = path


def to_json(value: Any) -> Any:
    """Turn dataclasses, tuples and mappings into plain JSON values, bytes into base 64.

    Raises:
        ValueError: A float is NaN or infinite; JSON has neither, and no measurement may be one.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        result = {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
        op = getattr(type(value), "op", None)
        return {"op": op, **result} if isinstance(op, str) else result
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
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
        SchemaError: A key is missing or a value has the wrong type.
    """
    result: T = _convert(kind, value, path)
    return result


@cache
def _field_types(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _convert(kind: Any, value: Any, path: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if isinstance(value, (int, float)) and not _is_finite(value):
        raise SchemaError(path, "not a finite number")
    if origin is Literal:
        if value not in get_args(kind):
            raise SchemaError(path, f"{value!r} is none of {', '.join(map(repr, get_args(kind)))}")
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
    tagged = {getattr(choice, "op", None): choice for choice in choices if dataclasses.is_dataclass(choice)}
    if len(tagged) > 1:
        tag = value.get("op") if isinstance(value, dict) else None
        if not isinstance(tag, str) or tag not in tagged:
            raise SchemaError(path, f"op is {tag!r}, not one of {', '.join(map(repr, tagged))}")
        return _convert(tagged[tag], value, path)
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
