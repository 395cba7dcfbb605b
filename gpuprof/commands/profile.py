# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The commands that measure: measure a ladder, show it, write its files."""

import itertools
import shutil
import sys
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import signals, timeline
from gpuprof.analysis.numbers import plural
from gpuprof.analysis.status import status_of
from gpuprof.commands.gating import hold
from gpuprof.commands.output import (
    RUNS,
    Outputs,
    check_output,
    link_latest,
    open_report,
    print_written,
    text_of,
    write_file,
    write_report_beside,
)
from gpuprof.commands.progress import watch
from gpuprof.commands.resuming import (
    finished_run,
    go_on,
    name_on_command_line,
    refuse_what_was_stopped,
    tell_stopped,
)
from gpuprof.console import hand_over, tell
from gpuprof.errors import ExitCode, InputError, OutputError, did_you_mean, nearest_file, reason
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_distinct, check_writable
from gpuprof.measure.request import Request
from gpuprof.measure.run import measure
from gpuprof.options import CounterOptions, Given, OutputOptions
from gpuprof.results import Measurement, Run
from gpuprof.store import ResultsFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuprof.comparison.gates import GateCondition
    from gpuprof.ncu.invocation import NcuOptions


@dataclass(slots=True)
class Destination:
    """Where the files of a run go; `prints` is what standard output gets in the place of a file."""

    json: Path
    html: Path
    force: bool = False
    csv: Path | None = None
    prints: str = ""
    is_named: bool = True
    resumes: bool = False

    @classmethod
    def of(cls, output: OutputOptions, operation: str, started: datetime) -> "Destination":
        """`-o`, else the folder of the one file that is named, else a new one for this second.

        A lone `--json` or `--html` puts the other one beside it.
        """
        printed, resume = Outputs.wanted(output).printed, output.resume
        json, html, csv = (
            None if kind == printed else getattr(output, kind) for kind in ("json", "html", "csv")
        )
        if resume is not None and (output.output or json or output.force):
            raise InputError(
                "--resume names the run, and where its files are: -o, --json and --force do not go with it.",
                fix="Leave them out.",
            )
        if resume is not None and not resume.is_dir():
            json = resume
            html = html or resume.with_name(f"{resume.stem}.html")
        named = json or html
        own = RUNS / f"{operation}-{started:%Y%m%d-%H%M%S}"
        folder = resume or output.output or (named.parent if named else own)
        return cls(
            json or folder / (f"{html.stem}.json" if html else RESULTS_NAME),
            html or folder / (f"{json.stem}.html" if json else REPORT_NAME),
            output.force,
            csv,
            printed,
            is_named=bool(output.output or named or resume),
            resumes=resume is not None,
        )

    def check(self) -> None:
        """Refuse paths that cannot be written, before any work is done."""
        check_distinct(self.json, self.html)
        if self.resumes:
            if not self.json.is_file():
                raise InputError(
                    f"There is no run to resume: {self.json} does not exist.",
                    fix=nearest_file(self.json) or "Begin one with -o.",
                )
            check_output(self.html, force=False)
        else:
            if self.is_named and not self.force:
                refuse_what_was_stopped(self.json)
            for path in (self.json, self.html):
                # What stands where nothing was named is another run's of this second: `open` goes elsewhere.
                check_writable(path, self.force or not self.is_named, "Name another place with -o.")
        if self.csv is not None:
            for path in (self.json, self.html):
                check_distinct(path, self.csv)
            check_output(self.csv, self.force)

    def open(self, run: Run) -> ResultsFile:
        """Claim the results file; a run that names no place gets a directory of its own."""
        if self.resumes:
            return go_on(self.json, run)
        if self.is_named:
            return ResultsFile(self.json, run, replace=self.force)
        wanted = directory = self.json.parent
        for number in itertools.count(2):
            try:
                directory.mkdir(parents=True)
                break
            except FileExistsError:  # another run of this second
                directory = wanted.with_name(f"{wanted.name}-{number}")
            except OSError as error:
                raise InputError(
                    f"Cannot write {directory}: {reason(error)}.", fix="Name another place with -o."
                ) from error
        self.json, self.html = directory / self.json.name, directory / self.html.name
        return ResultsFile(self.json, run, replace=False)


def ncu_options(count: CounterOptions) -> "NcuOptions | None":
    """How to profile with Nsight Compute, or None where it is not wanted."""
    path, clocks = count.ncu_path, count.ncu_clocks
    if path and shutil.which(path) is None:
        raise InputError(
            f"--ncu-path {path} is not a program that can be run.", fix="Name the ncu of Nsight Compute."
        )
    if not count.ncu:
        if path or count.ncu_set or clocks != "none":
            raise InputError("Options of Nsight Compute have no effect without --ncu.", fix="Add --ncu.")
        return None
    from gpuprof.ncu.invocation import NcuOptions

    if clocks not in ("none", "base"):
        fix = did_you_mean(clocks, ("none", "base"), "Choose none or base.")
        raise InputError(f"--ncu-clocks {clocks!r} is not a setting.", fix=fix)
    return NcuOptions(path, count.ncu_set, clocks)


