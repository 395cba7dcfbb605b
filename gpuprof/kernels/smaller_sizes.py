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
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.problem import Problem

#: Tiles by which the remainders stay, and how many full ones remain, from the cheapest on.
_STEPS = ((32, 1), (64, 1), (128, 1), (256, 1), (256, 2), (256, 4), (256, 16), (256, 64), (256, 256))
#: What a thread that has nothing to do takes, and a floating-point operation with what belongs to it.
_PER_LANE, _PER_FLOP = 20, 3


def expected_instructions(case: ConfiguredCase) -> float:
    """What executing every block of a case takes, in instructions of single lanes, very roughly."""
    lanes = sum(prod(one.grid) * -(-prod(one.block) // WARP_LANES) * WARP_LANES for one in case.launches)
    return _PER_LANE * lanes + _PER_FLOP * case.problem.flops


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
    asked: ConfiguredCase, device: Device, most_instructions: float
) -> Iterator[ConfiguredCase]:
    """A case at smaller sizes, with several blocks along each axis where it has.

    Executing one whole takes about `most_instructions` of single lanes at most.
    """
    for problem in smaller_problems(asked.problem):
        try:
            smaller = asked.at(problem, device)
            work = expected_instructions(smaller)
        except (CaseSkipped, ExpressionError):
            continue
        several = all(
            min(extent, 2) <= other
            for one, large in zip(smaller.launches, asked.launches, strict=True)
            for other, extent in zip(one.grid, large.grid, strict=True)
        )
        if several and work <= most_instructions:
            yield smaller
