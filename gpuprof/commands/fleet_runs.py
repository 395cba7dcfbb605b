# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof fleet`: read results files one by one, judge the cards, show, write."""

import sys
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import __version__
from gpuprof.commands.output import Outputs
from gpuprof.errors import ExitCode, InputError, ResultsError, nearest_file
from gpuprof.measure.options import Given

if TYPE_CHECKING:
    from gpuprof.comparison.fleet import FleetRuns


def fleet(given: Given, results: list[str]) -> int:
    """Say which of many cards differ from the fleet median, from a results file of each."""
    from gpuprof.comparison.comparison_document import dumps
    from gpuprof.report.fleet_text import fleet_page, fleet_report
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.terminal import print_document

    outputs = Outputs.of(given.output)
    named = list(files_of(results))
    if not named:
        raise InputError(
            f"There is no results file in {', '.join(results)}.",
            fix="Name results files, or a folder that holds some at any depth.",
        )
    outputs.check([path for path, _ in named])
    found = read_fleet(named)
    if not given.output.quiet and not outputs.printed:
        print_document(fleet_report(found), file=sys.stdout)
    outputs.write(
        json=lambda: dumps(found.found),
        markdown=lambda: markdown_of(fleet_report(found)),
        html=lambda: fleet_page(found),
    )
    failed = given.gate.fail_on_outlier and bool(found.confirmed or found.found.failures)
    return ExitCode.CASES_FAILED if failed else ExitCode.OK


def files_of(names: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """The files that a user named, by folder or pattern too, each once with whether it was named itself."""
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


def read_fleet(files: Sequence[tuple[Path, bool]]) -> "FleetRuns":
    """A fleet from its files, of which one is held at a time; one in a folder may be no results file."""
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
