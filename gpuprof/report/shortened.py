# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as it is shown: every text cut to what a page can hold, so that none drowns the rest.

Renderers work on this copy; an HTML report's data block keeps every character.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from gpuprof.results import Run
from gpuprof.text import cut, cut_lines

#: Texts that are read line by line may be longer, by the name of their field.
_LONGEST = {"source": 400_000, "log": 20_000}
_MOST_LINES = 10_000


def shortened(run: Run) -> Run:
    """The run with each text cut that is too long, and with a note of how much of it is left out."""
    result: Run = _shortened(run)
    return result


#: Kinds of values that hold no text; most values are of these, so that they are looked for first.
_PLAIN = frozenset({float, int, bool, type(None)})


def _shortened(value: Any) -> Any:
    """The value itself where no text in it is too long."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, tuple):
        if value and type(value[0]) in _PLAIN:  # samples and extents, which are many
            return value
        items = tuple(map(_shortened, value))
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, Mapping):
        pairs = {_shortened(key): _shortened(item) for key, item in value.items()}
        return pairs if any(pairs.get(key) is not item for key, item in value.items()) else value
    if names := _fields(kind):
        return _with_shortened_fields(value, names)
    return value


#: Names of the fields of each class met; none for one that is no dataclass.
_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(kind: type) -> tuple[str, ...]:
    found = _FIELDS.get(kind)
    if found is None:
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        found = _FIELDS[kind] = tuple(field.name for field in fields)
    return found


def _with_shortened_fields(value: Any, names: tuple[str, ...]) -> Any:
    changed = {}
    for name in names:
        old = getattr(value, name)
        if type(old) in _PLAIN:
            continue
        if name in _LONGEST and isinstance(old, str):
            new = cut(cut_lines(old, _MOST_LINES), _LONGEST[name])
        else:
            new = _shortened(old)
        if new is not old:
            changed[name] = new
    return dataclasses.replace(value, **changed) if changed else value
