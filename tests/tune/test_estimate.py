# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a point may take by its counts: the work of each part, and latencies that few warps do not hide."""

import math
from dataclasses import replace

import pytest
from synthetic_times import landscape

from gpuprof.devices.cards import load_card
from gpuprof.results import Bound, Counter
from gpuprof.tuning.estimate import estimated_us

CARD = load_card("h200")
#: Of dependent arithmetic, shared memory, L1 and DRAM.
LATENCIES = (4.0, 20.0, 40.0, 600.0)


@pytest.fixture(scope="module")
def device():
    names = ("fma", "shared", "l1", "dram")
    rates = {f"{name}_latency_cycles": cycles for name, cycles in zip(names, LATENCIES, strict=True)}
    return replace(CARD, measured_rates=rates)


@pytest.fixture(scope="module")
def point():
    return landscape(2048, 0).points[0]


def counted(one, bounds=(30.0,), blocks_per_sm=None, **counts):
    """The point with these bounds and, of each warp, these counts."""
    shape = one.candidate.shape.largest
    warps = math.prod(shape.grid) * math.ceil(math.prod(shape.block) / 32)
    held = {str(part): Bound(us, "made up", "made up") for part, us in enumerate(bounds)}
    measurement = replace(
        one.measurement,
        executor_counters={name: Counter(warps * each, "", "sim") for name, each in counts.items()},
        bounds=held,
        bound_by="0",
    )
    if blocks_per_sm is not None:
        measurement = replace(
            measurement, occupancy=replace(measurement.occupancy, blocks_per_sm=blocks_per_sm)
        )
    return replace(one, measurement=measurement)


def waiting_us(one, device):
    """What is left of an estimate whose only bound takes 30 us."""
    return math.sqrt(estimated_us(one, device) ** 2 - 30.0**2)


def test_by_hand(point, device):
    one = counted(
        point,
        (30.0, 20.0),
        blocks_per_sm=2,
        warp_instructions=1000,
        barriers=10,
        global_load_requests=50,
        global_store_requests=4,
        shared_load_requests=60,
        shared_store_requests=5,
    )
    cycles = 1000 * 4.0 / 2 + (1 + 10) * 600.0 + (50 + 4) * 40.0 + (60 + 5) * 20.0
    waves = math.ceil(math.prod(one.candidate.shape.largest.grid) / (2 * device.sm_count))
    waited = waves * cycles / device.sm_clock_mhz
    assert estimated_us(one, device) == pytest.approx(math.sqrt(30.0**2 + 20.0**2 + waited**2))


def test_who_was_not_counted_has_none(point, device):
    assert estimated_us(point, device) is None


def test_half_the_resident_blocks_wait_twice_as_long(point, device):
    blocks = math.prod(point.candidate.shape.largest.grid)
    assert blocks > 4 * device.sm_count
    one, other = (counted(point, blocks_per_sm=held, warp_instructions=100) for held in (1, 2))
    waves = [math.ceil(blocks / (held * device.sm_count)) for held in (1, 2)]
    assert waiting_us(one, device) / waiting_us(other, device) == pytest.approx(waves[0] / waves[1])


def test_a_barrier_makes_a_warp_wait_for_memory_only_if_it_reads(point, device):
    # A tree of sums has a barrier at each step, and none of them waits for DRAM.
    alone, tree = (counted(point, global_load_requests=1, barriers=each) for each in (0, 8))
    assert waiting_us(tree, device) == pytest.approx(waiting_us(alone, device))
    together, pieces = (counted(point, global_load_requests=9, barriers=each) for each in (0, 8))
    per_phase = (waiting_us(pieces, device) - waiting_us(together, device)) / 8
    assert per_phase / (waiting_us(tree, device)) == pytest.approx(600.0 / (600.0 + 40.0))


def test_a_device_that_nobody_measured_has_usual_latencies(point):
    unknown = replace(CARD, compute_capability="8.9", measured_rates={})
    one = counted(point, warp_instructions=100, global_load_requests=4)
    assert waiting_us(one, unknown) == pytest.approx(
        waiting_us(one, replace(CARD, measured_rates={})), rel=0.01
    )
    assert estimated_us(one, replace(unknown, sm_clock_mhz=0.0)) == 30.0
