# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is searched, and how long: the values that headers declare, as far as constraints allow them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct

from gpuprof import signals
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped, InputError, ResultsError, did_you_mean
from gpuprof.kernels.candidates import BLOCK
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import ConfiguredCase, check_block, configure
from gpuprof.measure.case import Case
from gpuprof.measure.request import NO_PARAMETERS, Request, Selection
from gpuprof.measure.resume import differences
from gpuprof.options import RunOptions, TuneOptions
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run
from gpuprof.results import OTHER_REASONS, Measurement, Run, TunedPoint
from gpuprof.text import Extent

#: Combinations that are looked at one by one; constraints of a header leave a part of them.
MOST_COMBINATIONS = 200_000
#: What a user adds who adds nothing, and says of a point.
NO_VALUES: Mapping[str, Sequence[int]] = {}
NO_PARAMS: Mapping[str, int] = {}
#: Different reasons that are told apart.
_MOST_REASONS = 12


class Point(Struct, frozen=True):
    """One way to run one kernel: values of all its parameters in the header's order, and a block."""

    kernel: str
    params: tuple[tuple[str, int], ...]
    block: Extent

    @classmethod
    def of(
        cls, kernel: Kernel, params: Mapping[str, int] = NO_PARAMS, block: Extent | None = None
    ) -> "Point":
        """A point by what is said of it; what is not said is as in the header."""
        values = {**kernel.parameters, **params}
        # Where blocks follow from parameters, a measurement names the one that it had.
        block = block if block and kernel.any_block else kernel.block
        return cls(kernel.id, tuple((name, values[name]) for name in kernel.parameters), block)

    def record(self, expected_us: float | None = None) -> TunedPoint:
        return TunedPoint(self.kernel, dict(self.params), self.block, expected_us)

    def is_near(self, other: "Point") -> bool:
        """Whether it is the same kernel, and one value or the block differs."""
        differing = len({*self.params} - {*other.params}) + (self.block != other.block)
        return self.kernel == other.kernel and differing == 1


class Axes(Struct, frozen=True):
    """The values that are searched of one kernel, the header's own first."""

    kernel: Kernel
    values: Mapping[str, tuple[int, ...]]
    blocks: tuple[Extent, ...]

    @property
    def count(self) -> int:
        return math.prod(map(len, self.values.values())) * len(self.blocks)

    @property
    def searched(self) -> dict[str, tuple[int, ...]]:
        return {name: values for name, values in self.values.items() if len(values) > 1}

    @property
    def kept(self) -> tuple[str, ...]:
        """Parameters that keep their default because nothing else is known of them."""
        return tuple(
            name
            for name, values in self.values.items()
            if values == (self.kernel.parameters[name],) and name not in self.kernel.candidates.values
        )

    def points(self) -> Iterator[Point]:
        for values in product(*self.values.values()):
            for block in self.blocks:
                yield Point(self.kernel.id, tuple(zip(self.values, values, strict=True)), block)


class Candidate(Struct, frozen=True):
    """A point that a problem and a device allow."""

    point: Point
    case: Case
    configured: ConfiguredCase


class BuiltPoint(Struct, frozen=True):
    """A candidate that was compiled and fits on the device; once it was counted, with bounds and model."""

    candidate: Candidate
    measurement: Measurement


class SearchSpace(Struct, frozen=True):
    """Everything that is searched."""

    axes: tuple[Axes, ...]

    @property
    def count(self) -> int:
        return sum(each.count for each in self.axes)

    def allowed(
        self, problem: Problem, device: Device, step: Callable[[], None] = lambda: None
    ) -> tuple[list[Candidate], Counter[str]]:
        """The points that can be launched, and how many of the others are ruled out, by the reason."""
        found, ruled_out = [], Counter[str]()
        for axes in self.axes:
            own = problem.with_options(axes.kernel.options)
            for point in axes.points():
                signals.check()  # of tens of thousands of points this takes a minute
                step()
                params = dict(point.params)
                try:
                    configured = configure(axes.kernel, own, point.block, params, device)
                except CaseSkipped as error:
                    rule_out(ruled_out, error.what)
                    continue
                found.append(Candidate(point, Case.of(axes.kernel, own, point.block, params), configured))
        return found, ruled_out


def rule_out(reasons: Counter[str], reason: str) -> None:
    """Count one more point that cannot run; of many different reasons the later ones are one."""
    known = reason in reasons or len(reasons) < _MOST_REASONS
    reasons[reason if known else OTHER_REASONS] += 1


def make_space(
    selections: Sequence[Selection],
    values: Mapping[str, Sequence[int]] = NO_VALUES,
    blocks: Sequence[Extent] = (),
    *,
    named: bool,
) -> SearchSpace:
    """The space of some kernels: the candidates of their headers, and what a user adds.

    Values that were typed with a kernel's name stand in the place of its candidates. Kernels that the user
    named one by one all take part, one without candidates with its one point; else those that have any.

    Raises:
        InputError: There is nothing to search, too much, or a value for a parameter that no kernel has.
    """
    _check_names(selections, values, blocks)
    axes = [_axes_of(selection, values, blocks) for selection in selections if not selection.kernel.choices]
    if not named or len(axes) == 1:
        axes = [each for each in axes if each.count > 1]
    if not axes:
        raise _nothing_to_search(selections, named=named)
    space = SearchSpace(tuple(axes))
    if space.count > MOST_COMBINATIONS:
        raise InputError(
            f"There are {space.count:,} combinations; a search looks at {MOST_COMBINATIONS:,}.",
            fix="Name fewer values, for example -k KERNEL:BM=64|128.",
        )
    return space


