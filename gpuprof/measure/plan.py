# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From a checked request to the list of cases, in the order in which they run."""

from contextlib import suppress

from gpuprof.errors import InputError
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import Extent, check_block
from gpuprof.measure.case import Case
from gpuprof.measure.request import MAX_THREADS_PER_BLOCK, Request
from gpuprof.problems.base import Layout
from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose
from gpuprof.results import Problem


def plan_cases(request: Request, *, references: bool = False) -> list[Case]:
    """Every case of a request: size by size, so that a problem's arrays are made once, then rung by rung.

    A kernel of a ladder that cannot run with any block of a sweep runs once with its own. The references come
    last at each size.

    Args:
        request: What to measure.
        references: Whether the backend can run references; without, they are left out.
    """
    cases: list[Case] = []
    for size in request.sizes:
        for layout in sorted({kernel.layout for kernel in request.kernels}, reverse=True):
            for kernel in request.kernels:
                if kernel.layout == layout:
                    problem = _problem(request, size, kernel.layout, kernel.result)
                    cases += _cases_of(kernel, problem, request.blocks)
        if references:
            # A library is as fast in either layout: one row serves a ladder of both.
            layout = max((kernel.layout for kernel in request.kernels), default="row")
            for reference in request.references:
                problem = _problem(request, size, layout, reference.result)
                cases.append(Case(reference.id, "", problem, (1, 1, 1), is_reference=True))
    return cases


def _cases_of(kernel: Kernel, problem: Problem, blocks: tuple[Extent, ...]) -> list[Case]:
    path = str(kernel.path.absolute())
    if not blocks:
        return [Case(kernel.id, path, problem, kernel.launch.block)]
    allowed = []
    for block in blocks:
        with suppress(InputError):
            check_block(kernel, block, MAX_THREADS_PER_BLOCK)
            allowed.append(Case(kernel.id, path, problem, block))
    return allowed or [Case(kernel.id, path, problem, kernel.launch.block)]


def _problem(request: Request, size: tuple[int, ...], layout: Layout, result: str | None) -> Problem:
    if request.op == "gemm":
        m, n, k = size
        return Gemm(m, n, k, request.dtype, layout, request.alpha, request.beta)
    nx, ny = size
    return Transpose(nx, ny, request.dtype, "copy" if result == "copy" else "transpose")


def check_memory(problems: list[Problem], needed: tuple[int, ...], budget_bytes: int) -> None:
    """Refuse a size that does not fit, before anything is measured.

    Args:
        problems: The distinct problems of a plan.
        needed: Bytes that each takes.
        budget_bytes: Bytes that there are.

    Raises:
        InputError: Naming the first problem that is too large.
    """
    for problem, nbytes in zip(problems, needed, strict=True):
        if nbytes > budget_bytes:
            matrices = f"{_gib(problem.array_bytes)} for its matrices, the rest to verify them"
            parts = f" ({matrices})" if nbytes > problem.array_bytes else ""
            raise InputError(
                f"Size {problem.label} needs {_gib(nbytes)} of memory{parts};"
                f" there are {_gib(budget_bytes)}.",
                fix="Choose a smaller --sizes.",
            )


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:,.1f} GiB"
