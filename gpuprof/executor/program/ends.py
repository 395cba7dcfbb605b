# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Of several ends of a kernel, the one that diverged lanes meet before.

Where one way out of a branch ends the thread, lanes cannot all meet after the branch, and ptxas chooses for
whom the others wait. What it chooses was read off the machine code of small kernels: the end that most ways
lead to. But where a loop leaves for two ends, for one after its rounds and for the other in the middle of
every round, lanes meet before the one with more to do, and reach the other one each when they leave.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

#: Instructions that machine code has no need of.
_FREE = ("mov", "bra")
#: How many instructions of PTX may be one too many to be the end with more to do.
_CLOSE = 1


def common_end(
    successors: Sequence[tuple[int, ...]], ends: Sequence[int], opcodes: Sequence[Sequence[str]]
) -> int | None:
    """Return the block that lanes meet before; None where nothing ends.

    Args:
        successors: Of each block of the function; negative ones stand for the end of the thread.
        ends: Blocks after which threads always end, with something to do before.
        opcodes: First parts of the opcodes of each block.
    """
    ways = Counter(after for goals in successors for after in goals)
    usual = max(ends, key=lambda i: (ways[i], i), default=None)
    if usual is None or len(ends) == 1:
        return usual
    graph = _Graph(successors)
    runs = {end: graph.run(end) for end in ends}
    work = {
        end: sum(name not in _FREE for block in run for name in opcodes[block]) for end, run in runs.items()
    }
    for end, run in runs.items():
        for place in graph.before.get(run[-1], ()):
            after = {other for other in ends if runs[other][-1] in graph.after_rounds(place)} - {end}
            if usual in after | {end} and after:
                last = max(after, key=lambda i: work[i])
                return end if work[end] + _CLOSE >= work[last] else last
    return usual


class _Graph:
    """A function's blocks and the ways between them.

    Attributes:
        successors: Of each block.
        before: The other way round.
    """

    def __init__(self, successors: Sequence[tuple[int, ...]]) -> None:
        self.successors = successors
        self.before: dict[int, list[int]] = {}
        for i, goals in enumerate(successors):
            for goal in dict.fromkeys(goals):
                self.before.setdefault(goal, []).append(i)

    def run(self, end: int) -> list[int]:
        """Return an end with the blocks that do nothing but lead to it, from the last to the first."""
        run = [end]
        places = self.before.get(end, [])
        while len(places) == 1 and len(set(self.successors[places[0]])) == 1:
            run.append(places[0])
            places = self.before.get(run[-1], [])
        return run

    def after_rounds(self, place: int) -> set[int]:
        """Return where a loop leads to after its rounds, if it passes a block in each and holds no loop."""
        loop = _reached(place, self.successors.__getitem__)
        loop &= _reached(place, lambda i: self.before.get(i, ()))
        if place not in loop:
            return set()
        heads = {i for i in loop if i == 0 or not loop.issuperset(self.before[i])}
        if any(self._returns(i, loop - heads) for i in loop - heads):
            return set()  # there is a loop in it
        if any(head != place and self._returns(head, loop - {place}) for head in heads):
            return set()
        latches = [i for i in loop if heads & set(self.successors[i])]
        return {goal for i in latches for goal in self.successors[i]} - loop

    def _returns(self, block: int, within: Collection[int]) -> bool:
        inside = set(within) | {block}
        return block in _reached(block, lambda i: inside.intersection(self.successors[i]))


def _reached(start: int, step: Callable[[int], Iterable[int]]) -> set[int]:
    """Return the blocks that one or more steps lead to."""
    found: set[int] = set()
    left = [i for i in step(start) if i >= 0]
    while left:
        if (block := left.pop()) not in found:
            found.add(block)
            left += [i for i in step(block) if i >= 0]
    return found
