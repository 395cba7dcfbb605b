# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof fleet`: read results files one by one, judge the cards, show, write."""

import sys
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuprof import __version__
from gpuprof.commands.command_line import output_option, parameter
from gpuprof.commands.compare_runs import Outputs
from gpuprof.commands.output import print_written
from gpuprof.errors import ExitCode, InputError, ResultsError, nearest_file
from gpuprof.measure.options import GATE

if TYPE_CHECKING:
    from gpuprof.comparison.fleet import Fleet

Results = Annotated[
    list[str],
    typer.Argument(
        metavar="RESULTS", help="Results files, folders that hold some, or patterns such as 'r/*.json'."
    ),
]
FailOnOutlier = Annotated[
    bool,
    typer.Option(
        "--fail-on-outlier",
        help="End with status 1 where a card is an outlier or a case failed on one.",
        rich_help_panel=GATE,
    ),
]
Page = Annotated[Path | None, output_option("html", "Write the page.", "FILE")]
Document = Annotated[
    Path | None, output_option("json", "Write everything as JSON; - prints it instead.", "FILE|-")
]
Markdown = Annotated[
    Path | None, output_option("markdown", "Write Markdown tables; - prints them instead.", "FILE|-")
]


def fleet(
    results: Results,
    html: Page = None,
    json: Document = None,
    markdown: Markdown = None,
    fail_on_outlier: FailOnOutlier = False,
    force: Annotated[bool, parameter("force")] = False,
    quiet: Annotated[bool, parameter("quiet")] = False,
) -> None:
    """Say which of many cards differ from the fleet median, from a results file of each."""
    outputs = Outputs(html, json, markdown, None, force)
    named = list(files_of(results))
    if not named:
        raise InputError(
            f"There is no results file in {', '.join(results)}.",
            fix="Name results files, or a folder that holds some at any depth.",
        )
    outputs.check([path for path, _ in named])
    found = read_fleet(named)
    _show(found, outputs, quiet=quiet)
    failed = fail_on_outlier and bool(found.confirmed or found.found.failures)
    raise typer.Exit(ExitCode.CASES_FAILED if failed else ExitCode.OK)


def files_of(names: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """The files that a user named, each once, with whether he named the very file.

    Args:
        names: Files, folders that hold some at any depth, or patterns.

    Raises:
        InputError: A name stands for no file.
    """
    seen = set()
    for name in names:
        path = Path(name)
        if path.is_dir():
            found = [(file, False) for file in sorted(path.rglob("*.json"))]
        elif path.exists() or not glob(name, recursive=True):
            if not path.exists():
                fix = nearest_file(path) or "Name a results.json that gpuprof wrote, or a folder of them."
                raise InputError(f"There is no {name}.", fix=fix)
            found = [(path, True)]
        else:
            found = [(Path(file), False) for file in sorted(glob(name, recursive=True))]
        for file, is_named in found:
            real = file.resolve()
            if real not in seen and not file.is_dir():
                seen.add(real)
                yield file, is_named


def read_fleet(files: Sequence[tuple[Path, bool]]) -> "Fleet":
    """A fleet from its files, of which one is held at a time.

    Args:
        files: Each with whether the user named the very file: one that he did not is left out where it is no
            results file.

    Raises:
        InputError: There is no card in them.
        ResultsError: A file that was named is not a results file.
    """
    from gpuprof.comparison.fleet import FleetBuilder
    from gpuprof.reading import read_run
    from gpuprof.results import Tool

    builder = FleetBuilder(Tool("gpuprof", __version__))
    for path, is_named in files:
        try:
            builder.add(read_run(path), str(path))
        except ResultsError as error:
            if is_named:
                raise
            builder.leave_out(str(path), error.what)
    return builder.fleet()


def _show(fleet: "Fleet", outputs: Outputs, *, quiet: bool) -> None:
    from gpuprof.comparison.comparison_document import dumps
    from gpuprof.report.fleet_text import fleet_page, fleet_report
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.terminal import print_document

    if not quiet and not outputs.prints:
        print_document(fleet_report(fleet), file=sys.stdout)
    outputs.write(outputs.json, lambda: dumps(fleet.found))
    outputs.write(outputs.markdown, lambda: markdown_of(fleet_report(fleet)))
    outputs.write(outputs.html, lambda: fleet_page(fleet))
    print_written(*outputs.paths, aside=outputs.prints)
