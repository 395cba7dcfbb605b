# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a user asks for, as values, checked before anything is opened; and its cases, in their order."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from os.path import isfile
from pathlib import Path

from msgspec import Struct

from gpuprof.errors import HeaderError, InputError, did_you_mean
from gpuprof.kernels.catalog import check_choices, in_order, load_kernels
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.kernels.paths import instead_of
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing
from gpuprof.kernels.shape import check_block, check_threads
from gpuprof.machine import gib
from gpuprof.measure.case import Case
from gpuprof.operation import Operation, ReferenceDeclaration
from gpuprof.options import RunOptions
from gpuprof.problems.dtypes import RUN_TYPES, largest, of_run, run_type
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.problem import Problem
from gpuprof.problems.sizes import split_list
from gpuprof.records import grouped, replace
from gpuprof.results import ProblemRecord, size_label
from gpuprof.schema import SchemaError, from_json, to_json
from gpuprof.text import KERNEL_ENDINGS, Extent, listed

#: Largest extent: kernels take sizes as 32-bit integers, and tile arithmetic needs headroom above them.
MAX_EXTENT = 2**31 - 2**16
#: A kernel's parameter with its values as users type them: `BK=8|16`.
PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<values>-?[0-9]{1,18}(?:\|-?[0-9]{1,18})*)\Z")
#: What to do where a kernel without parameters is given one.
NO_PARAMETERS = (
    "It has none: write NAME = VALUE under [parameters] in its header, and use NAME in its source."
)
#: Sets of parameters of one kernel in one run: each is compiled, proved and measured.
MOST_VARIANTS = 256
#: In the place of a run's type: f32, or what the kernels are written for.
AUTO = "auto"
#: The type of a run where nothing says another.
USUAL = "f32"


class Selection(Struct, frozen=True):
    """One kernel to run, and parameters that replace its header's: a mapping for each case wanted."""

    kernel: Kernel
    params: tuple[Mapping[str, int], ...] = ({},)
    name: str = ""


class Request(Struct, frozen=True):
    """A checked request for one operation.

    Args:
        blocks: Blocks to run instead of each kernel's own; empty for its own.
        scalars: Numbers besides the sizes that are not their defaults.
    """

    ladder: Ladder
    selections: tuple[Selection, ...]
    sizes: tuple[tuple[int, ...], ...]
    blocks: tuple[Extent, ...] = ()
    dtype: str = "f32"
    scalars: Mapping[str, float] = {}
    references: tuple[ReferenceDeclaration, ...] = ()

    @property
    def operation(self) -> Operation:
        return self.ladder.operation

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(selection.kernel for selection in self.selections)

    def problem(self, size: tuple[int, ...], options: Mapping[str, str]) -> Problem:
        """What a kernel of these options computes at a size."""
        return Problem.of(self.operation, size, self.dtype, self.scalars, options)

    @property
    def competing(self) -> tuple[Selection, ...]:
        """Kernels that compute the whole operation, or all where none does: ceilings only bound others."""
        held = self.selections
        return (
            tuple(one for one in held if not self.problem(self.sizes[0], one.kernel.options).is_ceiling)
            or held
        )


def named_kernels(text: str, option: str) -> list[tuple[str, dict[str, list[int]]]]:
    """Names with their parameters' values; a parameter belongs to the name before it."""
    found: list[tuple[str, dict[str, list[int]]]] = []
    for item in split_list(text, option, lower=False):
        name, colon, first = item.rpartition(":")
        if colon and PARAMETER.match(first):
            found.append((name, {}))
            assignment = first
        elif found and PARAMETER.match(item):
            assignment = item
        elif colon and not name.endswith(KERNEL_ENDINGS):
            raise InputError(
                f"{option} {item!r}: {first!r} is not a parameter and its value.",
                fix="Write NAME:BK=16 or NAME:BK=8|16,BM=64.",
            )
        else:
            found.append((item, {}))
            continue
        match = PARAMETER.match(assignment)
        assert match is not None
        values = found[-1][1].setdefault(match["name"], [])
        values += map(int, match["values"].split("|"))
    return found


