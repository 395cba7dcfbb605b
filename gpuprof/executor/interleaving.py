# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run the blocks of a launch by turns that change anywhere: what only another order shows is found so.

Whether two accesses are ordered depends on who observed whom. A launch whose blocks run for long one after
the other observes little: a queue's reader who begins when the writer has ended has acquired all that it did,
and never meets the write that came too early. So a launch whose blocks wait for each other is begun again,
and its blocks take turns of a few steps. What races then, races on a card: each turn is one that it may take.
"""

from collections.abc import Generator, Sequence

import numpy as np

from gpuprof.executor.decode import Program
from gpuprof.executor.memory.global_memory import GlobalMemory
from gpuprof.executor.sampling import Sample
from gpuprof.executor.scheduler import Help, Scheduler

#: In how many orders a launch runs at most.
ORDERS = 16
#: Instructions of a launch that does, one block after the other; all orders together may take twice that.
MOST_BY_TURNS = 2_500
#: Blocks of such a launch, and bytes that it may change.
_MOST_BLOCKS = 32
_MOST_BYTES = 64 << 20
#: Steps of a turn at most, by the order; how many it has is drawn anew each time.
_LONGEST_TURNS = (5, 2, 12)
#: Who helps strands that poll: first the others, as long as one of them gets further.
_HELPS = (Help.OTHERS, Help.OWN_WARP, Help.NOBODY)


def may_go_by_turns(program: Program, sample: Sample, memory: GlobalMemory) -> bool:
    """Tell whether the blocks of a launch may wait for each other, and are few enough for other orders."""
    few = 1 < sample.count == sample.total and sample.count <= _MOST_BLOCKS
    return few and by_signals(program, memory)


def by_signals(program: Program, memory: GlobalMemory) -> bool:
    """Tell whether threads may order what they do by signals, and the memory can be put back as it was."""
    return (
        program.fences
        and sum(buffer.size for buffer in memory.buffers if not buffer.read_only) <= _MOST_BYTES
    )


class _Runner:
    """One block, or cluster, by turns.

    Attributes:
        ended: Whether it has come to its end.
        in_vain: Whether all that it did since somebody got further was to find that it must wait, whoever of
            those asked now may help it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.ended = self.in_vain = False
        self._turns: Generator[None, None, bool] | None = None
        self._help = Help.OTHERS
        self._progress = 0

    def turn(self, steps: int, help_from: Help) -> bool:
        """Let it take some steps; return whether it got further, as far as that is known by now.

        Raises:
            KernelFault: The kernel broke a rule.
        """
        if self._turns is None:
            self._turns, self._help = self.scheduler.turns(help_from), help_from
        try:
            for _ in range(steps):
                next(self._turns)
        except StopIteration as end:
            further = end.value or self.scheduler.progress > self._progress
            self._turns, self._progress = None, self.scheduler.progress
            self.ended, self.in_vain = end.value, not further and self._help is help_from
            return bool(further)
        return False


def run_by_turns(schedulers: Sequence[Scheduler], order: int, most_steps: int) -> None:
    """Run batches by turns until all have ended, have taken so many instructions together, or none goes on.

    Args:
        schedulers: One for each batch; they pause.
        order: The number of the order, which decides who goes on, and for how long.
        most_steps: Instructions.

    Raises:
        KernelFault: The kernel broke a rule.
    """
    numbers, longest = np.random.default_rng(order), _LONGEST_TURNS[order % len(_LONGEST_TURNS)]
    going = [_Runner(scheduler) for scheduler in schedulers]
    level = 0
    while going and sum(scheduler.steps for scheduler in schedulers) <= most_steps:
        chosen = going[int(numbers.integers(len(going)))]
        if chosen.turn(int(numbers.integers(1, longest + 1)), _HELPS[level]):
            level = 0
        elif all(one.in_vain for one in going):
            level += 1
            if level == len(_HELPS):
                break
        else:
            continue
        going = [one for one in going if not one.ended]
        for one in going:
            one.in_vain = False
