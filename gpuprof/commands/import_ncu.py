# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof import`: add the counters of a Nsight Compute report to a results file."""

import sys
from pathlib import Path

from gpuprof.commands.output import print_written
from gpuprof.errors import InputError
from gpuprof.files import check_writable
from gpuprof.results import read_run, write_run


def import_report(
    report: Path, results: Path, output: Path | None, ncu_path: str | None, *, force: bool = False
) -> None:
    """Read a report, give its launches to cases, and write the results.

    Args:
        report: A `.ncu-rep` file.
        results: The results file that it belongs to.
        output: Where to write; None to replace `results`.
        ncu_path: The ncu that reads the report; None to look for one.
        force: Whether another existing file may be replaced.

    Raises:
        GpuprofError: The report or the results cannot be read, or no launch belongs to a case.
    """
    from gpuprof.ncu.find import find_ncu
    from gpuprof.ncu.importing import match_launches
    from gpuprof.ncu.outcome import merge
    from gpuprof.ncu.problems import NcuError
    from gpuprof.ncu.read import read_report

    if not report.is_file():
        raise InputError(f"There is no file {report}.", fix="Name a .ncu-rep file that Nsight Compute wrote.")
    run = read_run(results)
    path = output or results
    check_writable(path, force or path.resolve() == results.resolve())
    try:
        ncu = find_ncu(ncu_path)
    except NcuError:
        if ncu_path:
            raise
        ncu = None
    imported = match_launches(run, read_report(report, ncu), report)
    write_run(merge(run, imported.outcome), path)
    for sentence in imported.unmatched:
        print(f"Left out: {sentence}.", file=sys.stderr)
    print(f"Counters for {len(imported.outcome.profiles)} of {len(run.cases)} cases from {report}")
    print_written(path)
