# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Writing reports, and naming what was written on the last lines."""

import sys
from pathlib import Path

from gpuprof.errors import EnvironmentProblem, InputError
from gpuprof.results import Run


def write_report(run: Run, path: Path) -> None:
    """Render a run as one HTML file.

    Raises:
        InputError: The path cannot be written.
        EnvironmentProblem: A package that rendering needs is missing.
    """
    from gpuprof.report.html import render_html

    try:
        text = render_html(run)
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            f"The report needs the package {error.name}, which is not installed; the results are saved.",
            fix=f"Install it, then: gpuprof report RESULTS.json -o {path}",
        ) from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.", fix="Name another path.") from error


def print_written(*paths: Path) -> None:
    """Name files on standard output, one a line."""
    for path in paths:
        print(f"Wrote {path}", file=sys.stdout)
