# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune --from`: headers and choosers made from results that stand in files; nothing is measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuprof.commands.output import print_written
from gpuprof.commands.texts import choose_kernels
from gpuprof.commands.tune import Asked, TuneOutputs, files_of, find_ladder
from gpuprof.commands.tune_writing import check_sources, found_by, write_found
from gpuprof.console import tell
from gpuprof.errors import ExitCode, InputError
from gpuprof.kernels.catalog import Ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.measure.request import Selection
from gpuprof.reading import read_run
from gpuprof.results import Run

#: Changed kernels that a sentence names.
_MOST_NAMED = 3


def write_again(asked: Asked, files: Sequence[Path], outputs: TuneOutputs, into: str | None) -> ExitCode:
    """Write what earlier runs found, and measure nothing; without `write`, show what would be written.

    Raises:
        GpuprofError: For bad input.
    """
    ladder, names, paths = find_ladder(asked)
    selections = choose_kernels(ladder, names, False, asked.command) or [*map(Selection, ladder.kernels)]
    chooser = _chooser(ladder, into)
    kernels = {
        each.kernel.id: each.kernel
        for each in selections
        if not each.kernel.choices and (chooser is None or each.kernel.options == chooser.options)
    }
    sources = files_of([*ladder.kernels], paths)
    if chooser is not None and chooser.id not in sources:
        check_sources([chooser], sources)
    runs = [_of_same_operation(read_run(file), file, ladder) for file in files]
    found = found_by(runs, kernels, ladder, sources)
    check_sources(
        [kernels[name] for name in {point.kernel for each in found.findings for point in each.best}], sources
    )
    _tell_changed(runs, kernels)
    target = sources[chooser.id] if chooser else None
    written = write_found(found, into=target, force=outputs.force, only_show=not outputs.write)
    if not outputs.write:
        tell("This is what --write would write.")
    print_written(*written)
    return ExitCode.OK if found.findings else ExitCode.CASES_FAILED


def _chooser(ladder: Ladder, into: str | None) -> Kernel | None:
    if into is None:
        return None
    kernel = ladder.find(into)
    if not kernel.choices:
        raise InputError(
            f"{kernel.id} does not choose among kernels.", fix="Name one whose header has [[choose]] tables."
        )
    return kernel


def _of_same_operation(run: Run, file: Path, ladder: Ladder) -> Run:
    """The run, if it is of the operation.

    Raises:
        InputError: It is of another one.
    """
    if ladder.operation.name not in run.operations:
        others = " and ".join(run.operations)
        raise InputError(
            f"{file} is of {others}, not of {ladder.operation.name}.", fix="Name the kernels' own results."
        )
    return run


def _tell_changed(runs: Sequence[Run], kernels: Mapping[str, Kernel]) -> None:
    """Name the kernels whose files have changed since they were measured."""
    changed = sorted(
        {
            record.id
            for run in runs
            for record in run.kernels
            if record.id in kernels and record.source_hash != kernels[record.id].source_hash
        }
    )
    if len(changed) > _MOST_NAMED:
        tell(f"{len(changed)} kernels have changed since the results were measured, {changed[0]} among them.")
    elif changed:
        verb = "has" if len(changed) == 1 else "have"
        tell(f"{', '.join(changed)} {verb} changed since the results were measured.")
