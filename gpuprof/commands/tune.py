# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune`: search, show what was found, and write its files."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path

from gpuprof import signals
from gpuprof.commands.output import RunOutputs, open_report, print_written
from gpuprof.commands.progress import watch
from gpuprof.commands.texts import parse_blocks, parse_values, preprocessing_of, selected
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError, OutputError, did_you_mean, nearest_file
from gpuprof.files import check_writable
from gpuprof.kernels.catalog import Ladder, shipped_ladder
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import Preprocessing
from gpuprof.kernels.shipped import shipped_names
from gpuprof.options import Given, SelectOptions
from gpuprof.results import Measurement, Run
from gpuprof.store import ResultsFile
from gpuprof.text import KERNEL_ENDINGS
from gpuprof.tuning.space import Plan, find_earlier, make_space, read_budget
from gpuprof.tuning.tuner import Tuner


def run_search(given: Given, what: Sequence[str]) -> ExitCode:
    """Search, print the answer, write results and report, and name the files."""
    output, plan = given.output, make_plan(given, what)
    signals.postpone()
    for axes in plan.space.axes:
        if axes.kept and axes.count > 1:
            kept = ", ".join(f"{name} at {axes.values[name][0]}" for name in axes.kept)
            tell(f"{axes.kernel.id} keeps {kept}: no candidates are declared; --values adds some.")
    kernels = [axes.kernel.id for axes in plan.space.axes]
    name = kernels[0] if len(kernels) == 1 else plan.request.operation.name
    outputs = RunOutputs.of_run(output, f"tune-{name}")
    check_writable(outputs.json, force=True)

    def keep(run: Run) -> ResultsFile:
        return ResultsFile(outputs.json, run, replace=outputs.force)

    with (
        watch(quiet=output.quiet) as watcher,
        Tuner(plan, watcher, argv=given.argv, keep=keep, earlier=partial(earlier, outputs)) as tuner,
    ):
        try:
            run = tuner.search()
        except OutputError as error:
            before = f"What was written before is in {outputs.json}"
            raise OutputError(
                error.what, fix=f"{before}: make room, and the same command continues."
            ) from error
    if not output.quiet:
        from gpuprof.report.run_text import show_run

        show_run(run, file=sys.stdout)
    print_written(*outputs.write_beside(run))
    if output.open_:
        open_report(outputs.html)
    if not run.complete:
        tell("Stopped early: the best until then is kept, and the same command continues from there.")
        return ExitCode.INTERRUPTED
    return exit_code(run)


def exit_code(run: Run) -> ExitCode:
    """0 where every size has an answer. A wrong point is a finding of the search, no failure of it."""
    sizes = run.tuning.sizes if run.tuning else ()
    return ExitCode.OK if sizes and all(size.ties for size in sizes) else ExitCode.CASES_FAILED


def make_plan(given: Given, what: Sequence[str]) -> Plan:
    """The search that is asked for."""
    select = given.select
    budget = read_budget(given.tune.budget)
    command = preprocessing_of(select)
    ladder, kernels = find_ladder(what, select, command)
    request = selected(
        ladder, replace(select, kernel=kernels, block=None), command, references=select.reference
    )
    blocks = parse_blocks(select.block) if select.block is not None else ()
    chosen = request.selections if kernels else request.competing
    space = make_space(chosen, parse_values(given.tune.values or []), blocks, named=bool(kernels))
    return Plan(request, space, given.run, *budget)


def find_ladder(
    what: Sequence[str], select: SelectOptions, command: Preprocessing
) -> tuple[Ladder, list[str]]:
    """The ladder, and the kernels to search of it."""
    kernels = list(select.kernel or ())
    if all(text.endswith(KERNEL_ENDINGS) or Path(text).exists() for text in what):
        return ladder_of([Path(text) for text in what], command=command), kernels
    (name, *others) = what
    if name in shipped_names() and not others:
        return shipped_ladder(name), kernels
    ids = {
        operation: [each.id for each in shipped_ladder(operation).kernels] for operation in shipped_names()
    }
    for text in what:
        if not any(text in own for own in ids.values()):
            usual = "Name a .cu file, a folder, or an operation or kernel that `gpuprof list` shows."
            fix = nearest_file(Path(text)) or did_you_mean(text, (*ids, *chain(*ids.values())), usual)
            raise InputError(f"There is no kernel {text!r} to tune.", fix=fix)
    common = [operation for operation, own in ids.items() if all(text in own for text in what)]
    if not common:
        raise InputError("The kernels compute different operations.", fix="Tune one operation at a time.")
    if len(common) > 1:
        raise InputError(
            f"{name} is a kernel of {' and of '.join(common)}.", fix=f"gpuprof tune {common[0]} -k {name}"
        )
    return shipped_ladder(common[0]), [*what, *kernels]


def earlier(outputs: RunOutputs, run: Run) -> tuple[Measurement, ...]:
    """What was measured before in the same search; the outputs move on where another search stands."""
    first = outputs.json.parent
    for number in count(2):
        path = outputs.json
        if outputs.force or not path.exists():
            break
        found = find_earlier(path, run)
        if not isinstance(found, str):
            points = "point is" if len(found) == 1 else "points are"
            tell(f"Continuing {path}: {len(found)} {points} known.")
            outputs.force = True
            return found
        if outputs.is_named:
            raise InputError(
                f"{path} exists already, and {found}.",
                fix="Name another place with -o, or add --force to replace it.",
            )
        outputs.move(first.with_name(f"{first.name}-{number}"))
    return ()
