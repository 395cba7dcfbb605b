# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The table `[candidates]` of a header: values among which parameters and block are searched."""

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from gpuprof.tables import TableReader, is_integer
from gpuprof.text import Extent, in_xyz

#: The field of the table that holds blocks, unless a parameter has that name.
BLOCK = "block"
#: Values of one parameter: more than anybody means to try one by one.
MOST_VALUES = 256


class Candidates(Struct, frozen=True):
    """What a header declares to be worth trying."""

    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    blocks: tuple[Extent, ...] = ()


def read_candidates(reader: TableReader, parameters: Mapping[str, int], *, any_block: bool) -> Candidates:
    """The table `[candidates]`; without it there are none.

    Raises:
        HeaderError: A name is not a parameter, or a list holds something else than values.
    """
    if "candidates" not in reader:
        return Candidates()
    table = reader.section("candidates")
    values: dict[str, tuple[int, ...]] = {}
    blocks: tuple[Extent, ...] = ()
    for name in parameters:
        if name in table:
            values[name] = _integers(table, name)
    if BLOCK in table and BLOCK not in parameters:
        blocks = _blocks(table)
        if not any_block:
            raise table.error(
                BLOCK,
                "lists blocks for a kernel whose block is fixed",
                "Say any_block = true in [launch], or leave them out.",
            )
    for name in table.table:
        known = ", ".join((*parameters, *([BLOCK] if any_block else ())))
        raise table.error(
            name,
            "is not a parameter of this kernel" + (f"; there are {known}" if known else ""),
            f"Give {name} its default in [parameters].",
        )
    return Candidates(values, blocks)


def _integers(table: TableReader, name: str) -> tuple[int, ...]:
    values = _listed(table, name)
    if not all(is_integer(value) and abs(value) < 2**63 for value in values):
        raise table.error(name, f"must be a list of integers, not {values!r}")
    return tuple(dict.fromkeys(values))


def _blocks(table: TableReader) -> tuple[Extent, ...]:
    blocks: list[Extent] = []
    for entry in _listed(table, BLOCK):
        extents = entry if isinstance(entry, list) else [entry]
        if not 1 <= len(extents) <= 3 or not all(is_integer(one) and 0 < one < 2**31 for one in extents):
            raise table.error(BLOCK, f"must list blocks such as [32, 8], not {entry!r}")
        if math.prod(extents) > 1024:
            raise table.error(BLOCK, f"has {entry!r}: a block holds at most 1024 threads")
        blocks.append(in_xyz(extents, 1))
    return tuple(dict.fromkeys(blocks))


def _listed(table: TableReader, name: str) -> list[Any]:
    values: list[Any] = table.take(name, list)
    if not 1 <= len(values) <= MOST_VALUES:
        raise table.error(name, f"has {len(values)} values, not 1 to {MOST_VALUES}")
    return values
