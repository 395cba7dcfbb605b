# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Writing reports, and naming what was written on the last lines."""

import sys
from pathlib import Path

from gpuprof.errors import InputError
from gpuprof.results import Run


def write_report(run: Run, path: Path) -> None:
    """Render a run as one HTML file.

    Raises:
        InputError: The path cannot be written.
    """
    from gpuprof.report.html import render_html

    text = render_html(run)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.", fix="Name another path.") from error


def print_written(*paths: Path) -> None:
    """Name files on standard output, one a line."""
    for path in paths:
        print(f"Wrote {path}", file=sys.stdout)
