# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Theoretical occupancy with its arithmetic: how many blocks each resource allows, and which decides."""

from dataclasses import dataclass
from math import prod

from gpuprof.analysis import numbers
from gpuprof.devices.occupancy import OccupancyLimit, occupancy_limits
from gpuprof.results import Measurement, Run

_WARP_THREADS = 32


@dataclass(frozen=True, slots=True)
class OccupancyTable:
    """The limits of one launch shape.

    Args:
        sizes: At which it was launched so.
        limits: One a resource; the least decides.
        blocks: Resident blocks of an SM.
        total: How the occupancy follows from them.
    """

    sizes: tuple[str, ...]
    limits: tuple[OccupancyLimit, ...]
    blocks: int
    total: str


def occupancy_tables(run: Run, cases: tuple[Measurement, ...]) -> tuple[OccupancyTable, ...]:
    """The arithmetic of each launch shape among a kernel's cases.

    Args:
        run: The run.
        cases: Of one kernel.

    Returns:
        Only those that come to what was recorded with the case: what a driver answered is never contradicted.
    """
    found: dict[tuple[OccupancyLimit, ...], tuple[Measurement, list[str]]] = {}
    for case in cases:
        limits = _limits(run, case)
        if limits:
            found.setdefault(limits, (case, []))[1].append(case.problem.label)
    return tuple(_table(run, case, limits, sizes) for limits, (case, sizes) in found.items())


def _limits(run: Run, case: Measurement) -> tuple[OccupancyLimit, ...]:
    """Empty where occupancy was not recorded, or where the arithmetic does not come to it."""
    if case.resources is None or case.occupancy is None:
        return ()
    limits = occupancy_limits(
        run.devices[case.device],
        threads_per_block=prod(case.block),
        registers_per_thread=case.resources.registers_per_thread,
        shared_bytes_per_block=case.resources.shared_bytes,
    )
    return limits if 0 < _least(limits) == case.occupancy.blocks_per_sm else ()


def _least(limits: tuple[OccupancyLimit, ...]) -> int:
    return min(limit.blocks for limit in limits if limit.blocks is not None)


def _table(
    run: Run, case: Measurement, limits: tuple[OccupancyLimit, ...], sizes: list[str]
) -> OccupancyTable:
    blocks = _least(limits)
    warps = -(-prod(case.block) // _WARP_THREADS)
    most = run.devices[case.device].max_threads_per_sm // _WARP_THREADS
    named = "block" if blocks == 1 else "blocks"
    share = numbers.percent(100 * blocks * warps / most)
    return OccupancyTable(
        tuple(dict.fromkeys(sizes)),
        limits,
        blocks,
        f"{blocks} {named} x {warps} warps = {blocks * warps} of {most} warps: {share}",
    )
