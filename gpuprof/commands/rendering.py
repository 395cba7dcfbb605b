# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof report` and `import`: a results file as a page, Markdown or CSV; counters added to it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import signals
from gpuprof.commands.gating import hold, read_gates
from gpuprof.commands.output import (
    STANDARD_OUTPUT,
    Outputs,
    latest_results,
    open_report,
    print_written,
    text_of,
)
from gpuprof.console import say, tell
from gpuprof.errors import PATH_ERRORS, ExitCode, InputError, nearest_file, reason
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_writable, same_file
from gpuprof.options import Given
from gpuprof.reading import read_run, results_file
from gpuprof.results import Run
from gpuprof.store import write_run

if TYPE_CHECKING:
    from gpuprof.comparison.gates import GateCondition


def report(given: Given, results: Path | None, markdown: bool) -> ExitCode:
    """Make what is wanted of a results file, by default of the newest; hold the run against gates."""
    wanted = given.output
    source = results_file(results or latest_results())
    page = REPORT_NAME if source.name == RESULTS_NAME else f"{source.stem}.html"  # as the run called it
    main = _within(wanted.output, f"{source.stem}.md" if markdown else page)
    csv = _within(wanted.csv, f"{source.stem}.csv")
    if main is None and markdown:
        main = STANDARD_OUTPUT
    elif main is None and (csv is None or wanted.open_):  # CSV alone is asked for without a page
        main = source.with_name(page)
    if wanted.open_ and (markdown or main == STANDARD_OUTPUT):
        raise InputError(
            "--open needs a page in a file.", fix="Drop --open, or --markdown and -o - beside it."
        )
    kinds = {"markdown" if markdown else "html": main, "csv": csv}
    outputs = Outputs.of({kind: path for kind, path in kinds.items() if path is not None}, wanted.force)
    gates = read_gates(given.gate.fail_on, with_base=False)
    run = read_run(source)
    outputs.check([source])
    # Standard output holds a page, Markdown or CSV, and nothing else.
    aside = bool(outputs.printed)
    if not (markdown or main in (None, STANDARD_OUTPUT) or wanted.quiet):
        from gpuprof.report.run_text import show_run

        file = sys.stderr if aside else sys.stdout
        show_run(run, file=file, table=wanted.table, hint="All rows: --table")
    signals.postpone()
    outputs.write(
        markdown=lambda: _in_markdown(run, gates),
        html=lambda: text_of(run, "html"),
        csv=lambda: text_of(run, "csv"),
    )
    if wanted.open_ and main is not None:
        open_report(main)
    return hold(run, gates, strict=given.gate.strict, quiet=wanted.quiet, aside=aside)


def _in_markdown(run: Run, gates: "Sequence[GateCondition]") -> str:
    """Its tables, and below them what became of gates."""
    from gpuprof.comparison.gates import hold_run
    from gpuprof.report.compared_text import gates_report
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.run_text import run_report

    documents = (run_report(run), *([gates_report(hold_run(gates, run))] if gates else []))
    return "\n".join(map(markdown_of, documents))


def _within(path: Path | None, name: str) -> Path | None:
    """A file of this name where the path is a folder, or a new name without a suffix; else the path."""
    if path is None or path == STANDARD_OUTPUT:
        return path
    # These are False, and no error, for names that no file can have.
    is_folder = os.path.isdir(path) or not (path.suffix or os.path.lexists(path))
    return path / name if is_folder else path


def import_report(
    report: Path, results: Path, output: Path | None, ncu_path: str | None, *, force: bool = False
) -> None:
    """Read a report, give its launches to cases, and write the results: in place where no output is named."""
    from gpuprof.ncu.importing import match_launches
    from gpuprof.ncu.outcome import merge
    from gpuprof.ncu.read import read_report
    from gpuprof.ncu.tool import find_ncu

    signals.postpone()
    _check_readable(report)
    source = results_file(results)
    run = read_run(source)
    path = output or source
    check_writable(path, force or same_file(path, source))
    outcome, unmatched = match_launches(run, read_report(report, find_ncu(ncu_path)), report)
    signals.check()
    write_run(merge(run, outcome), path)
    for sentence in unmatched:
        tell(f"Left out: {sentence}.")
    say(f"Counters for {len(outcome.profiles)} of {len(run.cases)} cases from {report}")
    print_written(path)


def _check_readable(report: Path) -> None:
    """Refuse a report that cannot be opened before a reader of NVIDIA's is asked, whose words say less."""
    fix = "Name a .ncu-rep file that Nsight Compute wrote."
    try:
        if not report.is_file():
            raise InputError(f"There is no file {report}.", fix=nearest_file(report) or fix)
        with report.open("rb"):
            return
    except PATH_ERRORS as error:
        raise InputError(f"Cannot read {report}: {reason(error)}.", fix=fix) from error
