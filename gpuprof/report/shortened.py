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


def _shortened(value: Any) -> Any:
    """The value itself where no text in it is too long."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, tuple):
        if value and isinstance(value[0], float):  # samples, which are many
            return value
        items = tuple(map(_shortened, value))
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, Mapping):
        return {_shortened(key): _shortened(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _with_shortened_fields(value)
    return value


def _with_shortened_fields(value: Any) -> Any:
    changed = {}
    for field in dataclasses.fields(value):
        old = getattr(value, field.name)
        if field.name in _LONGEST and isinstance(old, str):
            new = cut(cut_lines(old, _MOST_LINES), _LONGEST[field.name])
        else:
            new = _shortened(old)
        if new is not old:
            changed[field.name] = new
    return dataclasses.replace(value, **changed) if changed else value