def _axes_of(selection: Selection, more: Mapping[str, Sequence[int]], more_blocks: Sequence[Extent]) -> Axes:
    kernel = selection.kernel
    typed: dict[str, list[int]] = {}
    for params in selection.params:
        for name, value in params.items():
            typed.setdefault(name, []).append(value)
    values = {}
    for name, default in kernel.parameters.items():
        own: Sequence[int] = (default, *kernel.candidates.values.get(name, ()))
        values[name] = tuple(dict.fromkeys((*typed.get(name, own), *more.get(name, ()))))
    blocks = [kernel.block, *kernel.candidates.blocks]
    for block in more_blocks:
        if kernel.any_block:
            check_block(kernel, block)
            blocks.append(block)
    return Axes(kernel, values, tuple(dict.fromkeys(blocks)))


def _check_names(
    selections: Sequence[Selection], values: Mapping[str, Sequence[int]], blocks: Sequence[Extent]
) -> None:
    kernels = [selection.kernel for selection in selections]
    known = list(dict.fromkeys(name for kernel in kernels for name in kernel.parameters))
    for name in values:
        if name not in known:
            who = kernels[0].id if len(kernels) == 1 else "None of the kernels"
            has = f"There are {', '.join(known)}." if known else NO_PARAMETERS
            verb = "has no" if len(kernels) == 1 else "has a"
            raise InputError(f"{who} {verb} parameter {name!r}.", fix=did_you_mean(name, known, has))
    if blocks and not any(kernel.any_block for kernel in kernels):
        raise InputError(
            f"The block of {kernels[0].id} is fixed."
            if len(kernels) == 1
            else "Every kernel's block is fixed.",
            fix="Leave out --block; a header says any_block = true where it may be chosen.",
        )


def _nothing_to_search(selections: Sequence[Selection], *, named: bool) -> InputError:
    kernels = [selection.kernel for selection in selections]
    if all(kernel.choices for kernel in kernels):
        return InputError(
            f"{kernels[0].id} chooses among other kernels and has no parameters.",
            fix="Tune those that it names.",
        )
    (kernel, *others) = (kernel for kernel in kernels if not kernel.choices)
    if kernel.built is not None:
        what = kernel.built.by or "a compiler"
        return InputError(
            f"{kernel.id} has nothing to search: {kernel.file_name} is what {what} has made of it already.",
            fix="Tune the source that it was compiled from, or measure several such files side by side.",
        )
    if others and not named:
        return InputError(
            "None of the kernels declares candidates.",
            fix="A header lists them in a [candidates] table; or name a kernel with -k and --values.",
        )
    if not kernel.parameters and not kernel.any_block:
        return InputError(
            f"{kernel.id} has nothing to search: no parameter, and its block is fixed.",
            fix="Say any_block = true in [launch] if it may be any, or make an integer of the source a macro,"
            " with a default in [parameters].",
        )
    name, default = next(iter(kernel.parameters.items()), (BLOCK, 0))
    if name == BLOCK:
        x, y = kernel.block[:2]
        other = (x // 2 or 2, y) if y == 1 else (32, 8) if x == y else (16, 16)
        line = f"block = [{[x, y]}, {list(other)}]"
        option = f"--block {x}x{y},{other[0]}x{other[1]}"
    else:
        line = f"{name} = [{default}, {2 * default or 1}]"
        option = f"--values '{name}={default}|{2 * default or 1}'"
    return InputError(
        f"The header of {kernel.id} declares no candidates for"
        f" {', '.join(kernel.parameters) or 'its block'}.",
        fix=f"Add a table to it:\n[candidates]\n{line}\nor add {option} here.",
    )


def find_earlier(path: Path, run: Run) -> tuple[Measurement, ...] | str:
    """What an earlier part of a search measured, by a results file that exists, references aside.

    Or why what it holds is of another search, as a clause.
    """
    try:
        old = read_run(path)
    except ResultsError:
        return "it is not a results file"
    if old.tuning is None:
        return "it holds a run that is not a search"
    for difference in differences(old, run):
        return f"it holds another search: {difference}"
    return tuple(case for case in old.cases if not case.is_reference)


#: Points that are timed at each size unless something else is asked for.
USUAL_POINTS = int(TuneOptions.budget)
MOST_POINTS = 10_000
_LONGEST_S = 86_400.0


def read_budget(text: str) -> tuple[int, float | None]:
    """Read `--budget`: a number of points, a time such as `90s`, or both: `40,90s`; of none, the usual.

    Raises:
        InputError: It is neither.
    """
    points: int | None = None
    seconds: float | None = None
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)(s?)\s*", item)
        if match is None or (not match[2] and "." in match[1]):
            raise InputError(
                f"--budget {text!r} is not a budget.", fix="Write points, seconds or both: 40, 90s or 40,90s."
            )
        if match[2]:
            seconds = float(match[1])
        else:
            points = int(match[1])
    return USUAL_POINTS if points is None else points, seconds


class Plan(Struct, frozen=True):
    """What is searched, and how long; the `rounds` of its options are those of the last stage.

    So many points are timed at each size, or counted without a GPU; after `seconds` no further one is begun.

    Raises:
        InputError: A budget makes no sense.
    """

    request: Request
    space: SearchSpace
    options: RunOptions
    points: int = USUAL_POINTS
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.points <= MOST_POINTS:
            what = f"A budget of {self.points} points makes no sense."
            raise InputError(what, fix=f"Give 1 to {MOST_POINTS:,}.")
        if self.seconds is not None and not 0 < self.seconds <= _LONGEST_S:
            what = f"A budget of {self.seconds:g} s makes no sense."
            raise InputError(what, fix=f"Give up to {_LONGEST_S:g} s.")
