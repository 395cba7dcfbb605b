# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The published schemas of what gpuprof writes, made of its classes and their docstrings."""

import inspect
import re
from typing import Any

import msgspec

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: One entry of a docstring's section `Args:`, with its continuation lines.
_ARGUMENT = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one dataclass; each class that it holds is a definition of its own.

    Docstrings give the descriptions, with null for None: their first paragraph, and of each field its entry
    in `Args:`.
    """
    _, definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        text = re.sub(r"\bNone\b", "null", inspect.cleandoc(definition.get("description", "")))
        definition["description"] = " ".join(text.split("\n\n")[0].split())
        properties = definition["properties"]
        for name, words in _ARGUMENT.findall(text):
            properties[name] = {"description": " ".join(words.split()), **properties[name]}
        for name in properties:
            # Which versions of msgspec before 0.23 do not tell.
            if properties[name].get("type") == "object" and name not in definition["required"]:
                properties[name].setdefault("default", {})
            if name.endswith("_reason") and "description" not in properties[name]:
                properties[name] = {"description": "Why there is none.", **properties[name]}
    return {"$schema": _DIALECT, **definitions.pop(kind.__name__), "$defs": dict(sorted(definitions.items()))}
