# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A JSON Schema (draft 2020-12) of frozen dataclasses: the shape that `gpuprof.schema` reads and writes.

Types give the structure, constraints in annotations the ranges, docstrings the descriptions. Unknown keys are
allowed, as they are when a file is read.
"""

import dataclasses
import inspect
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}
#: One entry of a docstring's section `Args:`, with its continuation lines.
_ARGUMENT = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """The schema of one dataclass; each class that it holds is a definition of its own.

    Args:
        kind: A dataclass whose fields have types that `gpuprof.schema.from_json` converts.

    Raises:
        TypeError: A field has a type that has no JSON form.
    """
    definitions: dict[str, Any] = {}
    schema = {"$schema": _DIALECT, "title": kind.__name__, **_object(kind, definitions)}
    return {**schema, "$defs": dict(sorted(definitions.items()))}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind is bytes:
        return {"type": "string", "contentEncoding": "base64"}
    if origin is Annotated:
        return _constrained(kind, definitions)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _union(arguments, definitions)
    if origin is tuple:
        return _list(arguments, definitions)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # a class may hold itself
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"{kind} has no JSON form")


def _constrained(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    base, *constraints = get_args(kind)
    schema = _schema(base, definitions)
    for constraint in constraints:
        schema = {**schema, **constraint.keywords()}
    return schema


def _union(choices: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    """`anyOf`, or a list of types where each choice is no more than one."""
    null = [{"type": "null"}] if type(None) in choices else []
    schemas = [_schema(choice, definitions) for choice in choices if choice is not type(None)] + null
    if any("enum" in schema for schema in schemas) and len(schemas) == 1 + len(null):
        return {"enum": [*schemas[0]["enum"], *([None] if null else [])]}
    names = [schema["type"] for schema in schemas if list(schema) == ["type"]]
    if len(names) == len(schemas):
        # Every integer is a number.
        kinds = [name for name in names if name != "integer" or "number" not in names]
        return {"type": kinds if len(kinds) > 1 else kinds[0]}
    return {"anyOf": schemas}


def _list(arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    items = [_schema(argument, definitions) for argument in arguments]
    if all(item == items[0] for item in items):
        return {"type": "array", "items": items[0], "minItems": len(items), "maxItems": len(items)}
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _object(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    text = inspect.cleandoc(kind.__doc__ or "")
    descriptions = {name: " ".join(words.split()) for name, words in _ARGUMENT.findall(text)}
    hints = get_type_hints(kind, include_extras=True)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        description = {"description": descriptions[field.name]} if field.name in descriptions else {}
        properties[field.name] = {**description, **_schema(hints[field.name], definitions)}
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
    return {
        "description": " ".join(text.split("\n\n")[0].split()),
        "type": "object",
        "properties": properties,
        "required": required,
    }
