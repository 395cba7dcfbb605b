# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof report`: a results file as a page, as Markdown or as CSV."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof.commands.browser import open_report
from gpuprof.commands.gating import hold, read_gates
from gpuprof.commands.latest import latest_results
from gpuprof.commands.output import (
    STANDARD_OUTPUT,
    check_report_path,
    check_table_path,
    page_of,
    print_written,
    write_file,
    write_report,
)
from gpuprof.console import hand_over, say_lines
from gpuprof.errors import ExitCode, InputError
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_distinct
from gpuprof.reading import read_run, results_file
from gpuprof.results import Run

if TYPE_CHECKING:
    from gpuprof.comparison.gates import Gate


@dataclass(frozen=True, slots=True)
class Rendering:
    """What to make of a results file; files are None where none is wanted, and `-` for standard output."""

    output: Path | None = None
    csv: Path | None = None
    markdown: bool = False
    force: bool = False
    quiet: bool = False
    browser: bool = False
    gates: tuple[str, ...] = ()
    strict: bool = False
    table: bool = False

    @property
    def prints_file(self) -> bool:
        """Whether standard output holds a page or CSV, and nothing else."""
        return self.csv == STANDARD_OUTPUT or (self.output == STANDARD_OUTPUT and not self.markdown)

    @property
    def makes_page(self) -> bool:
        """Whether there will be a page: CSV alone is asked for without one."""
        return not self.markdown and (self.csv is None or self.output is not None or self.browser)

    def beside(self, source: Path) -> "Rendering":
        """The same, with a file in each folder that was named in the place of one."""
        page = f"{source.stem}.md" if self.markdown else _page_name(source)
        return replace(
            self,
            output=_within(self.output, page),
            csv=_within(self.csv, f"{source.stem}.csv"),
        )

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            InputError: Two things would go to standard output or into one file, or no page is there to open.
        """
        printed = self.output == STANDARD_OUTPUT or (self.markdown and self.output is None)
        if printed and self.csv == STANDARD_OUTPUT:
            raise InputError("Two things cannot both go to standard output.", fix="Give one of them a file.")
        if self.browser and (printed or self.markdown):
            raise InputError(
                "--open needs a page in a file.", fix="Drop --open, or --markdown and -o - beside it."
            )
        if self.csv is not None and self.output is not None and self.csv != STANDARD_OUTPUT:
            check_distinct(self.csv, self.output)


def render(results: Path | None, wanted: Rendering) -> ExitCode:
    """Make what is wanted of a results file, by default of the newest; hold the run against gates.

    Raises:
        InputError: A gate or the results cannot be read, or a file cannot be written.
        ToolError: A package that rendering needs is missing.
    """
    source = results_file(results or latest_results())
    wanted = wanted.beside(source)
    wanted.check()
    gates = read_gates(wanted.gates, with_base=False)
    run = read_run(source)
    written = []
    if wanted.csv is not None:
        _check_table(wanted.csv, source, wanted.force)
    if wanted.markdown:
        written += _markdown(run, source, wanted, gates)
    elif wanted.makes_page:
        written += _page(run, source, wanted)
    if wanted.csv is not None:
        written += write_csv(run, wanted.csv)
    if written:
        print_written(*written, aside=wanted.prints_file)
    if wanted.browser:
        open_report(written[0])
    printed = wanted.markdown and wanted.output in (None, STANDARD_OUTPUT)
    return hold(
        run,
        gates,
        strict=wanted.strict,
        quiet=wanted.quiet and not printed,
        markdown=printed,
        aside=wanted.prints_file,
    )


def write_csv(run: Run, path: Path) -> list[Path]:
    """Write a run as CSV; the file, where it is one.

    Raises:
        InputError: The path cannot be written.
    """
    from gpuprof.report.comma_separated import render_csv

    if path == STANDARD_OUTPUT:
        hand_over(render_csv(run))
        return []
    write_file(path, render_csv(run))
    return [path]


def _markdown(run: Run, source: Path, wanted: Rendering, gates: "Sequence[Gate]") -> list[Path]:
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.run_text import run_report

    text = markdown_of(run_report(run))
    if wanted.output is None or wanted.output == STANDARD_OUTPUT:
        say_lines(text)
        return []
    _check_table(wanted.output, source, wanted.force)
    if gates:
        from gpuprof.comparison.gates import hold_run
        from gpuprof.report.compared_text import gates_report

        text += f"\n{markdown_of(gates_report(hold_run(gates, run)))}"
    write_file(wanted.output, text)
    return [wanted.output]


def _page(run: Run, source: Path, wanted: Rendering) -> list[Path]:
    if wanted.output == STANDARD_OUTPUT:
        hand_over(page_of(run))
        return []
    path = wanted.output or source.with_name(_page_name(source))
    check_distinct(source, path)
    check_report_path(path, wanted.force)
    if not wanted.quiet:
        from gpuprof.report.shown import show_run

        file = sys.stderr if wanted.prints_file else sys.stdout
        show_run(run, file=file, table=wanted.table, hint="All rows: --table")
    write_report(run, path)
    return [path]


def _within(path: Path | None, name: str) -> Path | None:
    """A file of this name where the path is a folder; else the path."""
    # os.path.isdir is False, and no error, for names that no file can have.
    return path / name if path is not None and os.path.isdir(path) else path


def _page_name(source: Path) -> str:
    """What the page of a results file is called: as the run called it that named its files itself."""
    return REPORT_NAME if source.name == RESULTS_NAME else f"{source.stem}.html"


def _check_table(path: Path, source: Path, force: bool) -> None:
    if path != STANDARD_OUTPUT:
        check_distinct(source, path)
        check_table_path(path, force)