def find_kernels(ladder: Ladder, name: str, command: Preprocessing = NOTHING) -> tuple[Kernel, ...]:
    """Those of a ladder that a name or pattern fits, or of a file of the user's own, or one of it: `FILE:ID`.

    Raises:
        InputError: There is none.
        HeaderError: The file is faulty or computes something else.
    """
    path, _, variant = name.rpartition(":")
    if not path.endswith(KERNEL_ENDINGS):
        path, variant = name, ""
    if not path.endswith(KERNEL_ENDINGS):
        try:
            return ladder.matching(name)
        except InputError:
            if isfile(name):
                fix = instead_of(Path(name), "ids of kernels, or")
                raise InputError(f"{name} is no kernel file.", fix=fix) from None
            raise
    file = load_kernels(Path(path), ladder.operation, command)
    if file.operation != ladder.operation:
        raise HeaderError(
            f"{name} is a kernel of {file.operation.name}, not of {ladder.operation.name}.",
            fix=f"gpuprof run {name} measures it.",
        )
    for kernel in file.kernels:
        if any(kernel.id == other.id and kernel != other for other in ladder.kernels):
            raise HeaderError(
                f"{name} has the id of a shipped kernel, {kernel.id!r}.", fix="Rename the file."
            )
        check_choices(kernel, ladder.kernels)
    return (file.find(variant),) if variant else file.kernels


def select(kernel: Kernel, params: Mapping[str, Sequence[int]], name: str) -> Selection:
    """A kernel, called so by the user, with every combination of the values given for its parameters."""
    for parameter in params:
        if parameter not in kernel.parameters:
            known = ", ".join(f"{key} (now {value})" for key, value in kernel.parameters.items())
            fix = f"It has {known}." if known else NO_PARAMETERS
            fix = did_you_mean(parameter, kernel.parameters, fix)
            if kernel.built is not None:
                fix = f"{kernel.file_name} is compiled already: measure its source with other values."
            if parameter in (*kernel.constants, *kernel.derived):
                fix = f"{parameter} is a constant of its source. {fix}"
            raise InputError(f"{kernel.id} has no parameter {parameter!r}.", fix=fix)
    values = [list(dict.fromkeys(each)) for each in params.values()]
    count = math.prod(map(len, values))
    if count > MOST_VARIANTS:
        raise _too_many(
            kernel, f"{count} sets of parameters ({' x '.join(str(len(each)) for each in values)})"
        )
    if not count:
        empty = next(name for name, each in params.items() if not each)
        raise InputError(f"{kernel.id} is given no value for {empty}.", fix="Name at least one.")
    combinations = product(*values)
    variants = tuple(dict(zip(params, values, strict=True)) for values in combinations)
    return Selection(kernel, variants, name)


def _too_many(kernel: Kernel, what: str) -> InputError:
    return InputError(
        f"{kernel.id} would run with {what}; a run takes {MOST_VARIANTS} of one kernel.",
        fix="Name fewer values, or split them over several runs.",
    )


def merge(selections: Iterable[Selection]) -> tuple[Selection, ...]:
    """Selections in rung order, those of one kernel as one."""
    found: dict[str, Selection] = {}
    for selection in selections:
        kernel = selection.kernel
        other = found.setdefault(kernel.id, selection)
        if other.kernel != kernel:
            raise InputError(
                f"{other.name} and {selection.name} have one id, {kernel.id!r}.",
                fix="Rename one of the files.",
            )
        params = other.params + tuple(each for each in selection.params if each not in other.params)
        if len(params) > MOST_VARIANTS:
            raise _too_many(kernel, f"{len(params)} sets of parameters")
        found[kernel.id] = replace(other, params=params)
    return tuple(found[kernel.id] for kernel in in_order(each.kernel for each in found.values()))


