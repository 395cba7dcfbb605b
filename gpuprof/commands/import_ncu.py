# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof import`: add the counters of a Nsight Compute report to a results file."""

from pathlib import Path

from gpuprof import signals
from gpuprof.commands.output import print_written
from gpuprof.console import say, tell
from gpuprof.errors import PATH_ERRORS, InputError, nearest_file, reason
from gpuprof.files import check_writable, same_file
from gpuprof.reading import read_run, results_file
from gpuprof.store import write_run


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
