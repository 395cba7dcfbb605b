# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof list`: the ladders that come with gpuprof."""

import json
from collections.abc import Callable
from typing import Any

from gpuprof.commands.tables_shown import add_row, fit, open_console, show
from gpuprof.console import hand_over
from gpuprof.kernels.catalog import Ladder, shipped_ladder, shipped_names
from gpuprof.kernels.kernel import Kernel
from gpuprof.text import format_extent, one_line


def print_ladders(operation: str | None) -> None:
    """Every shipped rung in order, the names of its other shapes, and where its study was published.

    Args:
        operation: One ladder only; None for all.

    Raises:
        InputError: There is no such operation.
    """
    for name in [operation] if operation else shipped_names():
        _print_ladder(shipped_ladder(name))


def print_ladders_as_json(operation: str | None) -> None:
    """The same for programs: a list of ladders, each with its kernels in rung order.

    Raises:
        InputError: There is no such operation.
    """
    names = [operation] if operation else shipped_names()
    hand_over(json.dumps([_ladder_record(shipped_ladder(name)) for name in names], indent=1) + "\n")


def _ladder_record(ladder: Ladder) -> dict[str, Any]:
    return {
        "operation": ladder.operation.name,
        "title": ladder.operation.title,
        "dimensions": list(ladder.operation.dimensions),
        "default_sizes": ladder.operation.default_sizes,
        "kernels": [_kernel_record(kernel) for kernel in ladder.kernels],
    }


def _kernel_record(kernel: Kernel) -> dict[str, Any]:
    chooses = bool(kernel.choices)
    return {
        "id": kernel.id,
        "title": kernel.title,
        "idea": kernel.idea,
        "published_as": list(kernel.aliases),
        "study": kernel.study.name or None,
        "citation": kernel.study.citation or None,
        "url": kernel.study.url or None,
        "block": None if chooses else list(kernel.launch.block),
        "any_block": kernel.launch.any_block and not chooses,
        "parameters": dict(kernel.parameters),
        "shape_of": kernel.shape_of or None,
        "dtypes": list(kernel.dtypes),
        "file": kernel.file_name,
    }


def _print_ladder(ladder: Ladder) -> None:
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    title = f"gpuprof {ladder.operation.name}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    rows = [{column: write(kernel) for column, write in _COLUMNS.items()} for kernel in ladder.rungs]
    fitted = fit(console.width, rows, _DISPENSABLE, {"idea": _NARROWEST_IDEA})
    for column in fitted.columns:
        folds = column == "idea"
        table.add_column(column, overflow="fold" if folds else "ellipsis", no_wrap=not folds)
    for row in rows:
        add_row(table, *(row[column] for column in fitted.columns))
    show(console, table)
    notes = [fitted.remark(), "* any block with --block" if "block" in fitted.columns else ""]
    shapes = [kernel for kernel in ladder.kernels if kernel not in ladder.rungs]
    for rung in dict.fromkeys(kernel.shape_of for kernel in shapes):
        ids = ", ".join(kernel.id for kernel in shapes if kernel.shape_of == rung)
        notes.append(f"Other shapes of {rung}, by name: {ids}")
    for study in dict.fromkeys(kernel.study for kernel in ladder.kernels if kernel.study.citation):
        notes.append(f"Study {study.name}: {study.citation} {study.url}".strip())
    for note in filter(None, notes):
        show(console, Text(one_line(note), style="dim"))
    console.print()


def _block(kernel: Kernel) -> str:
    if kernel.choices:
        return "varies"
    return format_extent(kernel.launch.block) + (" *" if kernel.launch.any_block else "")


_COLUMNS: dict[str, Callable[[Kernel], str]] = {
    "kernel": lambda kernel: kernel.id,
    "published as": lambda kernel: ", ".join(kernel.aliases) or "-",
    "study": lambda kernel: kernel.study.name or "-",
    "block": _block,
    "types": lambda kernel: "/".join(kernel.dtypes) or "varies",
    "idea": lambda kernel: kernel.idea or kernel.title,
}
#: What narrow terminals leave out, first that which goes first.
_DISPENSABLE = ("study", "types", "published as", "block")
#: Columns of a terminal in which an idea can still be read.
_NARROWEST_IDEA = 16
