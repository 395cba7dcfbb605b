# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune`: search, show what was found, write its files, and the kernel's where asked."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuprof import signals
from gpuprof.commands.browser import open_report
from gpuprof.commands.latest import RUNS, link_latest
from gpuprof.commands.output import print_written, write_report_beside
from gpuprof.commands.search_progress import watch_search
from gpuprof.commands.texts import (
    choose_kernels,
    choose_references,
    parse_assignments,
    parse_blocks,
    parse_values,
)
from gpuprof.commands.tune_writing import check_sources, write_best
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError, OutputError, did_you_mean
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_writable
from gpuprof.kernels.catalog import Ladder, shipped_ladder, shipped_names
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing
from gpuprof.measure.options import RunOptions, SelectOptions
from gpuprof.measure.request import make_request
from gpuprof.problems.sizes import parse_sizes
from gpuprof.results import Measurement, ProblemRecord, Run
from gpuprof.store import ResultsFile
from gpuprof.tuning.continuing import Continued, find_earlier
from gpuprof.tuning.search_plan import Plan, read_budget
from gpuprof.tuning.space import Space, Wanted, make_space
from gpuprof.tuning.tuner import Tuner


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for, as far as it is text."""

    what: tuple[str, ...]
    select: SelectOptions = field(default_factory=SelectOptions)
    values: tuple[str, ...] = ()
    command: Preprocessing = NOTHING
    budget: str = "20"


@dataclass(frozen=True, slots=True)
class TuneOutputs:
    """Where what was found goes: `-o`, or a folder below `gpuprof-results` that is named after the kernel."""

    directory: Path | None
    force: bool = False
    quiet: bool = False
    write: bool = False
    browser: bool = False


def run_search(asked: Asked, options: RunOptions, outputs: TuneOutputs, argv: tuple[str, ...]) -> ExitCode:
    """Search, print the answer, write results and report, and name the files.

    Returns:
        The command's exit status.

    Raises:
        GpuprofError: For bad input or a missing device; nothing measured is lost.
    """
    plan, sources = make_plan(asked, options)
    if outputs.write:
        check_sources([axes.kernel for axes in plan.space.axes], sources)
    signals.postpone()
    _tell_space(plan.space)
    request = plan.request
    place = _Place(outputs, _name_of(plan), request.problem(request.sizes[0], {}).record())
    with (
        watch_search(quiet=outputs.quiet) as watcher,
        Tuner(plan, watcher, argv=argv, keep=place.keep, earlier=place.earlier) as tuner,
    ):
        try:
            run = tuner.search()
        except OutputError as error:
            before = f"What was written before is in {place.asked_for}"
            raise OutputError(
                error.what, fix=f"{before}: make room, and the same command continues."
            ) from error
    if not outputs.quiet:
        from gpuprof.report.shown import show_run

        show_run(run, file=sys.stdout)
    written = [place.asked_for, place.asked_for.with_name(REPORT_NAME)]
    write_report_beside(run, *written)
    if outputs.directory is None:
        link_latest(place.asked_for.parent)
    if outputs.write and run.complete:
        kernels = {axes.kernel.id: axes.kernel for axes in plan.space.axes}
        written += write_best(run, kernels, sources, plan.request.operation)
    print_written(*written)
    if outputs.browser:
        open_report(written[1])
    if not run.complete:
        tell("Stopped early: the best until then is kept, and the same command continues from there.")
        return ExitCode.INTERRUPTED
    return exit_code(run)


def exit_code(run: Run) -> ExitCode:
    """0 where every size has an answer. A wrong point is a finding of the search, no failure of it."""
    sizes = run.tuning.sizes if run.tuning else ()
    return ExitCode.OK if sizes and all(size.ties for size in sizes) else ExitCode.CASES_FAILED


def make_plan(asked: Asked, options: RunOptions) -> tuple[Plan, dict[str, Path]]:
    """The search that is asked for, and the file of each kernel that is the user's own.

    Raises:
        InputError: Something of it makes no sense.
        HeaderError: A kernel file is faulty.
    """
    budget = read_budget(asked.budget)
    ladder, kernels, paths = find_ladder(asked)
    selections = choose_kernels(ladder, kernels, False, asked.command)
    wanted = Wanted(
        parse_values(list(asked.values)),
        parse_blocks(asked.select.block) if asked.select.block is not None else (),
    )
    operation = ladder.operation
    request = make_request(
        ladder,
        selections,
        parse_sizes(asked.select.sizes or operation.default_sizes, operation.dimensions),
        (),
        asked.select.dtype,
        parse_assignments(asked.select.set_ or []),
        choose_references(operation, asked.select.reference),
    )
    space = make_space(request.selections, wanted, named=bool(selections))
    own = [
        Path(name) for text in kernels for name in text.split(",") if name.partition(":")[0].endswith(".cu")
    ]
    return Plan(request, space, options, budget), files_of(request.ladder.kernels, [*paths, *own])


def files_of(kernels: Sequence[Kernel], paths: Sequence[Path]) -> dict[str, Path]:
    """The file of each kernel, where it is among the user's own."""
    files = [file for path in paths for file in (sorted(path.glob("*.cu")) if path.is_dir() else [path])]
    return {kernel.id: file for kernel in kernels for file in files if file.name == kernel.file_name}


