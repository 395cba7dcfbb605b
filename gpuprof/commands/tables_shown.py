# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tables that commands print without a run to show."""

import sys
from typing import Any

from gpuprof.text import one_line

#: Width of a pipe, which has none of its own.
_PIPE_COLUMNS = 110


def add_row(table: Any, *cells: str) -> None:
    """Cells that show what they hold: a bracket is no markup of Rich's, an escape steers nothing."""
    from rich.text import Text

    table.add_row(*(Text(one_line(cell)) for cell in cells))


def open_console() -> Any:
    """Rich's console on standard output, at the terminal's width."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(width=width, highlight=False)
