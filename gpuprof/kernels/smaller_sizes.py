# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How much a case asks of the executor, and smaller problems of the same character to look at instead.

What a size does to a kernel is decided by what is left over behind its last full tile, and by whether there
is more than one block. So each extent keeps its remainder by a power of two, and the smaller ones come first.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from gpuprof.bounds.parts import WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape, configure
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.problem import Problem

#: Tiles by which the remainders stay, and how many full ones remain, from the cheapest on.
_STEPS = ((32, 1), (64, 1), (128, 1), (256, 1), (256, 2), (256, 4), (256, 16), (256, 64), (256, 256))
#: What a thread that has nothing to do takes, and a floating-point operation with what belongs to it.
_PER_LANE, _PER_FLOP = 20, 3


def expected_instructions(problem: Problem, shape: LaunchShape) -> float:
    """What executing every block of a case takes, in instructions of single lanes, very roughly."""
    lanes = sum(prod(one.grid) * -(-prod(one.block) // WARP_LANES) * WARP_LANES for one in shape.launches)
    return _PER_LANE * lanes + _PER_FLOP * problem.flops


def smaller_problems(problem: Problem) -> Iterator[Problem]:
    """The same operation at smaller sizes; none where its arrays were given and have the size they have."""
    if problem.operation.coded == GIVEN:
        return
    seen = {problem.sizes}
    for tile, count in _STEPS:
        sizes = tuple(min(extent, tile * count + extent % tile) for extent in problem.sizes)
        if sizes not in seen:
            seen.add(sizes)
            yield replace(problem, sizes=sizes)


def smaller_cases(
    kernel: Kernel, problem: Problem, asked: LaunchShape, device: Device, most_instructions: float
) -> Iterator[tuple[Problem, LaunchShape]]:
    """Smaller sizes that a case's kernel takes, with several blocks along each axis where the case has.

    Executing one whole takes about `most_instructions` of single lanes at most.
    """
    for smaller in smaller_problems(problem):
        try:
            shape = configure(kernel, smaller, asked.launches[0].block, dict(asked.params), device)
            work = expected_instructions(smaller, shape)
        except (CaseSkipped, ExpressionError):
            continue
        several = all(
            min(extent, 2) <= other
            for one, large in zip(shape.launches, asked.launches, strict=True)
            for other, extent in zip(one.grid, large.grid, strict=True)
        )
        if several and work <= most_instructions:
            yield smaller, shape
