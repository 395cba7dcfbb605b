# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Smaller problems of the same character: what goes wrong at one size is looked for at these.

What a size does to a kernel is decided by what is left over behind its last full tile, and by whether there
is more than one block. So each extent keeps its remainder by a power of two, and the smaller ones come first.
"""

from collections.abc import Iterator
from dataclasses import replace

from gpuprof.problems.coded import GIVEN
from gpuprof.problems.problem import Problem

#: Tiles by which the remainders stay, and how many full ones remain, from the cheapest on.
_STEPS = ((32, 1), (64, 1), (128, 1), (256, 1), (256, 2), (256, 4), (256, 16), (256, 64), (256, 256))


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