def make_request(
    ladder: Ladder,
    selections: Sequence[Selection] = (),
    sizes: Sequence[tuple[int, ...]] = (),
    blocks: Sequence[Extent] = (),
    dtype: str = AUTO,
    scalars: Mapping[str, float] | None = None,
    references: Sequence[ReferenceDeclaration] = (),
) -> Request:
    """A checked request.

    Raises:
        InputError: One of them makes no sense; the message says which, and why.
    """
    kind = _type_for(selections, ladder) if dtype == AUTO else run_type(dtype)
    if kind is None:
        fix = did_you_mean(dtype, RUN_TYPES, f"Choose one of {', '.join(RUN_TYPES)}.")
        raise InputError(f"{dtype!r} is not a type of a run.", fix=fix)
    operation = ladder.operation
    for size in sizes:
        _check_extents(size)
    for block in blocks:
        check_threads(block)
    chosen = merge(selections) or tuple(Selection(kernel) for kernel in ladder.rungs_of(kind))
    if not chosen:
        raise InputError(
            f"There is no {operation.name} kernel: no kernel file stands beside operation.toml.",
            fix="Name one with -k; gpuprof new writes one to start from.",
        )
    written = _types_of([selection.kernel for selection in chosen], ladder)
    if kind not in written:
        raise InputError(
            f"None of these {operation.name} kernels is written for {kind}, but for {listed(written)}.",
            fix=f"Choose such a --dtype, or give a kernel for {kind} with -k FILE.",
        )
    chosen = tuple(replace(one, kernel=ladder.of_type(one.kernel, kind)) for one in chosen)
    _check_blocks([selection.kernel for selection in chosen], blocks, chosen=bool(selections))
    request = Request(
        ladder=ladder,
        selections=chosen,
        sizes=tuple(dict.fromkeys(sizes)),
        blocks=tuple(dict.fromkeys(blocks)),
        dtype=kind,
        scalars=_checked_scalars(operation, scalars or {}, kind),
        references=tuple(each for each in references if each.computes_in(kind)),
    )
    _check_sizes(request)
    return request


def _type_for(selections: Sequence[Selection], ladder: Ladder) -> str:
    """FP32 where a kernel is written for it, otherwise the first type that one is written for."""
    written = _types_of([selection.kernel for selection in selections] or ladder.rungs, ladder)
    return USUAL if USUAL in written else next(iter(written), USUAL)


def _types_of(kernels: Iterable[Kernel], ladder: Ladder) -> tuple[str, ...]:
    """Each type that one of them, or a kernel that one of them chooses, is written for."""
    found = list(kernels)
    found += [ladder.find(choice.kernel) for kernel in found for choice in kernel.choices]
    return tuple(dict.fromkeys(dtype for kernel in found for dtype in kernel.dtypes))


def as_asked(request: Request, options: RunOptions) -> Request:
    """The same, with what options say of every kernel.

    Without poison there are numbers in arrays that kernels must not read, for those that read them all the
    same.
    """
    if options.poison_inout:
        return request

    def changed(kernel: Kernel) -> Kernel:
        return replace(kernel, poison_inout=False)

    ladder = replace(request.ladder, kernels=tuple(map(changed, request.ladder.kernels)))
    selections = (replace(each, kernel=changed(each.kernel)) for each in request.selections)
    return replace(request, ladder=ladder, selections=tuple(selections))


def _check_extents(size: tuple[int, ...]) -> None:
    if 0 in size:
        raise InputError(f"Size {size_label(size)} has a zero extent.", fix="A size is at least 1.")
    if max(size) > MAX_EXTENT:
        raise InputError(f"Size {size_label(size)} is too large.", fix=f"Extents go up to {MAX_EXTENT}.")


def _checked_scalars(operation: Operation, given: Mapping[str, float], dtype: str) -> dict[str, float]:
    scalars = {}
    for name, value in given.items():
        if name not in operation.scalars:
            known = f"It has {', '.join(operation.scalars) or 'sizes only'}."
            raise InputError(
                f"{operation.name} has no scalar {name!r}.",
                fix=did_you_mean(name, operation.scalars, known),
            )
        kind = of_run(operation.scalars[name].type, dtype)
        if not math.isfinite(value):
            raise InputError(f"{name} = {value} is not a finite number.")
        if abs(value) > largest(kind):
            raise InputError(
                f"{name} = {value} is too large for {kind}.", fix="Choose a smaller one, or a wider type."
            )
        if kind[0] in "iu" and (not float(value).is_integer() or (kind[0] == "u" and value < 0)):
            raise InputError(f"{name} = {value} is not a number of type {kind}.")
        scalars[name] = float(value)
    return scalars


