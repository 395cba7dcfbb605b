# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What an SM plays: instructions, what surrounds it, and what warps that only copy bring to the others."""

from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

from gpuprof.sm_model.traffic import Traffic

#: Six dependence barriers, and one for products of warp groups.
PRODUCTS = 6
#: What a warp's cycles go to, in the order of `Step.spent`.
REASONS = ("issue", "dependency", "latency", "bandwidth", "barrier")


class StepKind(IntEnum):
    """What an instruction does beside taking an issue slot."""

    PLAIN = 0
    LATE = 1
    SHARED = 2
    LOAD = 3
    STORE = 4
    COPY = 5
    GROUP = 6
    UNTIL = 7
    PRODUCT = 8
    BULK = 9
    BULK_STORE = 10
    PHASE = 11
    FENCE = 12
    BARRIER = 13
    END = 14


@dataclass(slots=True)
class Step:
    """One instruction as the SM plays it.

    Args:
        kind: What it does beside taking an issue slot.
        pipe: Which pipe of its scheduler it takes.
        cycles: And for how long.
        stall: Cycles before the warp's next one.
        waits: Dependence barriers that it waits for.
        sets: The barrier that its result frees.
        frees: The barrier that reading its operands frees.
        latency: From issue to result, of what comes late.
        asked: What it asks of memory.
        sent: Of a store, cycles from one sector to the next on the way to L2.
        effort: Of L2 for one of them, where 1 is that of a sector in a whole line.
        scattered: Of DRAM, where 1 is that of a sector in a long run.
        lines: That one request asks for.
        crowded: Of an atomic operation, nanoseconds of the busiest part of L2.
        even: Operands that it reads from the register bank of even numbers.
        odd: From the other one.
        outstanding: Of `StepKind.UNTIL`, how many results of the barrier that it names may still be missing;
            of `StepKind.BARRIER`, how many warps meet there, 0 for all of the block.
        line: Of the source.
        spent: Cycles that warps spent here since the instruction before, by `REASONS`.
    """

    kind: StepKind
    pipe: int = 0
    cycles: float = 0.0
    stall: float = 1
    waits: tuple[int, ...] = ()
    sets: int | None = None
    frees: int | None = None
    latency: float = 0.0
    asked: Traffic = field(default_factory=Traffic)
    sent: float = 0.0
    effort: float = 1.0
    scattered: float = 1.0
    lines: float = 1.0
    crowded: float = 0.0
    even: int = 0
    odd: int = 0
    outstanding: int = 0
    line: int = 0
    spent: list[float] = field(default_factory=lambda: [0.0] * len(REASONS))


@dataclass(frozen=True, slots=True)
class SmSurroundings:
    """What surrounds the SM, in its cycles.

    Args:
        l1_latency: Of a load that hits in L1.
        l2_latency: The same of L2.
        dram_latency: The same of DRAM.
        l2_cycles: From one sector of L2 to the next.
        dram_cycles: The same of DRAM.
        barrier_cycles: From one warp that reaches a barrier to the next.
        l2_write_cycles: From one sector that L2 takes to the next; as `l2_cycles` if 0.
        release_cycles: From the last warp at a barrier to the first instruction behind it.
        block_cycles: From one block that starts to the next, at least.
        warp_cycles: From one warp of a block that starts to the next.
        gap_cycles: From the end of a block to the start of the one that takes its room.
        stored_cycles: The same from when L2 has acknowledged its stores.
        bulk_latency: From a bulk copy to its arrival from L2.
        crowd_cycles: Of all SMs that have blocks, a nanosecond.
        loaded: How many cycles later DRAM answers when so much of its rate is used: a share, cycles on
            average, and how far answers vary around that.
    """

    l1_latency: float
    l2_latency: float
    dram_latency: float
    l2_cycles: float
    dram_cycles: float
    barrier_cycles: float
    l2_write_cycles: float = 0.0
    release_cycles: float = 15.0
    block_cycles: float = 0.0
    warp_cycles: float = 0.0
    gap_cycles: float = 0.0
    stored_cycles: float = 0.0
    bulk_latency: float = 0.0
    crowd_cycles: float = 0.0
    loaded: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))

    def later(self, used: float) -> tuple[float, float]:
        """By how many cycles DRAM answers later when so much of its rate is used, and how far that varies."""
        for (low, *before), (high, *after) in pairwise(self.loaded):
            if used < high:
                part = (used - low) / (high - low)
                later, varies = (one + (two - one) * part for one, two in zip(before, after, strict=True))
                return later, varies
        return self.loaded[-1][1:]


@dataclass(frozen=True, slots=True)
class Fed:
    """What warps that only copy bring to the others, who wait for it.

    Args:
        step: One of the copies.
        ahead: For how many waits shared memory has room.
        after: Cycles from a block's start until the first one can begin.
    """

    step: Step
    ahead: int
    after: float = 0.0
