# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune`: search, show what was found, write its files, and the kernel's where asked."""

import difflib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuprof import signals
from gpuprof.commands.output import (
    RUNS,
    link_latest,
    open_report,
    print_written,
    write_file,
    write_report_beside,
)
from gpuprof.commands.progress import watch
from gpuprof.commands.texts import parse_blocks, parse_values, preprocessing_of, selected
from gpuprof.console import say_lines, tell
from gpuprof.errors import ExitCode, InputError, OutputError, did_you_mean
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_writable, read_input
from gpuprof.kernels.catalog import Ladder, shipped_ladder
from gpuprof.kernels.header import KernelFile, read_kernels
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import Preprocessing
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.operation import Operation
from gpuprof.options import Given, OutputOptions, SelectOptions
from gpuprof.results import Measurement, Run
from gpuprof.store import ResultsFile
from gpuprof.text import KERNEL_ENDINGS, listed
from gpuprof.tuning.rewriting import best_everywhere, with_defaults
from gpuprof.tuning.space import Plan, SearchSpace, Wanted, find_earlier, make_space, read_budget
from gpuprof.tuning.tuner import Tuner

#: Sizes that a sentence names at which another point is better.
_MOST_NAMED = 4


def check_sources(kernels: Sequence[Kernel], sources: Mapping[str, Path]) -> None:
    """Refuse to write kernels that are not the user's, before anything is measured."""
    for kernel in kernels:
        if kernel.id not in sources:
            raise InputError(
                f"{kernel.id} comes with gpuprof: --write does not change it.",
                fix="Copy its file, and tune the copy.",
            )
        check_writable(sources[kernel.id], force=True)


def write_best(
    run: Run, kernels: Mapping[str, Kernel], sources: Mapping[str, Path], operation: Operation
) -> list[Path]:
    """Make the best point of a search its kernel's default.

    Returns:
        The files that were written: one, or none where the header says so already.

    Raises:
        InputError: The header cannot be edited so, or the file cannot be written; nothing was written then.
    """
    point, behind = best_everywhere(run, kernels)
    if point is None:
        tell("Nothing is written: no point gave a right result.")
        return []
    if run.backend != "gpu":
        modelled = run.tuning and any(tuned.by == "model" for tuned in run.tuning.sizes)
        by = "modelled time" if modelled else "bound"
        tell(f"Nothing was timed: what is written is the best by its {by} only.")
    if behind:
        worst = sorted(behind, key=lambda size: -behind[size])
        named = listed([f"{size} ({100 * behind[size]:.0f} %)" for size in worst], _MOST_NAMED)
        tell(f"No point is best everywhere. The one that is closest takes longer at {named}.")
    path = sources[point.kernel]
    source = read_input(path, "utf-8")

    def read(text: str) -> KernelFile:
        return read_kernels(text, path, shipped_operation, operation)

    # As its file says it, without what the command line adds.
    kernel = next(kernel for kernel in read(source).kernels if kernel.id == point.kernel)
    text = with_defaults(source, kernel, point, read)
    if text == source:
        tell("The header says so already: nothing is written.")
        return []
    lines = source.splitlines(keepends=True), text.splitlines(keepends=True)
    say_lines("".join(difflib.unified_diff(*lines, str(path), str(path), n=2)).rstrip("\n"))
    write_file(path, text)
    return [path]


def run_search(given: Given, what: Sequence[str]) -> ExitCode:
    """Search, print the answer, write results and report, name the files, and write kernels where asked."""
    output = given.output
    plan, sources = make_plan(given, what)
    kernels = {axes.kernel.id: axes.kernel for axes in plan.space.axes}
    if given.tune.write:
        check_sources([*kernels.values()], sources)
    signals.postpone()
    _tell_space(plan.space)
    request = plan.request
    name = next(iter(kernels)) if len(kernels) == 1 else request.operation.name
    place = _ResultsPlace(output, name)
    with (
        watch(quiet=output.quiet) as watcher,
        Tuner(plan, watcher, argv=given.argv, keep=place.keep, earlier=place.earlier) as tuner,
    ):
        try:
            run = tuner.search()
        except OutputError as error:
            before = f"What was written before is in {place.asked_for}"
            raise OutputError(
                error.what, fix=f"{before}: make room, and the same command continues."
            ) from error
    if not output.quiet:
        from gpuprof.report.run_text import show_run

        show_run(run, file=sys.stdout)
    written = [place.asked_for, place.asked_for.with_name(REPORT_NAME)]
    write_report_beside(run, *written)
    if output.output is None:
        link_latest(place.asked_for.parent)
    if given.tune.write and run.complete:
        written += write_best(run, kernels, sources, request.operation)
    print_written(*written)
    if output.open_:
        open_report(written[1])
    if not run.complete:
        tell("Stopped early: the best until then is kept, and the same command continues from there.")
        return ExitCode.INTERRUPTED
    return exit_code(run)


