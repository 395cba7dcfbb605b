# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof compare`: read results files, match, judge, hold against gates, show, write."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import __version__
from gpuprof.commands.gating import read_gates, status_of_comparisons
from gpuprof.commands.output import Outputs
from gpuprof.errors import ExitCode, InputError, nearest_file
from gpuprof.measure.options import GateOptions, Given, only_measuring
from gpuprof.results import Run, Tool

if TYPE_CHECKING:
    from gpuprof.comparison.compared import ComparedRuns
    from gpuprof.comparison.gates import GateCondition


def compare_files(given: Given, paths: Sequence[Path]) -> ExitCode:
    """Compare results files with a base."""
    from gpuprof.comparison.compared import compare_runs

    outputs = Outputs.of(given.output)
    gates = read_gates(given.gate.fail_on, with_base=True)
    held = (given.select, given.run, given.output)
    values = {name: value for each in held for name, value in vars(each).items()}
    idle = next((row.long for row in only_measuring("compare") if values[row.name] is not None), None)
    if idle is not None:
        raise InputError(f"{idle} has no effect on results files.", fix="Add --against REVISION to measure.")
    if len(paths) < 2:
        raise InputError(
            "Name a base and at least one new results file.",
            fix="gpuprof compare BASE.json NEW.json, or --against REVISION to measure both.",
        )
    base, *new = paths
    outputs.check(paths)
    base_run = read_named(base)
    comparisons = [
        compare_runs(base_run, read_named(path), base_name=str(base), new_name=str(path), force=outputs.force)
        for path in new
    ]
    return show(comparisons, gates, outputs, given.gate, quiet=given.output.quiet)


def read_named(path: Path) -> Run:
    """One run: of a results file, or of a folder whose results files are rounds of one code."""
    from gpuprof.reading import read_run

    if not path.is_dir():
        if not path.exists():
            raise InputError(
                f"There is no {path}.", fix=nearest_file(path) or "Name a results.json that gpuprof wrote."
            )
        return read_run(path)
    from gpuprof.comparison.matching import pooled

    files = sorted(path.glob("*.json"))
    if not files:
        raise InputError(
            f"{path} holds no results file, none that ends in .json.",
            fix="Name a results.json, or its folder.",
        )
    return pooled([read_run(file) for file in files], str(path))


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
    from gpuprof.report.compared_text import comparison_page, comparison_report, gates_report
    from gpuprof.report.junit import render_junit
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