def profile(request: Request, given: Given, gates: "Sequence[GateCondition]" = ()) -> ExitCode:
    """Measure, print the answer, write the report, name the files and hold the run against gates."""
    options, table, quiet = given.run, given.output.table, given.output.quiet
    destination = Destination.of(given.output, request.operation.name, datetime.now())
    ncu = ncu_options(given.count)
    if ncu is not None and options.cluster is not None:
        raise InputError(
            "--ncu does not go with --cluster: Nsight Compute profiles on this machine.",
            fix="Leave one of them out.",
        )
    signals.postpone()
    destination.check()
    # Where standard output is one of the files, whatever else there is to read goes to standard error.
    piped = bool(destination.prints)

    def keep(run: Run) -> ResultsFile:
        file = destination.open(run)
        threading.Thread(target=_load_report, daemon=True).start()
        return file

    finished = None
    if destination.resumes:
        finished = finished_run(destination.json, request, options, counters=ncu is not None)
    outcome = None
    with watch(quiet=quiet) as progress:
        try:
            run = finished or measure(request, options, progress, argv=given.argv, keep=keep)
            if ncu is not None and run.complete and not finished:
                if run.backend == "gpu":
                    from gpuprof.ncu.collecting import add_counters

                    run, outcome = add_counters(
                        run, request, destination.json, options, ncu, progress.profiling
                    )
                else:
                    tell("--ncu needs a GPU: Nsight Compute was not run.")
        except OutputError as error:
            if error.run is not None and not quiet:
                _print(error.run, destination, table=table)
            raise
    if outcome is not None and outcome.problem is not None:
        tell(f"No counters: {outcome.problem.what}")
        tell(f"  {outcome.problem.fix}")
    json_path, html_path = destination.json, destination.html
    written = [json_path, html_path, *(outcome.reports if outcome else ())]
    if not quiet:
        with timeline.span("table"):
            _print(run, destination, table=table)
    with timeline.span("page"):
        write_report_beside(run, json_path, html_path, aside=piped)
    if not destination.is_named:
        link_latest(json_path.parent)
    if destination.csv is not None:
        write_file(destination.csv, text_of(run, "csv"))
        written.append(destination.csv)
    if destination.prints:
        hand_over(text_of(run, destination.prints))
    print_written(*written, aside=piped)
    if given.output.open_:
        open_report(html_path)
    if not run.complete:
        return tell_stopped(json_path)
    if outcome is not None and outcome.stopped:
        return tell_stopped(
            json_path, "while Nsight Compute counted", "what was measured, and its counters so far"
        )
    held = hold(run, gates, strict=given.gate.strict, quiet=quiet, aside=piped)
    status = exit_code(run) or held
    words = Counter(status_of(run, case).word for case in run.cases)
    counts = (f"{number} {word}" for word, number in words.items())
    ended = f"Status {status}: {', '.join((plural(len(run.cases), 'case'), *counts))}."
    if not quiet:
        tell(ended)
    elif exit_code(run):  # gates have said what failed
        blamed = failing_case(run) or next((case for case in run.cases if case.reason), None)
        tell(f"{ended} {blamed.kernel} {blamed.problem.label}: {blamed.reason}" if blamed else ended)
    return status


def _load_report() -> None:
    """Load what table and page take while there is nothing else to do; what is missing is told there."""
    with suppress(Exception):
        from gpuprof.report.html import prepare
        from gpuprof.report.run_text import show_run  # noqa: F401

        prepare()


def _print(run: Run, destination: Destination, *, table: bool) -> None:
    from gpuprof.report.run_text import show_run

    place = f" {name_on_command_line(destination.json)}" if destination.is_named else ""
    hint = f"All rows: --table    Report: gpuprof report{place} --open"
    show_run(run, file=sys.stderr if destination.prints else sys.stdout, table=table, hint=hint)


def exit_code(run: Run) -> ExitCode:
    """0 unless a kernel was wrong, timed out or broke, or none could be measured.

    Asking for more than the device has is no fault as long as another case could be measured. Where nothing
    is executed, a kernel that compiled is done.
    """
    if failing_case(run) is not None:
        return ExitCode.CASES_FAILED
    done = any(status_of(run, case).usable and not case.is_reference for case in run.cases)
    return ExitCode.OK if done else ExitCode.CASES_FAILED


def failing_case(run: Run) -> Measurement | None:
    """The first case that makes a run fail; None where none does by itself."""
    measured = any(case.outcome == "ok" for case in run.cases)
    for case in run.cases:
        excused = case.over_limit and measured
        if case.outcome in ("incorrect", "timeout") or (case.outcome == "failed" and not excused):
            return case
    return None
