# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From a checked request to the list of cases, in the order in which they run."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from gpuprof.errors import InputError
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import check_block
from gpuprof.machine import gib
from gpuprof.measure.case import Case
from gpuprof.measure.request import Request, Selection
from gpuprof.problems.problem import Problem
from gpuprof.text import Extent

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
        for problem, selections in _by_problem(request, size):
            for selection in selections:
                cases += _cases_of(request, selection, problem)
        if references:
            base = _base_problem(request, size)
            for reference in request.references:
                problem = base.with_options(reference.options)
                cases.append(Case(reference.id, problem, (1, 1, 1)))
    return cases


def _by_problem(request: Request, size: tuple[int, ...]) -> list[tuple[Problem, list[Selection]]]:
    """Selections that compute the same, in the order in which the first of each stands."""
    found: dict[Problem, list[Selection]] = {}
    for selection in request.selections:
        problem = request.problem(size, selection.kernel.options)
        found.setdefault(problem, []).append(selection)
    return list(found.items())


def _base_problem(request: Request, size: tuple[int, ...]) -> Problem:
    """What references compute: what the first kernels do that compute all of the operation.

    A library is as fast in either storage order: one row serves a ladder of both.
    """
    default = request.problem(size, {})
    problems = [problem for problem, _ in _by_problem(request, size) if not problem.is_ceiling]
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
    return allowed or [kernel.launch.block]


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
                fix="Choose a smaller --sizes.",
            )
