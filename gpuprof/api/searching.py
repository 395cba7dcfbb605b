# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Search a kernel's parameters from Python."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

from gpuprof.api.calling import values_of
from gpuprof.api.keywords import TuneKeywords, public, takes_options
from gpuprof.api.measured_run import MeasuredCase, MeasuredRun
from gpuprof.api.measuring import (
    Extents,
    Interrupted,
    Sizes,
    Values,
    What,
    Which,
    declared_request,
    listed_blocks,
)
from gpuprof.comparison.tuned import answer_sentence, space_sentence, tie_sentence, tuned_sizes
from gpuprof.errors import InputError
from gpuprof.measure.run import Progress
from gpuprof.options import SelectOptions, run_options
from gpuprof.results import Measurement
from gpuprof.results import Run as Record
from gpuprof.store import ResultsFile
from gpuprof.tuning.space import USUAL_POINTS, Plan, find_earlier, make_space
from gpuprof.tuning.tuner import Tuner


class Search:
    """What a search found.

    `run` holds every point that was timed or counted.
    """

    def __init__(self, run: MeasuredRun) -> None:
        self.run = run

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes, as users type them."""
        return tuple(dict.fromkeys(size.label for size in tuned_sizes(self.run.record)))

    @property
    def by_time(self) -> bool:
        """Whether times decided; else nothing was timed, and points are ranked by modelled times."""
        return self.run.record.backend == "gpu"

    @public
    def best(self, size: str | int | None = None, device: str | None = None) -> MeasuredCase:
        """The case of the best point.

        Args:
            size: Of the sizes, as users type it; may be left out where there is one.
            device: Of the run's devices, as `run.devices` names it; may be left out where there is one.

        Raises:
            InputError: There is no such size or device, or none of its points was right.
        """
        return self.ties(size, device)[0]

    @public
    def ties(self, size: str | int | None = None, device: str | None = None) -> tuple[MeasuredCase, ...]:
        """The best point, and those that cannot be told apart from it.

        As of `best`.
        """
        devices = self.run.devices
        number = devices.index(_named("device", device, devices))
        searched = (one for one in tuned_sizes(self.run.record) if one.tuned and one.tuned.device == number)
        sizes = {one.label: one for one in searched}
        found = sizes[_named("size", None if size is None else str(size), tuple(sizes))]
        if not found.ties:
            raise InputError(f"At {found.title} {answer_sentence(found)}.")
        cases = {id(case.record): case for case in self.run.cases}
        return tuple(cases[id(row.case)] for row in found.ties)

    def __str__(self) -> str:
        """The answer at each size, in words."""
        return "\n".join(
            f"{size.title}: {'. '.join(filter(None, (answer_sentence(size), tie_sentence(size))))}."
            f" {space_sentence(size)}."
            for size in tuned_sizes(self.run.record)
        )

    def __repr__(self) -> str:
        """What was searched; `str` tells what was found."""
        return f"<search of {len(self.run)} points at {', '.join(self.sizes)}>"


def _named(what: str, given: str | None, known: Sequence[str]) -> str:
    """The size or the device that is asked for; none need be named where there is one."""
    if given is None and len(known) == 1:
        return known[0]
    if given is None or given not in known:
        who = f"Size {given}" if what == "size" else given
        said = f"Several {what}s were searched." if given is None else f"{who} was not searched."
        raise InputError(said, fix=f"Name one of {', '.join(known)}.")
    return given


@takes_options("tune")
def tune(
    what: What | Sequence[What],
    *,
    operation: str | Path | None = None,
    kernels: str | Path | Sequence[str | Path] | Mapping[str, Values] = (),
    values: Values | None = None,
    sizes: Sizes | None = None,
    block: Extents | list[Extents] | None = None,
    include: str | Path | Sequence[str | Path] = (),
    dtype: str = SelectOptions.dtype,
    scalars: Mapping[str, float] | None = None,
    references: Which | Collection[Which] | None = None,
    budget: int = USUAL_POINTS,
    seconds: float | None = None,
    save: str | Path | None = None,
    progress: Progress | None = None,
    **options: Unpack[TuneKeywords],
) -> Search:
    """Search the values that headers declare for the parameters and blocks of kernels.

    Points that constraints, resources or spills rule out never run. Of the others those are timed that are
    expected to be fastest, by modelled times and the times so far; the closest meet in rounds. Without a GPU
    the modelled times decide.

    Args:
        what: As of `profile`: an operation that comes with gpuprof, a folder, `.cu` files or `Source` texts.
        operation: As of `profile`.
        kernels: Which of them: ids or further `.cu` files, or these with the values to search in the place
            of their header's, `{"mine": {"BM": [64, 128]}}`. All that declare candidates when empty.
        values: Values to search besides those that headers declare: `{"BM": [32, 64, 128]}`.
        sizes: One problem size or a list, each searched for itself; the operation's own when None.
        block: Blocks to search besides those that headers declare.
        include: Folders of headers that the kernels include.
        dtype: Element type.
        scalars: Numbers that the operation takes besides its sizes.
        references: What to measure beside the best on a GPU, as of `profile`.
        budget: Points to time at each size; to count, where there is no GPU.
        seconds: Time after which no further point is begun; None for no such limit.
        save: A results file that holds every point as soon as it is measured. If it holds an earlier part of
            the same search, the search goes on from there.
        progress: Told about every stage.
        **options: As below.

    Returns:
        What was found. A point that is wrong, fails or hangs is a case that says so, not an exception.

    Raises:
        InputError: An argument makes no sense, there is nothing to search, or `save` holds something else.
        BackendUnavailable: The device cannot be used.
        Interrupted: Ctrl-C; it holds what was measured, the best included.
    """
    how = run_options("tune", options)
    request = declared_request(what, operation, kernels, sizes, dtype, scalars, references, include)
    lists = {name: values_of(name, each) for name, each in (values or {}).items()}
    space = make_space(
        request.selections if kernels else request.competing, lists, listed_blocks(block), named=bool(kernels)
    )
    plan = Plan(request, space, how, budget, seconds)
    path = None if save is None else Path(save)

    def earlier(run: Record) -> tuple[Measurement, ...]:
        if path is None or not path.exists():
            return ()
        found = find_earlier(path, run)
        if isinstance(found, str):
            raise InputError(f"{path} exists already, and {found}.", fix="Name another file.")
        return found

    keep = partial(ResultsFile, path, replace=True) if path else None
    with Tuner(plan, progress or Progress(), keep=keep, earlier=earlier) as tuner:
        record = tuner.search()
    if not record.complete:
        raise Interrupted(MeasuredRun(record))
    return Search(MeasuredRun(record))
