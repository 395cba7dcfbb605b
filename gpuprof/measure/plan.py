# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From a checked request to the list of cases, in the order in which they run."""

from gpuprof.errors import InputError
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import Extent, check_block
from gpuprof.measure.case import Case
from gpuprof.measure.request import MAX_THREADS_PER_BLOCK, Request
from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose
from gpuprof.results import Problem


def plan_cases(request: Request) -> list[Case]:
    """Every case of a request: size by size, so that a problem's arrays are made once, then rung by rung.

    A kernel of a ladder that cannot run with any block of a sweep becomes one case with the reason.
    """
    cases = []
    for size in request.sizes:
        for layout in sorted({kernel.layout for kernel in request.kernels}, reverse=True):
            for kernel in request.kernels:
                if kernel.layout == layout:
                    cases += _cases_of(kernel, _problem(request, kernel, size), request.blocks)
    return cases


def _cases_of(kernel: Kernel, problem: Problem, blocks: tuple[Extent, ...]) -> list[Case]:
    path = str(kernel.path.resolve())
    if not blocks:
        return [Case(kernel.id, path, problem, kernel.launch.block)]
    allowed = []
    refusal = None
    for block in blocks:
        try:
            check_block(kernel, block, MAX_THREADS_PER_BLOCK)
            allowed.append(Case(kernel.id, path, problem, block))
        except InputError as error:
            refusal = refusal or Case(kernel.id, path, problem, block, skip_reason=error.what)
    return allowed or [case for case in [refusal] if case]


def _problem(request: Request, kernel: Kernel, size: tuple[int, ...]) -> Problem:
    if request.op == "gemm":
        m, n, k = size
        return Gemm(m, n, k, request.dtype, kernel.layout, request.alpha, request.beta)
    nx, ny = size
    return Transpose(nx, ny, request.dtype, "copy" if kernel.result == "copy" else "transpose")


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