def find_ladder(asked: Asked) -> tuple[Ladder, list[str], list[Path]]:
    """The ladder, the kernels to search of it, and paths of the user's own.

    Raises:
        InputError: There is no such kernel, or several operations have one.
        HeaderError: A kernel file is faulty.
    """
    kernels = list(asked.select.kernel or ())
    if all(text.endswith(".cu") or Path(text).exists() for text in asked.what):
        paths = [Path(text) for text in asked.what]
        return ladder_of(paths, command=asked.command), kernels, paths
    (name, *others) = asked.what
    if name in shipped_names() and not others:
        return shipped_ladder(name), kernels, []
    ladders = {operation: shipped_ladder(operation) for operation in shipped_names()}
    homes = {
        text: [name for name, ladder in ladders.items() if any(text == each.id for each in ladder.kernels)]
        for text in asked.what
    }
    for text, found in homes.items():
        if not found:
            known = (*ladders, *(kernel.id for ladder in ladders.values() for kernel in ladder.kernels))
            usual = "Name a .cu file, a folder, or an operation or kernel that `gpuprof list` shows."
            raise InputError(f"There is no kernel {text!r} to tune.", fix=did_you_mean(text, known, usual))
    common = [name for name in ladders if all(name in found for found in homes.values())]
    if not common:
        raise InputError("The kernels compute different operations.", fix="Tune one operation at a time.")
    if len(common) > 1:
        raise InputError(
            f"{name} is a kernel of {' and of '.join(common)}.", fix=f"gpuprof tune {common[0]} -k {name}"
        )
    return ladders[common[0]], [*asked.what, *kernels], []


def _name_of(plan: Plan) -> str:
    axes = plan.space.axes
    return axes[0].kernel.id if len(axes) == 1 else plan.request.operation.name


def _tell_space(space: Space) -> None:
    for axes in space.axes:
        if axes.kept and axes.count > 1:
            kept = ", ".join(f"{name} at {axes.values[name][0]}" for name in axes.kept)
            tell(f"{axes.kernel.id} keeps {kept}: no candidates are declared; --values adds some.")


class _Place:
    """Where the search's results file stands, and what of an earlier part of the search is there."""

    def __init__(self, outputs: TuneOutputs, name: str, problem: ProblemRecord) -> None:
        self._outputs = outputs
        self._problem = problem
        self._name = name
        self._earlier: Continued | None = None
        #: Where the results are asked for.
        self.asked_for = (outputs.directory or RUNS / f"tune-{name}") / RESULTS_NAME
        check_writable(self.asked_for, force=True)

    def earlier(self, run: Run) -> tuple[Measurement, ...]:
        """What was measured before in the same search; the place moves on where another search has it.

        Raises:
            InputError: The user named a place that holds something else.
        """
        if self._outputs.force:
            return ()
        number = 2
        while self.asked_for.exists():
            self._earlier = find_earlier(self.asked_for, run, self._problem)
            if not self._earlier.why_not:
                count = len(self._earlier.cases)
                points = "point is" if count == 1 else "points are"
                tell(f"Continuing {self.asked_for}: {count} {points} known.")
                return self._earlier.cases
            if self._outputs.directory is not None:
                raise InputError(
                    f"{self.asked_for} exists already, and {self._earlier.why_not}.",
                    fix="Name another place with -o, or add --force to replace it.",
                )
            self.asked_for = RUNS / f"tune-{self._name}-{number}" / RESULTS_NAME
            number += 1
        return ()

    def keep(self, run: Run) -> ResultsFile:
        """Open the results file."""
        replace = self._outputs.force or self._earlier is not None
        return ResultsFile(self.asked_for, run, replace=replace)
