# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as it is shown: every text cut to what a page can hold, so that none drowns the rest.

Renderers work on this copy; an HTML report's data block keeps every character.
"""

from collections.abc import Mapping
from typing import Any

from gpuprof.records import replace
from gpuprof.results import Run
from gpuprof.text import cut, cut_lines

#: Texts that are read line by line may be longer, by the name of their field.
_LONGEST = {"source": 400_000, "log": 20_000}
_MOST_LINES = 10_000


def shortened(run: Run) -> Run:
    """The run with each text cut that is too long, and with a note of how much of it is left out."""
    result: Run = _shortened(run)
    return result


#: Kinds of values that hold no text: samples and extents, which are many.
_PLAIN = frozenset({float, int, bool, type(None)})


def _shortened(value: Any) -> Any:
    """The value itself where no text in it is too long."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, tuple):
        if value and type(value[0]) in _PLAIN:
            return value
        items = tuple(map(_shortened, value))
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, Mapping):
        pairs = {_shortened(key): _shortened(item) for key, item in value.items()}
        return pairs if any(pairs.get(key) is not item for key, item in value.items()) else value
    held = {name: getattr(value, name) for name in getattr(value, "__struct_fields__", ())}
    found = {name: _field(name, old) for name, old in held.items() if type(old) not in _PLAIN}
    changed = {name: new for name, new in found.items() if new is not held[name]}
    return replace(value, **changed) if changed else value


def _field(name: str, value: Any) -> Any:
    if name in _LONGEST and isinstance(value, str):
        return cut(cut_lines(value, _MOST_LINES), _LONGEST[name])
    return _shortened(value)
