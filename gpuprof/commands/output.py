# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Writing reports and tables, and naming what was written on the last lines."""

from pathlib import Path

from gpuprof import signals
from gpuprof.console import say, tell
from gpuprof.errors import PATH_ERRORS, InputError, OutputError, reason
from gpuprof.files import check_writable, replace_text
from gpuprof.results import Run
from gpuprof.store import write_run

#: What stands for standard output where a file may be named.
STANDARD_OUTPUT = Path("-")


def page_of(run: Run) -> str:
    """A run as one HTML file."""
    from gpuprof.report.html import render_html

    return render_html(run)


def write_report(run: Run, path: Path) -> None:
    """Render a run as one HTML file.

    Raises:
        InputError: The path cannot be written.
    """
    text = page_of(run)
    signals.postpone()
    write_file(path, text)


def write_report_beside(run: Run, results: Path, page: Path, *, aside: bool = False) -> None:
    """Render a run whose results file is written, and see to it that both stand there at the end.

    Raises:
        OutputError: The report cannot be written; the results file has been named.
    """
    try:
        write_report(run, page)
    except InputError as error:
        print_written(results, aside=aside)
        raise OutputError(error.what, fix=f"Make room, then: gpuprof report {results}") from error
    if not results.exists():  # its folder was removed while the page was rendered
        write_run(run, results)


def write_file(path: Path, text: str) -> None:
    """Write a file whole.

    Raises:
        InputError: The path cannot be written.
    """
    try:
        replace_text(path, text)
    except PATH_ERRORS as error:
        raise InputError(f"Cannot write {path}: {reason(error)}.", fix="Name another path.") from error


def check_report_path(path: Path, force: bool) -> None:
    """Refuse a report's path before any work is done; an earlier report of gpuprof's may be replaced.

    Raises:
        InputError: Another file is there and `force` is False, or the path cannot be written.
    """
    check_writable(path, force or _is_report(path))


def check_table_path(path: Path, force: bool) -> None:
    """The same for Markdown and CSV: an empty file, as a CI system prepares one, may be replaced.

    Raises:
        InputError: A file with content is there and `force` is False, or the path cannot be written.
    """
    check_writable(path, force or _is_empty(path))


def _is_report(path: Path) -> bool:
    try:
        if not path.is_file():  # a pipe that nobody writes to would hold us up
            return False
        with path.open("rb") as file:
            return b'<meta name="generator" content="gpuprof ' in file.read(4096)
    except PATH_ERRORS:
        return False


def _is_empty(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size == 0
    except PATH_ERRORS:
        return False


def print_written(*paths: Path, aside: bool = False) -> None:
    """Name files on standard output, one a line; on standard error where the other one holds a file."""
    for path in paths:
        (tell if aside else say)(f"Wrote {path}")
