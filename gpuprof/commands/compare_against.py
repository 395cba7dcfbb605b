# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compare the working tree with a revision of its repository: both versions measured in turns."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuprof import signals
from gpuprof.commands.compare_place import ComparePlace
from gpuprof.commands.compare_runs import Outputs, show
from gpuprof.commands.output import print_written
from gpuprof.commands.profile import exit_code
from gpuprof.commands.progress import watch
from gpuprof.commands.repository import Repository
from gpuprof.commands.resuming import how_to_go_on
from gpuprof.commands.texts import preprocessing_of, selected
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError
from gpuprof.kernels.catalog import Ladder
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import Preprocessing
from gpuprof.measure.case import Case
from gpuprof.measure.options import RunOptions, SelectOptions
from gpuprof.measure.protocol import Opened
from gpuprof.measure.request import Request, Selection
from gpuprof.measure.run import Progress, measure_in_turns
from gpuprof.results import Measurement, Run

if TYPE_CHECKING:
    from gpuprof.comparison.gates import Gate


def compare_against(
    revision: str,
    paths: Sequence[Path],
    select: SelectOptions,
    options: RunOptions,
    gates: "Sequence[Gate]",
    outputs: Outputs,
    place: ComparePlace,
    *,
    strict: bool,
    quiet: bool,
) -> ExitCode:
    """Measure kernels as they are here and as they were at a revision, in turns, and compare.

    Both versions are compiled and measured by this gpuprof: only kernels differ, their headers and what they
    include from the repository included.
    """
    signals.postpone()
    repository = Repository.around(tuple(paths))
    outputs = place.check(outputs)
    commit = repository.commit(revision)
    command = preprocessing_of(select)
    folders = _typed_within(repository, command)
    with repository.version(commit, folders.values()) as checkout:
        requests = _requests(repository, select, command, checkout, revision)
        base, new = place.finished(requests, options) or _measured(requests, options, place, outputs, quiet)
    return _told(revision, commit, (base, new), place, gates, outputs, strict=strict, quiet=quiet)


def _measured(
    requests: tuple[Request, Request], options: RunOptions, place: ComparePlace, outputs: Outputs, quiet: bool
) -> tuple[Run, Run]:
    with watch(quiet=quiet) as progress:
        return measure_in_turns(
            requests,
            options,
            _Both(progress),
            argv=tuple(sys.argv[1:]),
            keep=(place.keeper(place.base, outputs.force), place.keeper(place.new, outputs.force)),
        )


def _told(
    revision: str,
    commit: str,
    runs: tuple[Run, Run],
    place: ComparePlace,
    gates: "Sequence[Gate]",
    outputs: Outputs,
    *,
    strict: bool,
    quiet: bool,
) -> ExitCode:
    from gpuprof.comparison.compared import compare_runs

    name = revision if commit.startswith(revision) else f"{revision} ({commit[:9]})"
    compared = compare_runs(*runs, base_name=name, new_name="working tree", force=True)
    status = show([compared], gates, outputs, strict=strict, quiet=quiet)
    print_written(place.base, place.new, aside=outputs.prints)
    if not runs[1].complete:
        tell("Stopped early: the files hold what was measured until then.")
        tell(f"  {how_to_go_on(place.folder)}")
        return ExitCode.INTERRUPTED
    return exit_code(runs[1]) or status


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


class _Both:
    """One display for two runs: their cases are counted together, and the device is named once."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._cases: list[int] = []

    def opened(self, opened: Opened, cases: int) -> None:
        """Pass on the sum when both are open."""
        self._cases.append(cases)
        if len(self._cases) == 2:
            self._shown.opened(opened, sum(self._cases))

    def started(self, case: Case) -> None:
        """A case begins."""
        self._shown.started(case)

    def finished(self, measurement: Measurement) -> None:
        """A case is done."""
        self._shown.finished(measurement)

    def profiling(self, case: Case) -> None:
        """Nsight Compute turns to a case."""
        self._shown.profiling(case)
