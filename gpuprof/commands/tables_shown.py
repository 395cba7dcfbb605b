# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tables that commands print without a run to show."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuprof.console import say_lines
from gpuprof.text import one_line

#: Width of a pipe, which has none of its own.
_PIPE_COLUMNS = 110
#: Blanks between two columns.
_GAP = 2


def add_row(table: Any, *cells: str) -> None:
    """Cells that show what they hold: a bracket is no markup of Rich's, an escape steers nothing."""
    from rich.text import Text

    table.add_row(*(Text(one_line(cell)) for cell in cells))


def open_console() -> Any:
    """Rich's console on standard output, as wide as the terminal; a pipe is as wide as COLUMNS says."""
    from rich.console import Console

    columns = None if sys.stdout.isatty() else shutil.get_terminal_size((_PIPE_COLUMNS, 24)).columns
    return Console(width=columns, highlight=False)


@dataclass(frozen=True)
class Fitted:
    """What of a table a terminal has room for.

    Args:
        columns: Those that are shown, in order.
        hidden: The others.
        whole_width: How wide a terminal would show all.
    """

    columns: tuple[str, ...]
    hidden: tuple[str, ...]
    whole_width: int

    def remark(self) -> str:
        """Which columns are left out; empty where none is."""
        if not self.hidden:
            return ""
        return f"- hidden at this width: {', '.join(self.hidden)}; {self.whole_width} columns show all"


def fit(
    width: int,
    rows: Sequence[Mapping[str, str]],
    dispensable: Sequence[str],
    folded: Mapping[str, int],
) -> Fitted:
    """Leave out whole columns where not all fit, so that no cell is cut.

    Args:
        width: Columns of the terminal.
        rows: Cells by the heading of their column.
        dispensable: What may go, first that which goes first.
        folded: Columns whose text may go on in the next line, with the width that they need at least.
    """
    from rich.cells import cell_len

    needed = {
        name: min(
            max(cell_len(one_line(text)) for text in (name, *(row[name] for row in rows))),
            folded.get(name, sys.maxsize),
        )
        for name in rows[0]
    }
    hidden: list[str] = []

    def taken() -> int:
        shown = [cells for name, cells in needed.items() if name not in hidden]
        return sum(shown) + _GAP * (len(shown) - 1)

    whole = taken()
    for name in dispensable:
        if taken() <= width:
            break
        hidden.append(name)
    shown = tuple(name for name in needed if name not in hidden)
    return Fitted(shown, tuple(name for name in needed if name in hidden), whole)


def show(console: Any, table: Any) -> None:
    """Print a table; in a pipe its lines end where their text does."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    say_lines("\n".join(line.rstrip() for line in captured.get().splitlines()))
