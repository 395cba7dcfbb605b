# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run the blocks of a launch by turns that change anywhere: what only another order shows is found so.

Whether two accesses are ordered depends on who observed whom. A launch whose blocks run for long one after
the other observes little: a queue's reader who begins when the writer has ended has acquired all that it did,
and never meets the write that came too early. So a launch whose blocks wait for each other is begun again,
and its blocks take turns of a few steps. What races then, races on a card: each turn is one that it may take.

Every block runs in a thread of its own, since it may have to stop within any of the scheduler's doings; but
only one of these threads runs at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Semaphore, Thread

import numpy as np

from gpuprof.executor.decode import RunnableBlock
from gpuprof.executor.scheduler import Help, Scheduler
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Step

#: Steps of a turn at most; one that is drawn between them and 1 each time.
_LONGEST_TURN = 6
#: Who helps strands that poll: first the others, as long as one of them gets further.
_HELPS = (Help.OTHERS, Help.OWN_WARP, Help.NOBODY)


class _State(Enum):
    PAUSED = auto()
    WAITS = auto()
    ENDED = auto()


class _Abandoned(BaseException):
    """Nobody waits for this block's end any more."""


@dataclass
class PausingScheduler(Scheduler):
    """A scheduler that lets others go on between two steps.

    Attributes:
        pause: Called between steps.
    """

    pause: Callable[[], None] = field(default=lambda: None)
    _paused: dict[int, list[Step]] = field(default_factory=dict)

    def _steps(self, block: RunnableBlock) -> list[Step]:
        """Return what is run of a basic block, with a pause before each step."""
        steps = super()._steps(block)
        if id(steps) not in self._paused:
            pauses: list[Step] = [self._let_others] * len(steps)
            self._paused[id(steps)] = [each for pair in zip(pauses, steps, strict=True) for each in pair]
        return self._paused[id(steps)]

    def _let_others(self, _: Batch) -> None:
        self.pause()


class _Runner:
    """One block, or cluster, and its thread."""

    def __init__(self, scheduler: PausingScheduler) -> None:
        self.scheduler = scheduler
        self.state = _State.PAUSED
        self.error: BaseException | None = None
        self._help = Help.OTHERS
        self._left = 0
        self._abandoned = False
        self._mine, self._others = Semaphore(0), Semaphore(0)
        scheduler.pause = self._pause
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def turn(self, steps: int, help_from: Help) -> bool:
        """Let it take some steps; return whether it got further.

        Raises:
            KernelFault: The kernel broke a rule.
        """
        before = self.scheduler.progress, self.state
        self._left, self._help = steps, help_from
        self._mine.release()
        self._others.acquire()
        if self.error is not None:
            raise self.error
        return self.state is not _State.WAITS or (self.scheduler.progress, self.state) != before

    def abandon(self) -> None:
        """End its thread, wherever it is."""
        self._abandoned = True
        self._mine.release()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._mine.acquire()
            with np.errstate(all="ignore"):
                while not self._abandoned and not self.scheduler.run(self._help):
                    self._hand_over(_State.WAITS)
            self.state = _State.ENDED
        except _Abandoned:
            pass
        except BaseException as error:
            self.error = error
        self._others.release()

    def _pause(self) -> None:
        self._left -= 1
        if self._left < 0:
            self._hand_over(_State.PAUSED)

    def _hand_over(self, state: _State) -> None:
        self.state = state
        self._others.release()
        self._mine.acquire()
        if self._abandoned:
            raise _Abandoned


def run_by_turns(schedulers: Sequence[PausingScheduler], seed: int, most_steps: int) -> None:
    """Run batches by turns until all have ended, or have taken so many instructions together.

    Args:
        schedulers: One for each batch.
        seed: Of what decides who goes on, and for how long.
        most_steps: Instructions.

    Raises:
        KernelFault: The kernel broke a rule.
    """
    numbers = np.random.default_rng(seed)
    runners = [_Runner(scheduler) for scheduler in schedulers]
    level, idle = 0, 0
    try:
        while going := [one for one in runners if one.state is not _State.ENDED]:
            if sum(one.scheduler.steps for one in runners) > most_steps:
                return
            chosen = going[int(numbers.integers(len(going)))]
            if chosen.state is _State.WAITS and idle:
                # Nobody of those asked lately got further: ask all in turn.
                chosen = going[idle % len(going)]
            steps = int(numbers.integers(1, _LONGEST_TURN + 1))
            if chosen.turn(steps, _HELPS[level]):
                level, idle = 0, 0
            else:
                idle += 1
                if idle > 2 * len(going):
                    level, idle = level + 1, 0
                    if level == len(_HELPS):
                        return
    finally:
        for one in runners:
            if one.state is not _State.ENDED and one.error is None:
                one.abandon()

