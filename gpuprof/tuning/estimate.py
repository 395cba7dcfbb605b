# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a point may take by its counts alone: the work of every part, and the time that warps wait.

The highest bound says what a point cannot beat. Whether it comes near depends on how much the other parts
have to do beside it, and on whether there are enough warps that one works while another waits: a warp takes
its latencies one after the other, and an SM as many such lives as there are waves of blocks. V. Volkov,
"Understanding latency hiding on GPUs" (dissertation, University of California, Berkeley, 2016) takes the
slower of throughput and latency; here all times are joined by the root of the sum of their squares, which is
near the highest where one stands out.

Latencies are the device's own, as chains of dependent accesses measured them; nothing is fitted to a kernel.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpuprof.bounds.parts import WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.devices.measured import latencies
from gpuprof.results import Measurement
from gpuprof.tuning.space import Candidate

#: Cycles that stand for latencies of devices on which none were measured: an H200's.
_USUAL_CYCLES = {
    "fma_latency_cycles": 4.1,
    "shared_latency_cycles": 23.0,
    "l1_latency_cycles": 45.0,
    "dram_latency_cycles": 662.0,
}
#: Part of the latency of arithmetic that an instruction waits, as if every other one needed the last one.
_DEPENDENT = 0.5
_IN_GLOBAL = (
    "global_load_requests",
    "global_store_requests",
    "async_copy_requests",
    "global_atomic_requests",
)
_IN_SHARED = ("shared_load_requests", "shared_store_requests")


@dataclass(frozen=True, slots=True)
class BuiltPoint:
    """A candidate that was compiled and fits on the device, with its bounds once it was counted."""

    candidate: Candidate
    measurement: Measurement


def estimated_us(one: BuiltPoint, device: Device) -> float | None:
    """What a point may take, to be compared with others and not with a clock; None if it was not counted."""
    if not one.measurement.bound_by:
        return None
    return math.hypot(
        *(bound.least_us for bound in one.measurement.bounds.values()), _waiting_us(one, device)
    )


def _waiting_us(one: BuiltPoint, device: Device) -> float:
    """How long an SM is busy if each warp takes its latencies in turn, those of a wave at once."""
    assert one.measurement.occupancy is not None
    slots = device.sm_count * max(1, one.measurement.occupancy.blocks_per_sm)
    launches = one.candidate.shape.launches
    waves = sum(math.ceil(math.prod(each.grid) / slots) for each in launches)
    warps = sum(math.prod(each.grid) * math.ceil(math.prod(each.block) / WARP_LANES) for each in launches)
    counts = {
        name: float(counter.value)
        for name, counter in one.measurement.executor_counters.items()
        if counter.value is not None
    }
    life = _life_cycles(counts, warps, _USUAL_CYCLES | dict(latencies(device)))
    return waves * life / device.sm_clock_mhz if device.sm_clock_mhz else 0.0


def _life_cycles(counts: Mapping[str, float], warps: float, cycles: Mapping[str, float]) -> float:
    """Latencies of a usual warp. Between barriers it waits for memory once: its loads go together."""
    instructions = counts.get("warp_instructions", 0.0)
    reads = counts.get("global_load_requests", 0.0) + counts.get("async_copy_requests", 0.0)
    phases = min(warps + counts.get("barriers", 0.0), max(warps, reads))
    in_global, in_shared = (
        sum(counts.get(name, 0.0) for name in names) for names in (_IN_GLOBAL, _IN_SHARED)
    )
    total = (
        instructions * _DEPENDENT * cycles["fma_latency_cycles"]
        + phases * cycles["dram_latency_cycles"]
        + in_global * cycles["l1_latency_cycles"]
        + in_shared * cycles["shared_latency_cycles"]
    )
    return total / warps
