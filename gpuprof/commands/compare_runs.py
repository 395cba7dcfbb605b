# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof compare` and `fleet`: read results files, judge them, hold them against gates, show, write."""

import sys
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import __version__
from gpuprof.commands.gating import read_gates, status_of_comparisons
from gpuprof.commands.output import Outputs
from gpuprof.errors import ExitCode, InputError, ResultsError
from gpuprof.options import GateOptions, Given, only_measuring
from gpuprof.records import replace
from gpuprof.results import Tool

if TYPE_CHECKING:
    from gpuprof.comparison.compared import ComparedRuns
    from gpuprof.comparison.fleet import FleetRuns
    from gpuprof.comparison.gates import GateCondition


def compare_files(given: Given, paths: Sequence[Path]) -> ExitCode:
    """Compare results files with a base."""
    from gpuprof.comparison.compared import compare_runs
    from gpuprof.reading import read_run

    outputs = Outputs.wanted(given.output)
    gates = read_gates(given.gate.fail_on, with_base=True)
    held = (given.select, given.run, given.output)
    values = {name: value for each in held for name, value in vars(each).items()}
    idle = next((row.long for row in only_measuring("compare") if values[row.name] != row.default), None)
    if idle is not None:
        page = "--html FILE writes the page" if idle == "--output" else "Leave it out"
        raise InputError(
            f"{idle} has no effect on results files.", fix=f"{page}, or add --against REVISION to measure."
        )
    if len(paths) < 2:
        raise InputError(
            "Name a base and at least one new results file.",
            fix="gpuprof compare BASE.json NEW.json, or --against REVISION to measure both.",
        )
    base, *new = paths
    outputs.check(paths)
    base_run = read_run(base)
    comparisons = [
        compare_runs(base_run, read_run(path), base_name=str(base), new_name=str(path), force=outputs.force)
        for path in new
    ]
    return show(comparisons, gates, outputs, given.gate, quiet=given.output.quiet)


def show(
    comparisons: "Sequence[ComparedRuns]",
    gates: "Sequence[GateCondition]",
    outputs: Outputs,
    gate: GateOptions,
    *,
    quiet: bool,
) -> ExitCode:
    """Print comparisons, write their files and name them; the status that verdicts and gates decide."""
    from gpuprof.comparison.comparison_document import document, dumps
    from gpuprof.comparison.gates import hold_comparison
    from gpuprof.report.compared_text import comparison_page, comparison_report, gates_report, render_junit
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.terminal import print_document

    results = [hold_comparison(gates, comparison) for comparison in comparisons]
    status = status_of_comparisons(comparisons, results, strict=gate.strict)
    pairs = list(zip(comparisons, results, strict=True))
    reports = [comparison_report(*pair) for pair in pairs]
    for report, held in () if outputs.printed else zip(reports, results, strict=True):
        if not quiet:
            print_document(report, file=sys.stdout)
        elif status is not ExitCode.OK:
            failed = [result for result in held if result.outcome != "passed"]
            print_document(replace(report, facts=(), content=gates_report(failed).content), file=sys.stdout)
    tool = Tool("gpuprof", __version__)
    outputs.write(
        json=lambda: dumps(document(comparisons, results, tool)),
        markdown=lambda: "\n".join(map(markdown_of, reports)),
        junit=lambda: render_junit(comparisons, results),
        html=lambda: comparison_page(pairs, tool),
    )
    return status


def fleet(given: Given, results: list[str]) -> int:
    """Say which of many cards differ from the fleet median, from a results file of each."""
    from gpuprof.comparison.comparison_document import dumps
    from gpuprof.report.fleet_text import fleet_page, fleet_report
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.terminal import print_document

    outputs = Outputs.wanted(given.output)
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
        else:
            matching = [] if path.exists() else sorted(glob(name, recursive=True))
            found = [(Path(file), False) for file in matching] or [(path, True)]
        for file, is_named in found:
            real = file.resolve()
            if real not in seen and not file.is_dir():
                seen.add(real)
                yield file, is_named


def read_fleet(files: Sequence[tuple[Path, bool]]) -> "FleetRuns":
    """A fleet from its files, of which one is held at a time; one in a folder may be no results file."""
    from gpuprof.comparison.fleet import FleetBuilder
    from gpuprof.reading import read_run

    builder = FleetBuilder(Tool("gpuprof", __version__))
    for path, is_named in files:
        try:
            builder.add(read_run(path), str(path))
        except ResultsError as error:
            if is_named:
                raise
            builder.leave_out(str(path), error.what.removesuffix(".").replace(f"{path} ", "it ", 1))
    return builder.fleet()
