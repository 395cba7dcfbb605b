# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Little's law: what must be under way on an SM to keep a part of the GPU busy, and what warps it holds."""

from math import ceil, prod
from typing import NamedTuple

from gpuprof.analysis import counts
from gpuprof.analysis.status import blocks_of
from gpuprof.bounds.parts import DRAM, L2, PARTS, WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.devices.measured import latencies
from gpuprof.devices.rates import sm_rates
from gpuprof.results import Measurement


class NeededInFlight(NamedTuple):
    """What must be under way on each SM at any time to keep one part of the GPU busy, by Little's law."""

    label: str
    unit: str
    needed: float


def flight(case: Measurement, device: Device, part: str) -> NeededInFlight | None:
    """What must be in flight to keep a part busy with a case's work; None without a rate or latency.

    That is its highest rate per cycle and SM, times the cycles from the start of a piece of work until its
    result can be used.
    """
    cycles = _cycles(case, device, part)
    if cycles is None or part not in PARTS:
        return None
    label, unit = PARTS[part].label, PARTS[part].unit
    rates = {name: rate.per_cycle for name, rate in sm_rates(device).items()}
    if part == DRAM.key:
        if not device.peak_bandwidth_gbps or not device.sm_clock_mhz:
            return None
        rate = device.peak_bandwidth_gbps * 1e3 / device.sm_clock_mhz / device.sm_count
        return NeededInFlight(label, unit, rate * cycles)
    rate_of = "l2_bytes" if part == L2.key else part
    return NeededInFlight(label, unit, rates[rate_of] * cycles) if rate_of in rates else None


def _cycles(case: Measurement, device: Device, part: str) -> float | None:
    """Latency of a part's work, on average."""
    known = latencies(device)
    if part != "l1":
        return known.get(f"{part}_latency_cycles") if part in ("fma", "l2", "dram") else None
    shared, cached = known.get("shared_latency_cycles"), known.get("l1_latency_cycles")
    if shared is None or cached is None:
        return None
    passes = counts.value(case, "l1_passes")
    here = counts.known(case, *counts.SHARED_PASSES)
    if not passes or here >= passes:
        return shared
    return (here * shared + (passes - here) * cached) / passes


class Residency(NamedTuple):
    """How many warps the busiest SM holds at a time, and why no more."""

    warps: float
    because: str


def resident(case: Measurement, device: Device) -> Residency | None:
    """The warps of a case on an SM; None where its occupancy is not known."""
    held = case.occupancy
    if held is None:
        return None
    blocks, warps = blocks_of(case), held.theoretical_pct / 100 * device.max_threads_per_sm / WARP_LANES
    if blocks is None:
        return Residency(warps, held.limiter)
    launched = ceil(blocks / device.sm_count) * ceil(prod(case.block) / WARP_LANES)
    return Residency(launched, "no more are launched") if launched < warps else Residency(warps, held.limiter)
