# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run the warps and blocks of a launch in other orders: what only another order shows is found so.

A card runs warps and blocks in whatever order it likes. A launch whose threads meet in nobody's order, by
strong accesses, which are no race (`open_meetings`), is begun again, with its blocks and warps interleaved.
Two things show then. Whether two accesses are ordered depends on who observed whom: a queue's reader who
begins when the writer has ended has acquired all that it did, and never meets the write that came too early.
And what a launch leaves behind may depend on who comes first. A card may take any of these orders.
"""

from collections.abc import Generator, Iterator, Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct, field

from gpuprof.executor.divergence.warp_turns import FIXED
from gpuprof.executor.observers.open_meetings import OpenMeetings
from gpuprof.executor.scheduler import Help, Scheduler

#: In how many orders a case runs at most.
_ORDERS = 16
#: Instructions of batches that all orders together may take: this many, or so many times those of the first
#: one where the outcome is probably open.
_LEAST = 4_000
_TIMES = 4
#: Batches that are interleaved; of more blocks, or clusters, several run together.
_MOST_BATCHES = 32
#: Steps at once at most, in orders that are drawn by lot; how many it is, is drawn anew each time.
_MOST_STEPS = (5, 2, 12)
#: And of the others: blocks run until they must wait, or have ended.
_WHOLE = 1 << 60
#: Who helps paths that poll: first the others, as long as one of them gets further.
_HELPS = (Help.OTHERS, Help.OWN_WARP, Help.NOBODY)


class Openness(IntEnum):
    """Whether another order of a launch's warps and blocks may leave something else behind."""

    #: No: all that meet are ordered.
    NONE = 0
    #: By mistake: threads signal to each other by flags, tickets and locks.
    SIGNALS = 1
    #: Probably: threads find what others store, or store where others do, and nothing tells who is first.
    FINDS = 2


class Order(Struct):
    """One of the orders in which the warps and blocks of a case may run; its launches run in it one by one.

    Args:
        number: First to last, last to first, from the middle on; those from 3 on are drawn by lot.
        times: How often as many instructions it may take as the first order, where that divides the work.
        meetings: Told of accesses that nothing orders.
    """

    number: int
    times: float
    left: int
    meetings: OpenMeetings = field(default_factory=OpenMeetings)
    ended: bool = True
    taken: int = 0

    def again(self) -> "Order":
        """Return the same, to see who meets whom in it."""
        return Order(self.number, self.times, self.left + self.taken, OpenMeetings(keeps=True))

    def divided(self, blocks: int, batches: int, warps: int) -> tuple[int, int]:
        """Return in how many batches blocks run that ran in some, and in how many parts the warps of each."""
        most, pieces, parts = max(2.0, self.times) * batches, min(blocks, _MOST_BATCHES), warps
        if self.number == 0 and blocks > batches:  # whole blocks, one after the other
            most, parts = max(2.0, _ORDERS // 4 * self.times) * batches, 1
        while pieces * parts > most and (pieces > batches or parts > 2):
            if pieces // 2 >= batches and (pieces >= parts or parts <= 2):
                pieces //= 2
            elif parts > 2:
                parts = -(-parts // 2)
            else:
                pieces = batches
        return max(pieces, batches), parts


def other_orders(openness: Openness, steps: int) -> Iterator[Order]:
    """Return the orders in which a case is run again."""
    if openness is Openness.NONE:
        return
    left = max(_LEAST, _TIMES * steps if openness is Openness.FINDS else 0)
    times = left / (_ORDERS // 2 * max(1, steps))
    for number in (1, 0, FIXED, *range(2, FIXED), *range(FIXED + 1, _ORDERS)):
        if left < 2 * steps:  # the least that dividing the warps takes
            return
        order = Order(number, times, left)
        yield order
        left -= order.taken


class _Runner:
    """One batch that is interleaved with others.

    Attributes:
        in_vain: Whether all that it did since somebody got further was to find that it must wait, whoever of
            those asked now may help it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.ended = self.in_vain = False
        self._steps: Generator[None, None, bool] | None = None
        self._help = Help.OTHERS
        self._progress = 0

    def go_on(self, steps: int, help_from: Help, left: int) -> bool:
        """Let it take some steps; return whether it got further, as far as that is known by now.

        It stops where it has taken more than `left` instructions.
        """
        if self._steps is None:
            self._steps, self._help = self.scheduler.interruptible(help_from), help_from
        try:
            for _ in range(steps):
                next(self._steps)
                if self.scheduler.steps > left:
                    break
        except StopIteration as end:
            further = end.value or self.scheduler.progress > self._progress
            self._steps, self._progress = None, self.scheduler.progress
            self.ended, self.in_vain = end.value, not further and self._help is help_from
            return bool(further)
        return False


def run_interleaved(schedulers: Sequence[Scheduler], order: Order) -> None:
    """Run batches interleaved until all have ended, none goes on, or they took too many instructions."""
    number, by_lot = order.number, order.number >= FIXED
    numbers, longest = np.random.default_rng(number), _MOST_STEPS[number % len(_MOST_STEPS)]
    going = [_Runner(scheduler) for scheduler in schedulers]
    if number == 1:
        going.reverse()
    elif number == 2:
        going = going[len(going) // 2 :] + going[: len(going) // 2]
    level = 0
    try:
        while going and sum(scheduler.steps for scheduler in schedulers) <= order.left:
            able = [one for one in going if not one.in_vain]
            chosen = able[int(numbers.integers(len(able)))] if by_lot else able[0]
            steps = int(numbers.integers(1, longest + 1)) if by_lot else _WHOLE
            if chosen.go_on(steps, _HELPS[level], order.left):
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
    finally:
        taken = sum(scheduler.steps for scheduler in schedulers)
        order.taken, order.left = order.taken + taken, order.left - taken
        order.ended = order.ended and not going
