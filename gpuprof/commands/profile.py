# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof gemm` and `gpuprof transpose`: measure a ladder, show it, write its files."""

import sys
from dataclasses import dataclass
from pathlib import Path

from gpuprof.commands.output import print_written, write_report
from gpuprof.commands.progress import watch
from gpuprof.errors import ExitCode
from gpuprof.measure.request import Request
from gpuprof.measure.run import RunOptions, check_writable, default_json_path, measure
from gpuprof.results import Run


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the files of a run go.

    Args:
        directory: `-o`: holds results.json and report.html.
        json: `--json`, when given.
        html: `--html`, when given.
        force: Whether existing files may be replaced.
    """

    directory: Path | None
    json: Path | None
    html: Path | None
    force: bool

    def paths(self, op: str) -> tuple[Path, Path]:
        """The results file and the report.

        A lone `--json` or `--html` puts the other one beside it.
        """
        directory = self.directory
        if directory is None:
            named = self.json or self.html
            directory = named.parent if named else default_json_path(op).parent
        json = self.json or directory / (f"{self.html.stem}.json" if self.html else "results.json")
        html = self.html or directory / (f"{self.json.stem}.html" if self.json else "report.html")
        return json, html


def profile(request: Request, options: RunOptions, destination: Destination, *, quiet: bool) -> ExitCode:
    """Measure, print the table, write the report and name the files.

    Args:
        request: What to measure.
        options: How.
        destination: Where the files go.
        quiet: Whether to leave out progress and table.

    Returns:
        The command's exit status.

    Raises:
        GpuprofError: For bad input or a missing device; nothing measured is lost.
    """
    json_path, html_path = destination.paths(request.op)
    for path in (json_path, html_path):
        check_writable(path, destination.force)
    with watch(quiet=quiet) as progress:
        run = measure(request, options, progress, argv=tuple(sys.argv[1:]), json_path=json_path)
    if not quiet:
        from gpuprof.report.terminal import print_run

        print_run(run, file=sys.stdout)
    write_report(run, html_path)
    print_written(json_path, html_path)
    if not run.complete:
        print("Stopped early: the files hold what was measured until then.", file=sys.stderr)
        return ExitCode.INTERRUPTED
    return exit_code(run)


def exit_code(run: Run) -> ExitCode:
    """0 unless a kernel was wrong, timed out or broke; asking for more than the device has is no fault."""
    for case in run.cases:
        if case.outcome in ("incorrect", "timeout") or (case.outcome == "failed" and not case.over_limit):
            return ExitCode.CASES_FAILED
    return ExitCode.OK
