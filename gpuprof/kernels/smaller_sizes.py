# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How much a case asks of the executor, and smaller problems of the same character to look at instead.

What a size does to a kernel is decided by what is left over behind its last full tile, and by whether there
is more than one block. So each extent keeps its remainder by a power of two, and the smaller ones come first.
None becomes smaller than one that it was larger than: keys fit into their table.
"""

from collections.abc import Iterator
from math import prod

from gpuprof.bounds.parts import WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.problem import Problem
from gpuprof.records import replace

#: Tiles by which the remainders stay, and how many full ones remain, from the cheapest on.
_STEPS = ((32, 1), (64, 1), (128, 1), (256, 1), (256, 2), *((256, 4**power) for power in range(1, 12)))
#: What a thread that has nothing to do takes, and a floating-point operation with what belongs to it.
_PER_LANE, _PER_FLOP = 20, 3


def expected_instructions(case: ConfiguredCase) -> float:
    """What executing every block of a case takes, in instructions of single lanes, very roughly."""
    lanes = sum(prod(one.grid) * -(-prod(one.block) // WARP_LANES) * WARP_LANES for one in case.launches)
    return _PER_LANE * lanes + _PER_FLOP * case.problem.flops


def _smaller_sizes(sizes: tuple[int, ...], tile: int, count: int) -> tuple[int, ...]:
    """Each extent cut to so many tiles and its remainder, or to more where a smaller one has more left."""
    made, least = {}, 0
    for extent in sorted(set(sizes)):
        doubled = count * (1 + (tile * count + extent % tile < least))
        made[extent] = least = min(extent, tile * doubled + extent % tile)
    return tuple(made[extent] for extent in sizes)


def smaller_problems(problem: Problem) -> Iterator[Problem]:
    """The same operation at smaller sizes; none where its arrays were given and have the size they have."""
    if problem.operation.coded == GIVEN:
        return
    seen = {problem.sizes}
    for step in _STEPS:
        sizes = _smaller_sizes(problem.sizes, *step)
        if sizes not in seen:
            seen.add(sizes)
            yield replace(problem, sizes=sizes)


def smaller_cases(
    asked: ConfiguredCase, device: Device, most_instructions: float
) -> Iterator[ConfiguredCase]:
    """A case at smaller sizes, with several blocks along each axis where it has.

    Executing one whole takes about `most_instructions` of single lanes at most. Where the smallest takes
    more, its extents shrink one by one.
    """
    fit, least = False, None
    for problem in smaller_problems(asked.problem):
        if found := _with_several(asked, problem, device):
            if found[1] <= most_instructions:
                fit = True
                yield found[0]
            elif not fit and least is None:
                least = problem
    if not fit and least is not None:
        yield from _shrunk(asked, least, device, most_instructions)


def _shrunk(
    asked: ConfiguredCase, problem: Problem, device: Device, most_instructions: float
) -> Iterator[ConfiguredCase]:
    """The first case that takes no more as extents shrink, a step each in turn as far as the kernel goes."""
    lower = [
        sorted({size for step in _STEPS for size in _smaller_sizes((extent,), *step) if size < now})
        for extent, now in zip(asked.problem.sizes, problem.sizes, strict=True)
    ]
    while any(lower):
        for axis, sizes in enumerate(lower):
            if not sizes:
                continue
            smaller = (*problem.sizes[:axis], sizes.pop(), *problem.sizes[axis + 1 :])
            if found := _with_several(asked, replace(problem, sizes=smaller), device):
                problem = found[0].problem
                if found[1] <= most_instructions:
                    yield found[0]
                    return
            else:
                sizes.clear()


def _with_several(
    asked: ConfiguredCase, problem: Problem, device: Device
) -> tuple[ConfiguredCase, float] | None:
    """The case at another size and what it takes; None where it takes none, or one block along an axis."""
    try:
        smaller = asked.at(problem, device)
        work = expected_instructions(smaller)
    except (CaseSkipped, ExpressionError):
        return None
    several = all(
        min(extent, 2) <= other
        for one, large in zip(smaller.launches, asked.launches, strict=False)
        for other, extent in zip(one.grid, large.grid, strict=True)
    )
    return (smaller, work) if several else None
