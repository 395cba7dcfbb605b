# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which kernel runs where a header names several, each with its condition."""

from collections.abc import Iterable

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import configure, size_values
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.problems.problem import Problem


def choose(kernel: Kernel, alternatives: Iterable[Kernel], problem: Problem, device: Device) -> Kernel:
    """The kernel itself, or the first of its choices whose condition holds and which can run there.

    Raises:
        CaseSkipped: There is none.
    """
    if not kernel.choices:
        return kernel
    values = size_values(problem, device)
    refusal: CaseSkipped | None = None
    for choice in kernel.choices:
        try:
            holds = evaluate(choice.when, values)
        except ExpressionError as error:
            raise CaseSkipped(
                f"The header of {kernel.id} cannot be evaluated for this size: {error}."
            ) from error
        if holds:
            chosen = next(other for other in alternatives if other.id == choice.kernel)
            try:
                configure(chosen, problem, chosen.launch.block, {}, device)
            except CaseSkipped as refused:
                refusal = refused
            else:
                return chosen
    raise refusal or CaseSkipped(f"{kernel.id} names no kernel for this size on this device.")
