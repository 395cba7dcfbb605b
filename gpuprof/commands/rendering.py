# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof report` and `import`: a results file as a page, Markdown or CSV; counters added to it."""

import os
import sys
from pathlib import Path

from gpuprof import signals
from gpuprof.commands.gating import hold, read_gates
from gpuprof.commands.output import (
    STANDARD_OUTPUT,
    check_report_path,
    check_table_path,
    latest_results,
    open_report,
    print_written,
    refuse_two_printed,
    text_of,
    write_file,
    write_or_print,
    write_report,
)
from gpuprof.console import hand_over, say, say_lines, tell
from gpuprof.errors import PATH_ERRORS, ExitCode, InputError, nearest_file, reason
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_distinct, check_writable, same_file
from gpuprof.options import Given
from gpuprof.reading import read_run, results_file
from gpuprof.store import write_run


def report(given: Given, results: Path | None, markdown: bool) -> ExitCode:
    """Make what is wanted of a results file, by default of the newest; hold the run against gates."""
    wanted = given.output
    source = results_file(results or latest_results())
    main = _within(wanted.output, f"{source.stem}.md" if markdown else _page_name(source))
    csv = _within(wanted.csv, f"{source.stem}.csv")
    printed = main == STANDARD_OUTPUT or (markdown and main is None)
    refuse_two_printed(csv, STANDARD_OUTPUT if printed else None)
    if wanted.open_ and (printed or markdown):
        raise InputError(
            "--open needs a page in a file.", fix="Drop --open, or --markdown and -o - beside it."
        )
    if csv not in (None, STANDARD_OUTPUT) and main is not None:
        check_distinct(csv, main)
    gates = read_gates(given.gate.fail_on, with_base=False)
    run = read_run(source)
    # Standard output holds a page or CSV, and nothing else.
    aside = csv == STANDARD_OUTPUT or (main == STANDARD_OUTPUT and not markdown)
    written = []
    _check_table(csv, source, wanted.force)
    if markdown:
        from gpuprof.report.markdown import markdown_of
        from gpuprof.report.run_text import run_report

        text = markdown_of(run_report(run))
        _check_table(main, source, wanted.force)
        if main is None or printed:
            say_lines(text)
        else:
            if gates:
                from gpuprof.comparison.gates import hold_run
                from gpuprof.report.compared_text import gates_report

                text += f"\n{markdown_of(gates_report(hold_run(gates, run)))}"
            write_file(main, text)
            written.append(main)
    elif main == STANDARD_OUTPUT:
        hand_over(text_of(run, "html"))
    elif csv is None or main is not None or wanted.open_:  # CSV alone is asked for without a page
        page = main or source.with_name(_page_name(source))
        check_distinct(source, page)
        check_report_path(page, wanted.force)
        if not wanted.quiet:
            from gpuprof.report.run_text import show_run

            file = sys.stderr if aside else sys.stdout
            show_run(run, file=file, table=wanted.table, hint="All rows: --table")
        write_report(run, page)
        written.append(page)
    if csv is not None:
        written += write_or_print(csv, text_of(run, "csv"))
    print_written(*written, aside=aside)
    if wanted.open_:
        open_report(written[0])
    in_markdown = markdown and printed
    quiet = wanted.quiet and not in_markdown
    return hold(run, gates, strict=given.gate.strict, quiet=quiet, markdown=in_markdown, aside=aside)


def _within(path: Path | None, name: str) -> Path | None:
    """A file of this name where the path is a folder; else the path."""
    # os.path.isdir is False, and no error, for names that no file can have.
    return path / name if path is not None and os.path.isdir(path) else path


def _page_name(source: Path) -> str:
    """What the page of a results file is called: as the run called it that named its files itself."""
    return REPORT_NAME if source.name == RESULTS_NAME else f"{source.stem}.html"


def _check_table(path: Path | None, source: Path, force: bool) -> None:
    if path is not None and path != STANDARD_OUTPUT:
        check_distinct(source, path)
        check_table_path(path, force)


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
