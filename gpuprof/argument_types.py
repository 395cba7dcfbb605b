# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a program's values are what signatures say: the one place that holds them against types."""

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from pathlib import Path
from reprlib import repr as in_short
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from gpuprof.errors import InputError, foreign

#: NumPy's numbers are numbers too, and whatever names a path is one.
_ABSTRACT: Mapping[Any, Any] = {int: Integral, float: Real, Path: os.PathLike, None: type(None)}
#: What Python puts before the names of types.
_MODULES = re.compile(r"\b(?:[a-z]\w*\.)+")


def require(name: str, value: Any, kind: Any) -> None:
    """Refuse a value that is of another type than a signature says.

    Raises:
        InputError: It is.
    """
    if not fits(value, kind):
        told = _MODULES.sub("", inspect.formatannotation(kind))
        raise InputError(f"{name} is {foreign(in_short(value))}.", fix=f"Give {told}.")


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, its items too; of a name in quotes anything is."""
    origin, of = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in of)
    if origin is Literal:
        return isinstance(value, str)  # that it is none of them is told where it is used
    if origin is Callable:
        return callable(value)
    if origin is None:
        own = _ABSTRACT.get(kind, kind)
        if own in (Integral, Real) and isinstance(value, bool):
            return False
        return own is Any or not isinstance(own, type) or isinstance(value, own)
    if not isinstance(value, origin) or isinstance(value, (str, bytes)):
        return False
    if isinstance(value, Mapping):
        return all(fits(item, each) for pair in value.items() for item, each in zip(pair, of, strict=False))
    # What can be gone through only once is left as it is.
    return isinstance(value, Iterator) or all(fits(item, of[0]) for item in value)
