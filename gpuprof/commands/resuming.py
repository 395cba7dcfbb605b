# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`--resume`: what the commands that measure say and do about runs that were stopped."""

import shlex
from collections.abc import Callable
from pathlib import Path

from gpuprof.analysis.numbers import plural
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError, ResultsError
from gpuprof.files import RESULTS_NAME
from gpuprof.measure.request import Request
from gpuprof.measure.resume import check_same_request, continued
from gpuprof.options import RunOptions
from gpuprof.reading import read_run
from gpuprof.results import Run
from gpuprof.store import ResultsFile, is_being_written


def go_on(path: Path, now: Run, told: Callable[[str], None] = tell) -> ResultsFile:
    """Open the file of a run that was stopped, and say what it holds."""

    def read() -> Run:
        run = continued(read_run(path), now, path)
        told(f"{path} holds {plural(len(run.cases), 'case')}: they are not measured again.")
        return run

    return ResultsFile.resumed(path, read)


def finished_run(
    path: Path,
    request: Request,
    options: RunOptions,
    *,
    counters: bool,
    told: Callable[[str], None] = tell,
) -> Run | None:
    """A run to which nothing is left to add; None for one that goes on."""
    run = read_run(path)
    if not run.complete:
        return None
    check_same_request(run, request, options, path)
    if counters:
        from gpuprof.ncu.outcome import lacks_counters

        if lacks_counters(run):
            return None
    told(f"{path} holds the whole run: nothing is left to measure.")
    return run


def refuse_what_was_stopped(path: Path) -> None:
    """Name `--resume` where a new run would stand in the place of one that was stopped."""
    try:
        # Asked first: a run that ends meanwhile has been read whole.
        written, run = is_being_written(path), read_run(path)
    except ResultsError:
        return
    if written or run.complete:
        return
    raise InputError(
        f"{path} holds {plural(len(run.cases), 'case')} of a run that was stopped.",
        fix=f"{how_to_go_on(path)}. Or name another path, or add --force to replace it.",
    )


def tell_stopped(how: str, when: str = "early", held: str = "what was measured until then") -> ExitCode:
    """Say that a run was stopped, and how it goes on; the status that it ends with."""
    tell(f"Stopped {when}: the files hold {held}.")
    tell(f"  {how}")
    return ExitCode.INTERRUPTED


def how_to_go_on(path: Path, *, named: bool = True, resumes: bool = False) -> str:
    """What to type when a run was stopped, whose place was `named`."""
    more = f"and --resume {name_on_command_line(path)}{' in place of -o' if named else ''}"
    return f"Continue with the same command{'' if resumes else f' {more}'}"


def name_on_command_line(path: Path) -> str:
    """A run as one types it: its folder, where its results file has the usual name."""
    return shlex.quote(str(path.parent if path.name == RESULTS_NAME else path))
