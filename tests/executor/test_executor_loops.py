# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Loops of random flow graphs, held against what their definitions say, way by way."""

import random
from dataclasses import dataclass

import pytest

from gpuprof.executor.program.flow import EXIT_BLOCK
from gpuprof.executor.program.loops import loops_of, repeated


@dataclass
class Node:
    """A basic block of which only its successors matter."""

    successors: tuple[int, ...]


def graph(seed):
    """Up to twelve blocks, most of which go on to the next one."""
    rng = random.Random(seed)
    count = rng.randint(1, 12)

    def goal(after):
        chance = rng.random()
        if chance < 0.5 and after < count:
            return after
        return rng.randrange(count) if chance < 0.85 else EXIT_BLOCK

    return [Node(tuple(goal(i + 1) for _ in range(rng.randint(1, 2)))) for i in range(count)]


def reached(blocks, start, inside, without=None):
    """The blocks that control gets to from behind a block, within some and past one."""
    found, pending = set(), [start]
    while pending:
        for after in blocks[pending.pop()].successors:
            if after in inside and after != without and after not in found:
                found.add(after)
                pending.append(after)
    return found


@pytest.mark.parametrize("seeds", range(0, 300, 50))
def test_loops_are_as_their_definitions_say(seeds):
    turns = 0
    for seed in range(seeds, seeds + 50):
        blocks = graph(seed)
        everywhere = set(range(len(blocks)))
        again = {number for number in everywhere if number in reached(blocks, number, everywhere)}
        assert repeated(blocks) == again, seed
        for header, loop in loops_of(blocks).items():
            last = {number for number in loop.body if header in blocks[number].successors}
            for number in loop.body - {header}:
                left = {header, *reached(blocks, header, loop.body - {header}, without=number)}
                assert (number in loop.each_iteration) is left.isdisjoint(last - {number}), (
                    seed,
                    header,
                    number,
                )
            assert header in loop.each_iteration
            turns += len(loop.body)
    assert turns > 100
