# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which kernel runs where a header names several, each with its condition."""

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.catalog import find_kernel
from gpuprof.kernels.expression import ExpressionError, evaluate
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import size_values
from gpuprof.problems.base import Problem


def choose(kernel: Kernel, problem: Problem, device: Device) -> Kernel:
    """The kernel itself, or the first of its choices whose condition holds.

    Args:
        kernel: The kernel.
        problem: What it shall compute.
        device: Where.

    Raises:
        CaseSkipped: No condition holds.
    """
    if not kernel.choices:
        return kernel
    values = size_values(problem, device)
    for choice in kernel.choices:
        try:
            holds = evaluate(choice.when, values)
        except ExpressionError as error:
            raise CaseSkipped(
                f"The header of {kernel.id} cannot be evaluated for this size: {error}."
            ) from error
        if holds:
            return find_kernel(kernel.op, choice.kernel)
    raise CaseSkipped(f"{kernel.id} names no kernel for this size on this device.")
