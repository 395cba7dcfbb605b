# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Writing reports, and naming what was written on the last lines."""

from pathlib import Path

from gpuprof import signals
from gpuprof.console import say
from gpuprof.errors import PATH_ERRORS, InputError, ToolError, reason
from gpuprof.files import check_writable, replace_text
from gpuprof.results import Run


def write_report(run: Run, path: Path) -> None:
    """Render a run as one HTML file.

    Raises:
        InputError: The path cannot be written.
        ToolError: A package that rendering needs is missing.
    """
    from gpuprof.report.html import render_html

    try:
        text = render_html(run)
    except ModuleNotFoundError as error:
        raise ToolError(
            f"The report needs the package {error.name}, which is not installed; the results are saved.",
            fix=f"Install it, then: gpuprof report RESULTS.json -o {path}",
        ) from error
    signals.postpone()
    try:
        replace_text(path, text)
    except PATH_ERRORS as error:
        raise InputError(f"Cannot write {path}: {reason(error)}.", fix="Name another path.") from error


def check_report_path(path: Path, force: bool) -> None:
    """Refuse a report's path before any work is done; an earlier report of gpuprof's may be replaced.

    Args:
        path: Where the report shall stand.
        force: Whether any other file may be replaced too.

    Raises:
        InputError: Another file is there and `force` is False, or the path cannot be written.
    """
    check_writable(path, force or _is_report(path))


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'<meta name="generator" content="gpuprof ' in file.read(4096)
    except PATH_ERRORS:
        return False


def print_written(*paths: Path) -> None:
    """Name files on standard output, one a line."""
    for path in paths:
        say(f"Wrote {path}")
