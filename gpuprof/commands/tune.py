# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune`: search, show what was found, write its files, and the kernel's where asked.

Values go into a kernel file's header as text, and nothing else of the file changes. What would be written is
read and held against what is meant: a header that would say anything else is not written.
"""

import difflib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count
from pathlib import Path

from gpuprof import signals
from gpuprof.commands.output import RunOutputs, open_report, print_written
from gpuprof.commands.progress import watch
from gpuprof.commands.texts import parse_blocks, parse_values, preprocessing_of, selected
from gpuprof.comparison.tuned import value_of
from gpuprof.console import say_lines, tell
from gpuprof.errors import ExitCode, InputError, OutputError, did_you_mean, nearest_file
from gpuprof.files import check_writable, read_input, write_file
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.header import header_span, read_kernels
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import Preprocessing
from gpuprof.kernels.shipped import shipped_names
from gpuprof.operation import Operation
from gpuprof.options import Given, SelectOptions
from gpuprof.records import replace
from gpuprof.results import Measurement, Run
from gpuprof.store import ResultsFile
from gpuprof.text import KERNEL_ENDINGS, in_xyz, listed
from gpuprof.tuning.space import (
    Plan,
    Point,
    find_earlier,
    make_space,
    read_budget,
)
from gpuprof.tuning.tuner import MANY, Tuner


def best_everywhere(run: Run, kernels: Mapping[str, Kernel]) -> tuple[Point | None, dict[str, float]]:
    """The point to take at every size and on every device that a run searched, where it must be one.

    One that is tied with the best everywhere, the header's own before others; else, of those that were
    measured everywhere, the one that takes least by the geometric mean.

    Returns:
        The point, None where none gave a right result; and the sizes at which another one is better, with how
        much longer it takes there, as a share.
    """
    found = [tuned for tuned in (run.tuning.sizes if run.tuning else ()) if tuned.ties]
    tied = [[Point.of(kernels[one.kernel], one.params, one.block) for one in tuned.ties] for tuned in found]
    values: dict[Point, list[float]] = {}
    for tuned in found:
        held = {
            Point.of(kernels[case.kernel], case.params, case.block): value
            for case in run.cases
            if (case.device, case.problem.sizes) == (tuned.device, tuned.problem.sizes)
            and case.kernel in kernels
            and (value := value_of(case, tuned.by))
        }
        least = min(held.values(), default=0.0)
        for point, value in held.items():
            values.setdefault(point, []).append(value / least)
    measured = [point for point, shares in values.items() if len(shares) == len(found)]
    common = [point for point in measured if all(point in points for points in tied)]
    if not measured:
        return None, {}
    best = min(
        common or measured,
        key=lambda point: (
            not (common and point == Point.of(kernels[point.kernel])),
            sum(map(math.log, values[point])),
        ),
    )
    several = len(run.devices) > 1
    return best, {
        f"{tuned.problem.label}{f' on {run.device_label(tuned.device)}' if several else ''}": share - 1
        for tuned, points, share in zip(found, tied, values[best], strict=True)
        if best not in points
    }


#: Reads a kernel file's text.
Read = Callable[[str], Ladder]


def with_defaults(source: str, kernel: Kernel, point: Point, read: Read) -> str:
    """A file's text in which a point's values are a kernel's defaults.

    Raises:
        InputError: The header is written in a way that this cannot follow.
    """
    for name, value in point.params:
        if kernel.parameters[name] != value:
            kernel = replace(kernel, parameters={**kernel.parameters, name: value})
            source = _edited(source, kernel, name, str(value), read)
    if kernel.any_block and point.block != kernel.block:
        launch = replace(kernel.launches[0], block=in_xyz(map(str, point.block), "1"))
        meant = replace(kernel, launches=(launch,))
        return _edited(source, meant, "block", _block(point.block), read)
    return source


def _edited(source: str, meant: Kernel, name: str, value: str, read: Read) -> str:
    """The text in which one kernel is as meant: the first edit after which nothing else reads otherwise."""
    before = read(source)
    expected = {kernel.id: replace(kernel, source="") for kernel in (*before.kernels, meant)}
    for text in _edits(source, name, value):
        with suppress(InputError):
            after = read(text)
            found = {kernel.id: replace(kernel, source="") for kernel in after.kernels}
            if found == expected and after.operation == before.operation:
                return text
    raise InputError(
        f"The header of {meant.id} gives {name} in a way that cannot be edited.", fix="Write it by hand."
    )


def _edits(source: str, name: str, value: str) -> Iterator[str]:
    """The text with a value where the header has one of that name, then where a variant may have its own."""
    span = header_span(source)
    assert span is not None
    old = r"\[[^\]]*\]" if name == "block" else r"[-+]?(?:0x[0-9a-fA-F]+|[0-9][0-9_]*)"
    for pattern, new in (
        (rf"(?m)(?:^|[{{,])\s*{name}\s*=\s*(?P<old>{old})(?=\s*(?:[,}}#]|$))", value),
        (r"(?m)^\s*parameters\s*=\s*\{(?P<old>)(?=\s*\})", f" {name} = {value}"),
        (r"(?m)^\s*parameters\s*=\s*\{(?P<old>)", f" {name} = {value},"),
        (r"(?m)^\s*id\s*=.*(?P<old>)$", f"\nparameters = {{ {name} = {value} }}"),
    ):
        for match in re.compile(pattern).finditer(source, *span):
            yield source[: match.start("old")] + new + source[match.end("old") :]


def _block(block: Sequence[int]) -> str:
    extents = list(block)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return f"[{', '.join(map(str, extents))}]"


#: Sizes that a sentence names at which another point is better.
_MOST_NAMED = 4


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
    source = read_input(path, encoding="utf-8")

    def read(text: str) -> Ladder:
        return read_kernels(text, path, operation)

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
    for name in kernels if given.tune.write else ():
        if name not in sources:
            what = f"{name} comes with gpuprof: --write does not change it."
            raise InputError(what, fix="Copy its file, and tune the copy.")
        check_writable(sources[name], force=True)
    signals.postpone()
    request = plan.request
    name = next(iter(kernels)) if len(kernels) == 1 else request.operation.name
    outputs = RunOutputs.of_run(output, f"tune-{name}")
    check_writable(outputs.json, force=True, fix="Name another place with -o.")

    def keep(run: Run) -> ResultsFile:
        for axes in plan.space.axes:
            if axes.kept and axes.count > 1:
                kept = ", ".join(f"{name} at {axes.values[name][0]}" for name in axes.kept)
                tell(f"{axes.kernel.id} keeps {kept}: no candidates are declared; --values adds some.")
        if plan.space.count > MANY:
            tell("Fewer combinations are searched better: name kernels, or values as -k 'KERNEL:PARAM=8|16'.")
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
    written = outputs.write_beside(run)
    if given.tune.write and run.complete:
        written += write_best(run, kernels, sources, request.operation)
    print_written(*written)
    if output.open_:
        open_report(outputs.html)
    if not run.complete:
        tell("Stopped early: what was found is kept, and the same command continues from there.")
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
    chosen = request.selections if kernels else request.competing
    space = make_space(chosen, parse_values(given.tune.values or []), blocks, named=bool(kernels))
    named = (name for text in kernels for name in text.split(","))
    own = [Path(name) for name in named if name.partition(":")[0].endswith(KERNEL_ENDINGS)]
    return Plan(request, space, given.run, *budget), files_of(request.ladder.kernels, [*paths, *own])


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
    return shipped_ladder(common[0]), [*what, *kernels], []


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
