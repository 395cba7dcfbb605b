# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The commands that measure: measure a ladder, show it, write its files."""

import shutil
import sys
import threading
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from gpuprof import signals, timeline
from gpuprof.analysis.numbers import plural
from gpuprof.analysis.status import status_of
from gpuprof.commands.gating import hold
from gpuprof.commands.output import RunOutputs, open_report, print_written
from gpuprof.commands.progress import watch
from gpuprof.commands.resuming import (
    finished_run,
    go_on,
    how_to_go_on,
    name_on_command_line,
    refuse_what_was_stopped,
    tell_stopped,
)
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError, OutputError, did_you_mean
from gpuprof.measure.request import Request
from gpuprof.measure.run import measure
from gpuprof.options import CounterOptions, Given
from gpuprof.results import Measurement, Run
from gpuprof.store import ResultsFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuprof.comparison.gates import GateCondition
    from gpuprof.ncu.invocation import NcuOptions


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
    outputs = RunOutputs.of_run(given.output, f"{request.operation.name}-{datetime.now():%Y%m%d-%H%M%S}")
    ncu = ncu_options(given.count)
    if ncu is not None and options.cluster is not None:
        raise InputError(
            "--ncu does not go with --cluster: Nsight Compute profiles on this machine.",
            fix="Leave one of them out.",
        )
    signals.postpone()
    if outputs.is_named and not (outputs.force or outputs.resumes):
        refuse_what_was_stopped(outputs.json)
    outputs.check()
    # Where standard output is one of the files, whatever else there is to read goes to standard error.
    piped = bool(outputs.printed)

    def keep(run: Run) -> ResultsFile:
        file = go_on(outputs.json, run) if outputs.resumes else outputs.open(run)
        threading.Thread(target=_load_report, daemon=True).start()
        return file

    finished = None
    if outputs.resumes:
        finished = finished_run(outputs.json, request, options, counters=ncu is not None)
    outcome = None
    with watch(quiet=quiet) as progress:
        try:
            run = finished or measure(
                request, options, progress, argv=given.argv, keep=keep, resumes=outputs.resumes
            )
            if ncu is not None and run.complete and not finished:
                if run.backend == "gpu":
                    from gpuprof.ncu.collecting import add_counters

                    run, outcome = add_counters(run, request, outputs.json, options, ncu, progress.profiling)
                else:
                    tell("--ncu needs a GPU: Nsight Compute was not run.")
        except OutputError as error:
            if error.run is not None and not quiet:
                _print(error.run, outputs, table=table)
            raise
    if outcome is not None and outcome.problem is not None:
        tell(f"No counters: {outcome.problem.what}")
        tell(f"  {outcome.problem.fix}")
    if not quiet:
        with timeline.span("table"):
            _print(run, outputs, table=table)
    written = outputs.write_beside(run)
    print_written(*written, *(outcome.reports if outcome else ()), aside=piped)
    if given.output.open_:
        open_report(outputs.html)
    how = how_to_go_on(outputs.json, named=outputs.is_named, resumes=outputs.resumes)
    if not run.complete:
        return tell_stopped(how)
    if outcome is not None and outcome.stopped:
        return tell_stopped(how, "while Nsight Compute counted", "what was measured, and its counters so far")
    held = hold(run, gates, strict=given.gate.strict, quiet=quiet, aside=piped)
    return _end(run, held, quiet=quiet)


def _end(run: Run, held: ExitCode, *, quiet: bool) -> ExitCode:
    """Say how a run ended, or quietly only what failed; the status, to which gates led that `held`."""
    status = exit_code(run) or held
    words = Counter(status_of(run, case).word for case in run.cases)
    counts = (
        *(f"{number} {word}" for word, number in words.items()),
        *(["gates not passed"] if held else []),
    )
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


def _print(run: Run, outputs: RunOutputs, *, table: bool) -> None:
    from gpuprof.report.run_text import show_run

    place = f" {name_on_command_line(outputs.json)}" if outputs.is_named else ""
    hint = f"All rows: --table    Report: gpuprof report{place} --open"
    show_run(run, file=sys.stderr if outputs.printed else sys.stdout, table=table, hint=hint)


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
