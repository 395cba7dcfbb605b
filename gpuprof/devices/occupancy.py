# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Theoretical occupancy: how many blocks of a launch one SM can hold, and what stops the next one.

The rules are those of the occupancy calculator that the CUDA Toolkit ships (`cuda_occupancy.h`), with the
limits of the CUDA Programming Guide's tables of compute capabilities. They give what
`cuOccupancyMaxActiveBlocksPerMultiprocessor` answers for a kernel with no carve-out preference: an SM's split
between L1 cache and shared memory takes a few fixed sizes, and the largest one counts, because the driver
raises the split as far as the resident blocks need.
"""

from msgspec import Struct

from gpuprof.devices.cards import Granularity, granularity
from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure

_WARP_THREADS = 32
#: What to do where not even one block fits.
_FIXES = {
    "registers": "Use a smaller block, or limit registers with __launch_bounds__.",
    "shared memory": "Use a smaller tile.",
}


class TheoreticalOccupancy(Struct, frozen=True):
    """Resident blocks and warps of one launch shape.

    `limiter` allows no further block: `registers`, `shared memory`, `threads` or `blocks`, joined by "and".
    """

    theoretical_pct: float
    limiter: str
    blocks_per_sm: int


class OccupancyLimit(Struct, frozen=True):
    """How many blocks one resource of an SM holds.

    `blocks` is None where a block takes none of it; `reckoned` is the arithmetic in words and figures.
    """

    name: str
    blocks: int | None
    reckoned: str


def occupancy_limits(
    device: Device, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int
) -> tuple[OccupancyLimit, ...]:
    """What each resource of an SM allows: the least of them is the occupancy.

    Shared memory is static and dynamic together, without what CUDA reserves.

    Returns:
        0 blocks where not even one fits an SM: no card allows a single block less than its SM has.
    """
    units = granularity(device.capability)
    warps = _divide_up(threads_per_block, _WARP_THREADS)
    most_warps = device.max_threads_per_sm // _WARP_THREADS
    threads = f"{threads_per_block} threads are {warps} warps; an SM holds {most_warps} warps"
    return (
        _by_registers(device, units, warps, registers_per_thread),
        _by_shared_memory(device, units, shared_bytes_per_block),
        OccupancyLimit("threads", most_warps // warps, threads),
        OccupancyLimit("blocks", device.max_blocks_per_sm, "an SM holds so many blocks of any size"),
    )


def _by_registers(device: Device, units: Granularity, warps: int, per_thread: int) -> OccupancyLimit:
    """Registers are handed out by the warp, in units, from the sub-partition that the warp runs on."""
    if per_thread == 0:
        return OccupancyLimit("registers", None, "the kernel uses none")
    asked = per_thread * _WARP_THREADS
    per_warp = _round_up(asked, units.registers_per_warp)
    share = device.registers_per_sm // units.sub_partitions
    held = share // per_warp
    rounded = f", rounded up to {per_warp:,}" if per_warp != asked else ""
    return OccupancyLimit(
        "registers",
        held * units.sub_partitions // warps,
        f"{per_thread} a thread x {_WARP_THREADS} = {asked:,} a warp{rounded}; each of the SM's"
        f" {units.sub_partitions} parts has {share:,}, which hold {held} warps;"
        f" {held * units.sub_partitions} warps / {warps} a block",
    )


def _by_shared_memory(device: Device, units: Granularity, per_block: int) -> OccupancyLimit:
    """The largest carve-out counts."""
    reserved = device.reserved_shared_bytes_per_block
    allocated = _round_up(per_block + reserved, units.shared_bytes_per_block)
    if not allocated:
        return OccupancyLimit("shared memory", None, "the kernel uses none")
    rounded = f", rounded up to {allocated:,}" if allocated != per_block + reserved else ""
    own = f"{per_block:,} + {reserved:,} reserved" if reserved else f"{per_block:,}"
    return OccupancyLimit(
        "shared memory",
        device.shared_bytes_per_sm // allocated,
        f"{own} bytes a block{rounded}; an SM has {device.shared_bytes_per_sm:,}",
    )


def theoretical_occupancy(
    device: Device, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int
) -> TheoreticalOccupancy:
    """Resident blocks and warps per SM of one launch shape.

    Raises:
        CaseFailure: Not even one block fits.
    """
    warps = _divide_up(threads_per_block, _WARP_THREADS)
    limits = occupancy_limits(
        device,
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block,
    )
    blocks = min(limit.blocks for limit in limits if limit.blocks is not None)
    if not blocks:
        lacking = next(limit for limit in limits if limit.blocks == 0)
        raise CaseFailure(
            f"No block fits on an SM of {device.name}, for {lacking.name}: {lacking.reckoned}.",
            over_limit=True,
            fix=_FIXES.get(lacking.name, ""),
        )
    return TheoreticalOccupancy(
        theoretical_pct=100.0 * blocks * warps / (device.max_threads_per_sm // _WARP_THREADS),
        limiter=" and ".join(limit.name for limit in limits if limit.blocks == blocks),
        blocks_per_sm=blocks,
    )


def _divide_up(value: int, unit: int) -> int:
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    return _divide_up(value, unit) * unit