def _check_blocks(kernels: Sequence[Kernel], blocks: Sequence[Extent], chosen: bool) -> None:
    """Refuse blocks that no kernel, or a kernel the user named, or the only one, can run with."""
    refusals: list[InputError] = []
    for kernel in kernels:
        for block in blocks:
            try:
                check_block(kernel, block)
            except InputError as error:
                if chosen or len(kernels) == 1:
                    raise
                refusals.append(error)
    if blocks and len(refusals) == len(kernels) * len(blocks):
        raise refusals[0]


def _check_sizes(request: Request) -> None:
    """Refuse a size for which the operation's formulas have no value, or none that a results file holds."""
    for size in request.sizes:
        problem = request.problem(size, {})
        try:
            record = problem.record()
            for spec in problem.outputs:
                problem.bound(spec.name)
            if record.min_bytes < 1:
                raise InputError(
                    f"bytes of {request.operation.name} is {record.min_bytes} at size {problem.label}.",
                    fix="It is what must be read and written at least: correct it, or choose another size.",
                )
            from_json(ProblemRecord, to_json(record))
        except (ExpressionError, SchemaError) as error:
            raise InputError(
                f"Size {problem.label} does not go with {request.operation.name}: {error}."
            ) from error


#: Processes that execute whatever the cases, and how many cases each one more takes: to start one costs as
#: much as two or three cases of a ladder, and the one that takes longest ends no sooner.
_FEW_PROCESSES, _MANY_CASES = 12, 8


def worth_starting(cases: int) -> int:
    """How many processes execute so many cases where there are cores for all."""
    return min(cases, max(_FEW_PROCESSES, cases // _MANY_CASES))


def plan_cases(request: Request, *, references: bool = False) -> list[Case]:
    """Every case of a request: size by size, so that a problem's arrays are made once, then rung by rung.

    A kernel of a ladder that cannot run with any block of a sweep runs once with its own. The references come
    last at each size.
    """
    cases: list[Case] = []
    for size in request.sizes:
        for problem, selections in _by_problem(request, size).items():
            for selection in selections:
                cases += _cases_of(request, selection, problem)
        if references:
            base = _base_problem(request, size)
            for reference in request.references:
                problem = base.with_options(reference.options)
                cases.append(Case(reference.id, problem, (1, 1, 1)))
    return cases


def _by_problem(request: Request, size: tuple[int, ...]) -> dict[Problem, list[Selection]]:
    """Selections that compute the same, in the order in which the first of each stands."""
    return grouped(request.selections, lambda one: request.problem(size, one.kernel.options))


def _base_problem(request: Request, size: tuple[int, ...]) -> Problem:
    """What references compute: what the first kernels do that compute all of the operation.

    A library is as fast in either storage order: one row serves a ladder of both.
    """
    default = request.problem(size, {})
    problems = [problem for problem in _by_problem(request, size) if not problem.is_ceiling]
    return default if default in problems or not problems else problems[0]


def _cases_of(request: Request, selection: Selection, problem: Problem) -> Iterator[Case]:
    kernel = selection.kernel
    names = {choice.kernel for choice in kernel.choices}
    alternatives = tuple(other for other in request.ladder.kernels if other.id in names)
    for params in selection.params:
        for block in _blocks_of(kernel, request.blocks):
            yield Case.of(kernel, problem, block, params, alternatives)


def _blocks_of(kernel: Kernel, blocks: tuple[Extent, ...]) -> list[Extent]:
    allowed = []
    for block in blocks:
        with suppress(InputError):
            check_block(kernel, block)
            allowed.append(block)
    return allowed or [kernel.block]


def check_memory(problems: Sequence[Problem], needed: tuple[int, ...], budget_bytes: int) -> None:
    """Refuse a size that does not fit, before anything is measured.

    Raises:
        InputError: Naming the first problem that is too large.
    """
    for problem, nbytes in zip(problems, needed, strict=True):
        if nbytes > budget_bytes:
            arrays = f"{gib(problem.array_bytes)} for its arrays, the rest to verify them"
            parts = f" ({arrays})" if nbytes > problem.array_bytes else ""
            raise InputError(
                f"Size {problem.label} needs {gib(nbytes)} of memory{parts}; there are {gib(budget_bytes)}.",
                fix="Choose a smaller size.",
            )
