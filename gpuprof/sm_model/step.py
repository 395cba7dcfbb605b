# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What an SM plays: instructions."""

from enum import IntEnum

from msgspec import Struct, field

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
    ARRIVAL = 12
    FENCE = 13
    BARRIER = 14
    END = 15


class Step(Struct):
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
        sent: Cycles from one sector to the next on the SM's own way to or from L2, where not the usual ones.
        effort: Of L2 for one of them, where 1 is that of a sector in a whole line.
        scattered: Of DRAM, where 1 is that of a sector in a long run.
        lines: That one request asks for.
        led: How much earlier than the others the first of the blocks that read the same asks DRAM, where 1 is
            how far answers vary: what they waited for before came to each at another time.
        crowded: Of an atomic operation, nanoseconds of the busiest part of L2.
        even: Operands that it reads from the register bank of even numbers.
        odd: From the other one.
        outstanding: Of `StepKind.UNTIL`, how many results of the barrier that it names may still be missing;
            of `StepKind.BARRIER`, how many warps meet there, 0 for all of the block; of `StepKind.ARRIVAL`, 1
            if it arrives once the warp's asynchronous copies have.
        line: Of the source.
        spent: Cycles that warps spent here beside its slot and the stall cycles of the instruction before in
            its block, by `REASONS`.
        held: Whether a warp may have to wait for results before it.
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
    led: float = 0.0
    crowded: float = 0.0
    even: int = 0
    odd: int = 0
    outstanding: int = 0
    line: int = 0
    spent: list[float] = field(default_factory=lambda: [0.0] * len(REASONS))
    held: bool = False

    def __post_init__(self) -> None:
        self.held = bool(self.waits) or self.kind is StepKind.UNTIL
