# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Latency that the resident warps cannot hide, with its arithmetic: Little's law."""

from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.kinds import blocks_of
from gpuprof.bounds.parts import DRAM, L2, PARTS, WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.devices.measured import latencies
from gpuprof.devices.rates import sm_rates
from gpuprof.results import Measurement

_UNHIDDEN = "Latency-bound: no part of the GPU is busy all the time."


@dataclass(frozen=True, slots=True)
class NeededInFlight:
    """What must be under way on each SM at any time to keep one part of the GPU busy.

    That part's highest rate per cycle and SM, and cycles from the start of a piece of work until its result
    can be used; `of` says of what these are an average.
    """

    label: str
    unit: str
    per_cycle: float
    cycles: float
    of: str = ""

    @property
    def needed(self) -> float:
        """Units in flight on each SM, by Little's law."""
        return self.per_cycle * self.cycles

    @property
    def formula(self) -> str:
        """For example `4.00 a cycle x 4.10 cycles`."""
        of = f", {self.of}" if self.of else ""
        return (
            f"{numbers.significant(self.per_cycle)} a cycle x {numbers.significant(self.cycles)} cycles{of}"
        )


def flight(case: Measurement, device: Device, part: str) -> NeededInFlight | None:
    """What must be in flight to keep a part busy with a case's work; None without a rate or latency."""
    found = _cycles(case, device, part)
    if found is None or part not in PARTS:
        return None
    cycles, of = found
    label, unit = PARTS[part].label, PARTS[part].unit
    rates = {name: rate.per_cycle for name, rate in sm_rates(device).items()}
    if part == DRAM.key:
        if not device.peak_bandwidth_gbps or not device.sm_clock_mhz:
            return None
        rate = device.peak_bandwidth_gbps * 1e3 / device.sm_clock_mhz / device.sm_count
        return NeededInFlight(label, unit, rate, cycles, of)
    rate_of = "l2_bytes" if part == L2.key else part
    return NeededInFlight(label, unit, rates[rate_of], cycles, of) if rate_of in rates else None


def _cycles(case: Measurement, device: Device, part: str) -> tuple[float, str] | None:
    """Latency of a part's work, and of what it is an average."""
    known = latencies(device)
    if part != "l1":
        cycles = known.get({"fma": "fma", "l2": "l2", "dram": "dram"}.get(part, "") + "_latency_cycles")
        return None if cycles is None else (cycles, "")
    shared, cached = known.get("shared_latency_cycles"), known.get("l1_latency_cycles")
    if shared is None or cached is None:
        return None
    passes = counts.value(case, "l1_passes")
    here = counts.known(case, *counts.SHARED_PASSES)
    if not passes or here >= passes:
        return shared, ""
    mean = (here * shared + (passes - here) * cached) / passes
    if not here:
        return cached, "hits in L1"
    figures = f"{numbers.significant(shared)} in shared memory, {numbers.significant(cached)} in L1"
    return mean, f"{figures}, {numbers.percent(100 * here / passes)} of it shared"


class Residency(NamedTuple):
    """How many warps the busiest SM holds at a time, why no more, and what to say of SMs without a block."""

    warps: float
    because: str
    idle: str = ""


def resident(case: Measurement, device: Device) -> Residency | None:
    """The warps of a case on an SM; None where its occupancy is not known."""
    held = case.occupancy
    if held is None:
        return None
    blocks, warps = blocks_of(case), held.theoretical_pct / 100 * device.max_threads_per_sm / WARP_LANES
    if blocks is None:
        return Residency(warps, held.limiter)
    launched = ceil(blocks / device.sm_count) * ceil(prod(case.block) / WARP_LANES)
    idle = f" Only {blocks} of {device.sm_count} SMs have a block." if blocks < device.sm_count else ""
    if launched < warps:
        return Residency(launched, "no more are launched", idle)
    return Residency(warps, held.limiter, idle)


def sentences(case: Measurement, device: Device, needs: NeededInFlight | None) -> str:
    """Why a case takes far longer than every bound: what is resident, and what each warp would have to do.

    `needs` would keep the busiest part busy; it is None where that is not known.
    """
    held = resident(case, device)
    if needs is None or held is None:
        return _UNHIDDEN
    each = needs.needed / held.warps if held.warps else needs.needed
    enough = (
        f"so each must keep {numbers.significant(each)} in flight at all times"
        if each > 1
        else "enough only if none waits for anything else"
    )
    return (
        f"{_UNHIDDEN}{held.idle} By Little's law {needs.label} needs {numbers.significant(needs.needed)}"
        f" {needs.unit} in flight on each SM ({needs.formula}); {numbers.brief(held.warps)} warps are"
        f" resident ({held.because}), {enough}."
    )
