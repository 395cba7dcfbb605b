# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Records with other values in some fields, and records by what they have in common."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, structs

if TYPE_CHECKING:
    from dataclasses import replace as replace  # type checkers hold its names and types against the fields
else:

    def replace(record: Any, /, **fields: Any) -> Any:
        """A copy of a struct or a dataclass with these values."""
        return (structs if isinstance(record, Struct) else dataclasses).replace(record, **fields)


Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by their key, in the order in which they come."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
