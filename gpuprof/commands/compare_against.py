# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compare the working tree with a revision of its repository: both versions measured in turns."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gpuprof import signals
from gpuprof.commands.compare_runs import show
from gpuprof.commands.gating import read_gates
from gpuprof.commands.output import RUNS, Outputs, print_written
from gpuprof.commands.profile import exit_code
from gpuprof.commands.progress import watch
from gpuprof.commands.repository import Repository
from gpuprof.commands.texts import preprocessing_of, selected
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError
from gpuprof.files import check_writable
from gpuprof.kernels.catalog import Ladder
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import Preprocessing
from gpuprof.measure.case import Case
from gpuprof.measure.protocol import Opened
from gpuprof.measure.request import Request, Selection
from gpuprof.measure.run import Keep, Progress, measure_in_turns
from gpuprof.options import Given, SelectOptions
from gpuprof.results import Measurement, Run
from gpuprof.store import ResultsFile


def compare_against(given: Given, paths: Sequence[Path]) -> ExitCode:
    """Measure kernels as they are here and as they were at a revision, in turns, and compare.

    Both versions are compiled and measured by this gpuprof: only kernels differ, their headers and what they
    include from the repository included.
    """
    from gpuprof.comparison.compared import compare_runs

    outputs = Outputs.of(given.output)
    gates = read_gates(given.gate.fail_on, with_base=True)
    select, revision = given.select, str(given.select.against)
    folder = given.output.output or RUNS / f"compare-{datetime.now():%Y%m%d-%H%M%S}"
    base, new = folder / "base.json", folder / "new.json"
    signals.postpone()
    repository = Repository.around(tuple(paths))
    # The page stands beside the results files unless it is named.
    outputs = replace(outputs, named={"html": folder / "comparison.html", **outputs.named})
    outputs.check([base, new])
    for file in (base, new):
        check_writable(file, outputs.force)
    commit = repository.commit(revision)
    command = preprocessing_of(select)
    folders = _typed_within(repository, command)
    with (
        repository.version(commit, folders.values()) as checkout,
        watch(quiet=given.output.quiet) as progress,
    ):
        runs = measure_in_turns(
            _requests(repository, select, command, checkout, revision),
            given.run,
            _Both(progress),
            argv=tuple(sys.argv[1:]),
            keep=(_keeper(base, outputs.force), _keeper(new, outputs.force)),
        )
    name = revision if commit.startswith(revision) else f"{revision} ({commit[:9]})"
    compared = compare_runs(*runs, base_name=name, new_name="working tree", force=True)
    status = show([compared], gates, outputs, given.gate, quiet=given.output.quiet)
    print_written(base, new, aside=bool(outputs.printed))
    if not runs[1].complete:
        tell("Stopped early: the files hold what was measured until then.")
        return ExitCode.INTERRUPTED
    return exit_code(runs[1]) or status


def _keeper(path: Path, replace_it: bool) -> Keep:
    """Opens one of the files."""

    def keep(run: Run) -> ResultsFile:
        path.parent.mkdir(parents=True, exist_ok=True)
        return ResultsFile(path, run, replace=replace_it)

    return keep


def _requests(
    repository: Repository, select: SelectOptions, command: Preprocessing, checkout: Path, revision: str
) -> tuple[Request, Request]:
    """What to measure of the base, and of the working tree."""
    here = [repository.root / path for path in repository.paths]
    there = [checkout / path for path in repository.paths]
    for path, old in zip(repository.paths, there, strict=True):
        if not old.exists():
            raise InputError(
                f"There is no {path} at {revision}.", fix="Name what both versions have, or another revision."
            )
    new = selected(ladder_of(here, command=command), select, command)
    folders = _typed_within(repository, command)
    old_folders = (checkout / folders[path] if path in folders else path for path in command.include)
    old_command = replace(command, include=tuple(old_folders))
    base_ladder = _ladder_at(there, checkout, old_command, revision)
    if base_ladder.operation.name != new.operation.name:
        raise InputError(
            f"At {revision} it is the operation {base_ladder.operation.name}, here {new.operation.name}.",
            fix="Compare versions of one operation.",
        )
    if not select.kernel:
        same_sizes = replace(select, sizes=select.sizes or new.operation.default_sizes)
        return selected(base_ladder, same_sizes, command), new
    known = {kernel.id: kernel for kernel in base_ladder.kernels}
    selections = tuple(
        Selection(known[selection.kernel.id], _known_params(selection, known), selection.name)
        for selection in new.selections
        if selection.kernel.id in known
    )
    if not selections:
        raise InputError(f"None of these kernels is there at {revision}.", fix="Drop -k, or name others.")
    return replace(new, ladder=base_ladder, selections=selections), new


def _typed_within(repository: Repository, command: Preprocessing) -> Mapping[Path, Path]:
    """The folders of `-I` that are the repository's, from its root: each version has its own."""
    resolved = {path: path.resolve() for path in command.include}
    return {
        path: place.relative_to(repository.root)
        for path, place in resolved.items()
        if place.is_relative_to(repository.root)
    }


def _ladder_at(paths: list[Path], checkout: Path, command: Preprocessing, revision: str) -> Ladder:
    """The kernels at a revision; what ails them is told by the names that they have in the repository."""
    try:
        return ladder_of(paths, command=command)
    except InputError as error:
        what = error.what.replace(f"{checkout}{os.sep}", "")
        raise InputError(
            f"At {revision}: {what}", fix=error.fix.replace(f"{checkout}{os.sep}", "")
        ) from error


def _known_params(selection: Selection, known: Mapping[str, Any]) -> tuple[Mapping[str, int], ...]:
    """The parameters asked for, without those that the kernel did not have then."""
    parameters = known[selection.kernel.id].parameters
    found = [
        {name: value for name, value in values.items() if name in parameters} for values in selection.params
    ]
    return tuple(values for index, values in enumerate(found) if values not in found[:index])


class _Both(Progress):
    """One display for two runs: their cases are counted together, and the device is named once."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._cases: list[int] = []

    def opened(self, opened: Opened, cases: int) -> None:
        self._cases.append(cases)
        if len(self._cases) == 2:
            self._shown.opened(opened, sum(self._cases))

    def started(self, case: Case) -> None:
        self._shown.started(case)

    def finished(self, measurement: Measurement) -> None:
        self._shown.finished(measurement)
