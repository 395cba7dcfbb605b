# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof report`: a results file as a page, as Markdown or as CSV."""

import sys
from dataclasses import dataclass
from pathlib import Path

from gpuprof.commands.browser import open_report
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
from gpuprof.errors import InputError
from gpuprof.files import check_distinct
from gpuprof.reading import read_run
from gpuprof.results import Run


@dataclass(frozen=True, slots=True)
class Rendering:
    """What to make of a results file.

    Args:
        output: The page, or the Markdown; `-` for standard output, None for the usual place.
        csv: The file of CSV, `-` for standard output; None for none.
        markdown: Whether Markdown is made instead of the page.
        force: Whether existing files may be replaced.
        quiet: Whether to leave out the table.
        browser: Whether to open the page in a browser.
    """

    output: Path | None = None
    csv: Path | None = None
    markdown: bool = False
    force: bool = False
    quiet: bool = False
    browser: bool = False

    @property
    def makes_page(self) -> bool:
        """Whether there will be a page: CSV alone is asked for without one."""
        return not self.markdown and (self.csv is None or self.output is not None or self.browser)

    @property
    def prints_markdown(self) -> bool:
        """Whether standard output is Markdown."""
        return self.markdown and self.output in (None, STANDARD_OUTPUT)

    @property
    def is_piped(self) -> bool:
        """Whether standard output is a document: whatever else there is to say goes to standard error."""
        return self.prints_markdown or STANDARD_OUTPUT in (self.output, self.csv)

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            InputError: Two things would go to standard output or into one file, or no page is there to open.
        """
        printed = self.output == STANDARD_OUTPUT or self.prints_markdown
        if printed and self.csv == STANDARD_OUTPUT:
            raise InputError("Two things cannot both go to standard output.", fix="Give one of them a file.")
        if self.browser and (printed or self.markdown):
            raise InputError(
                "--open needs a page in a file.", fix="Drop --open, or --markdown and -o - beside it."
            )
        if self.csv is not None and self.output is not None and self.csv != STANDARD_OUTPUT:
            check_distinct(self.csv, self.output)


def render(results: Path | None, wanted: Rendering) -> Run:
    """Make what is wanted of a results file, and name the files.

    Args:
        results: The file; None for that of the newest run.
        wanted: What to make.

    Returns:
        What the file holds.

    Raises:
        InputError: The results cannot be read, or a file cannot be written.
        ToolError: A package that rendering needs is missing.
    """
    wanted.check()
    source = results or latest_results()
    run = read_run(source)
    written = []
    if wanted.csv is not None:
        _check_table(wanted.csv, source, wanted.force)
    if wanted.markdown:
        written += _markdown(run, source, wanted)
    elif wanted.makes_page:
        written += _page(run, source, wanted)
    if wanted.csv is not None:
        written += write_csv(run, wanted.csv)
    if written:
        print_written(*written, aside=wanted.csv == STANDARD_OUTPUT)
    if wanted.browser:
        open_report(written[0])
    return run


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


def _markdown(run: Run, source: Path, wanted: Rendering) -> list[Path]:
    from gpuprof.report.markdown import render_markdown

    if wanted.prints_markdown or wanted.output is None:
        say_lines(render_markdown(run))
        return []
    _check_table(wanted.output, source, wanted.force)
    write_file(wanted.output, render_markdown(run))
    return [wanted.output]


def _page(run: Run, source: Path, wanted: Rendering) -> list[Path]:
    if wanted.output == STANDARD_OUTPUT:
        hand_over(page_of(run))
        return []
    # Beside results that a run named itself stands the report that it named.
    usual = "report.html" if source.name == "results.json" else f"{source.stem}.html"
    path = wanted.output or source.with_name(usual)
    check_distinct(source, path)
    check_report_path(path, wanted.force)
    if not wanted.quiet:
        from gpuprof.report.terminal import print_run

        print_run(run, file=sys.stderr if wanted.csv == STANDARD_OUTPUT else sys.stdout)
    write_report(run, path)
    return [path]


def _check_table(path: Path, source: Path, force: bool) -> None:
    if path != STANDARD_OUTPUT:
        check_distinct(source, path)
        check_table_path(path, force)
