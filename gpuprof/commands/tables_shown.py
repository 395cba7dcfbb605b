# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tables that commands print without a run to show."""

import shutil
import sys
from typing import Any

from gpuprof.console import say_lines
from gpuprof.text import one_line

#: Width of a pipe, which has none of its own.
_PIPE_COLUMNS = 110
#: Below this a table leaves out what a reader can do without.
_NARROW = 80


def add_row(table: Any, *cells: str) -> None:
    """Cells that show what they hold: a bracket is no markup of Rich's, an escape steers nothing."""
    from rich.text import Text

    table.add_row(*(Text(one_line(cell)) for cell in cells))


def open_console() -> Any:
    """Rich's console on standard output, as wide as the terminal; a pipe is as wide as COLUMNS says."""
    from rich.console import Console

    columns = None if sys.stdout.isatty() else shutil.get_terminal_size((_PIPE_COLUMNS, 24)).columns
    return Console(width=columns, highlight=False)


def is_narrow(console: Any) -> bool:
    """Whether tables leave out what a reader can do without."""
    return bool(console.width < _NARROW)


def show(console: Any, table: Any) -> None:
    """Print a table; in a pipe its lines end where their text does."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    say_lines("\n".join(line.rstrip() for line in captured.get().splitlines()))
