# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is resident on an SM that plays: blocks of threads, and their warps."""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from gpuprof.sm_model.step import PRODUCTS, Step

#: Dependence barriers, and the tensor cores' products.
_HELD = PRODUCTS + 1


class ResidentBlock(Struct, eq=False):
    """A block of threads, from its launch to its end."""

    #: Who waits at a barrier, by its number, and when the last one came.
    arrived: dict[int, list["ResidentWarp"]] = {}
    latest: float = 0.0
    ended: int = 0
    end: float = 0.0
    #: Bulk copies that have begun.
    copies: int = 0
    #: When what warps share arrives, by who loads it and how often it did, and how many came for it.
    shared: dict[tuple[int, int], tuple[float, float, int]] = {}
    #: What was done for which tile: how many warps did it, when the last one had, and how long of that it
    #: stood in queues; and who waits for that.
    handed: dict[tuple[int, int], tuple[int, tuple[float, float]]] = {}
    hoping: list[tuple[tuple[int, int], "ResidentWarp"]] = []


class ResidentWarp(Struct, eq=False):
    """A warp: where it is on its path, and what it waits for."""

    block: ResidentBlock
    unit: int
    ready: float
    #: When it issued last.
    issued: float
    entered: float
    step: Step
    #: Those that follow in its block of machine code.
    rest: Iterator[Step]
    path: Sequence[int]
    role: int
    place: int = 0
    #: Of each dependence barrier, when what holds it is done, and how long of that it stands in queues; and
    #: whether it is memory beyond the SM.
    held: list[list[tuple[float, float]]] = field(default_factory=lambda: [[] for _ in range(_HELD)])
    far: list[bool] = field(default_factory=lambda: [False] * _HELD)
    copies: tuple[float, float] = (0.0, 0.0)
    resumes: float = 0.0
    #: How many tiles it has waited for, and brought.
    taken: int = 0
    brought: int = 0
    #: How often it executed loads that miss L1 at times.
    loads: dict[int, int] = {}
    #: Which of its block's warps it is, and the lines that it stored to last.
    number: int = 0
    stored: tuple[float, ...] = ()
    #: When it went on that waited last.
    resumed: float = 0.0