def exit_code(run: Run) -> ExitCode:
    """0 where every size has an answer. A wrong point is a finding of the search, no failure of it."""
    sizes = run.tuning.sizes if run.tuning else ()
    return ExitCode.OK if sizes and all(size.ties for size in sizes) else ExitCode.CASES_FAILED


def make_plan(given: Given, what: Sequence[str]) -> tuple[Plan, dict[str, Path]]:
    """The search that is asked for, and the file of each kernel that is the user's own."""
    select = given.select
    budget = read_budget(given.tune.budget)
    command = preprocessing_of(select)
    ladder, kernels, paths = find_ladder(what, select, command)
    request = selected(
        ladder, replace(select, kernel=kernels, block=None), command, references=select.reference
    )
    blocks = parse_blocks(select.block) if select.block is not None else ()
    wanted = Wanted(parse_values(given.tune.values or []), blocks)
    space = make_space(request.selections, wanted, named=bool(kernels))
    named = (name for text in kernels for name in text.split(","))
    own = [Path(name) for name in named if name.partition(":")[0].endswith(KERNEL_ENDINGS)]
    return Plan(request, space, given.run, budget), files_of(request.ladder.kernels, [*paths, *own])


def files_of(kernels: Sequence[Kernel], paths: Sequence[Path]) -> dict[str, Path]:
    """The file of each kernel, where it is among the user's own."""
    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return {kernel.id: file for kernel in kernels for file in files if file.name == kernel.file_name}


def find_ladder(
    what: Sequence[str], select: SelectOptions, command: Preprocessing
) -> tuple[Ladder, list[str], list[Path]]:
    """The ladder, the kernels to search of it, and paths of the user's own."""
    kernels = list(select.kernel or ())
    if all(text.endswith(KERNEL_ENDINGS) or Path(text).exists() for text in what):
        paths = [Path(text) for text in what]
        return ladder_of(paths, command=command), kernels, paths
    (name, *others) = what
    if name in shipped_names() and not others:
        return shipped_ladder(name), kernels, []
    ladders = {operation: shipped_ladder(operation) for operation in shipped_names()}
    homes = {
        text: [name for name, ladder in ladders.items() if any(text == each.id for each in ladder.kernels)]
        for text in what
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
    return ladders[common[0]], [*what, *kernels], []


def _tell_space(space: SearchSpace) -> None:
    for axes in space.axes:
        if axes.kept and axes.count > 1:
            kept = ", ".join(f"{name} at {axes.values[name][0]}" for name in axes.kept)
            tell(f"{axes.kernel.id} keeps {kept}: no candidates are declared; --values adds some.")


class _ResultsPlace:
    """Where the search's results file stands, and what of an earlier part of the search is there."""

    def __init__(self, output: OutputOptions, name: str) -> None:
        self._output = output
        self._name = name
        self._continues = False
        #: Where the results are asked for.
        self.asked_for = (output.output or RUNS / f"tune-{name}") / RESULTS_NAME
        check_writable(self.asked_for, force=True)

    def earlier(self, run: Run) -> tuple[Measurement, ...]:
        """What was measured before in the same search; the place moves on where another search has it."""
        if self._output.force:
            return ()
        number = 2
        while self.asked_for.exists():
            found = find_earlier(self.asked_for, run)
            if not isinstance(found, str):
                points = "point is" if len(found) == 1 else "points are"
                tell(f"Continuing {self.asked_for}: {len(found)} {points} known.")
                self._continues = True
                return found
            if self._output.output is not None:
                raise InputError(
                    f"{self.asked_for} exists already, and {found}.",
                    fix="Name another place with -o, or add --force to replace it.",
                )
            self.asked_for = RUNS / f"tune-{self._name}-{number}" / RESULTS_NAME
            number += 1
        return ()

    def keep(self, run: Run) -> ResultsFile:
        return ResultsFile(self.asked_for, run, replace=self._output.force or self._continues)
