# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a GPU measured is counted by the executor, in a process of its own."""

import numpy as np
import pytest
from counting_support import counted
from problem_support import problem_for

import gpuprof
from gpuprof.backends.sim import watching
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.counters import OF_EXECUTOR
from gpuprof.devices.cards import load_card
from gpuprof.executor import Observer
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.execute import Compiler
from gpuprof.options import RunOptions
from gpuprof.records import replace

DEVICE = load_card("h200")
TILED = next(kernel for kernel in shipped_ladder("gemm").kernels if kernel.id == "smem_tiled")


def measured(case):
    """The case as a GPU would leave it."""
    return replace(
        unmeasured(case, case.kernel, "ok", None, "-"), source_hash=TILED.source_hash, event_floor_us=2.0
    )


def test_a_measured_case_gets_the_counts_and_bounds_of_the_executor():
    problem = problem_for(TILED, 96, 64, 32)
    case = Case.of(TILED, problem)
    found = counted(measured(case), case, DEVICE)
    shape = configure(TILED, problem, case.block, {}, DEVICE)
    direct = SimBackend(DEVICE).count(shape, Compiler(DEVICE.arch)(shape))
    assert found.executor_counters == direct.counters
    assert found.lines == direct.lines
    assert found.counters == {}
    assert found.bounds["launch"].least_us == 2.0
    assert {"fma", "l1", "l2"} <= set(found.bounds)
    assert found.bound_by in found.bounds
    assert found.bounds_reason is None


@pytest.mark.parametrize(
    ("limit", "reason"), [(3, None), (2, "calls a function of the driver's, such as printf")]
)
def test_calls_of_the_driver_that_nobody_makes_leave_instructions_counted_and_modelled(limit, reason):
    source = """extern "C" __global__ void checked(int *out, const int *x, int limit)
{
    assert(x[threadIdx.x] <= limit);
    if (x[threadIdx.x] == limit)
        printf("%d", x[threadIdx.x]);
    out[threadIdx.x] = x[threadIdx.x];
}"""
    x = np.arange(64, dtype=np.int32) % 3
    (case,) = gpuprof.profile(
        gpuprof.Source(source, "checked"),
        args={"out": None, "x": x, "limit": limit},
        expect={"out": x},
        grid=1,
        block=64,
        device="sim:h200",
    ).record.cases
    counter = case.counters["warp_instructions"]
    assert (counter.value is None, case.model is None) == (reason is not None,) * 2
    for said in (counter.reason, case.model_reason):
        assert (reason or "") in (said or "")


class WordLoads(Observer):
    """Counts the lanes that load one word each."""

    def read(self, buffer, one):
        one.count("word_lanes", np.full(len(one.who), one.size == 4))


def test_a_counter_of_ones_own_is_a_row_and_an_observer_that_watches_every_case(monkeypatch):
    name = "global_load_word_lanes"
    row = replace(OF_EXECUTOR["global_load_requests"], name=name, unit="lanes", metrics=())
    monkeypatch.setitem(OF_EXECUTOR, name, row)
    monkeypatch.setattr(watching, "COUNTING", [WordLoads])
    shape = configure(TILED, problem_for(TILED, 64, 64, 64), TILED.block, {}, DEVICE)
    found = SimBackend(DEVICE).run(shape, Compiler(DEVICE.arch)(shape))
    requests = found.counters["global_load_requests"].value
    assert found.counters[name].value == 32 * requests
    assert sum(line.counters.get(name, 0) for line in found.lines) == 32 * requests


def test_a_count_that_takes_too_long_costs_the_counts_only():
    case = Case.of(TILED, problem_for(TILED, 1024, 1024, 1024))
    before = measured(case)
    found = counted(before, case, DEVICE, seconds=0.05)
    why = "the executor did not count it: it takes more than 0.05 s"
    assert found == replace(before, lines_reason=why, bounds_reason=why, model_reason=why)


def test_a_kernel_that_the_executor_cannot_run_says_why():
    case = Case.of(TILED, problem_for(TILED, 64, 64, 64))
    broken = replace(TILED, source=TILED.source.replace("real sum = 0;", "real sum = 0; __trap();"))
    assert broken.source != TILED.source
    found = counted(measured(case), replace(case, kernel=broken), DEVICE)
    assert found.executor_counters == {}
    assert "trap" in found.bounds_reason
    assert found.lines_reason == found.bounds_reason


PANELS = next(kernel for kernel in shipped_ladder("gemm").kernels if kernel.id == "bulk_8x16")


def stores_of_panels(blocks):
    """What the executor counts of a grid whose blocks take tiles in another order than their own."""
    problem = problem_for(PANELS, 516, 260, 388)
    shape = configure(PANELS, problem, PANELS.block, {"PANEL": 16}, DEVICE)
    backend = SimBackend(DEVICE, RunOptions(sim_blocks=blocks))
    counters = backend.count(shape, Compiler(DEVICE.arch)(shape)).counters
    return counters["global_store_sectors"]


def test_a_grid_of_few_blocks_is_counted_whole_as_the_card_counts_it():
    found = stores_of_panels(None)
    assert (found.value, found.is_estimate) == (21156, False)  # as Nsight Compute counted on an H200
    assert found.sampled_blocks == found.total_blocks


def test_a_sample_whose_blocks_stand_for_others_of_another_kind_is_an_estimate():
    found = stores_of_panels(6)
    assert found.sampled_blocks < found.total_blocks
    assert found.is_estimate


def test_a_case_of_several_launches_whose_sample_needs_a_caveat_is_counted_whole():
    kernel = next(kernel for kernel in shipped_ladder("reduce").kernels if kernel.id == "atomic_add")
    problem = problem_for(kernel, 1 << 24)
    shape = configure(kernel, problem, kernel.block, {}, DEVICE)
    assert len(shape.launches) > 1
    found = SimBackend(DEVICE).count(shape, Compiler(DEVICE.arch)(shape))
    assert found.caveat is None
    assert found.counters["global_load_useful_bytes"].value >= 4 * (1 << 24)


def test_a_race_that_the_card_does_not_show_is_told_beside_its_time():
    case = Case.of(TILED, problem_for(TILED, 64, 64, 64))
    text, _, rest = TILED.source.rpartition("__syncthreads();")
    racing = replace(TILED, source=text + rest)
    found = counted(measured(case), replace(case, kernel=racing), DEVICE)
    (said,) = found.remarks
    assert said.startswith("The results are right here, which CUDA does not promise: ")
    assert found.lines_reason in said
    assert "race" in said
    assert found.outcome == "ok"
