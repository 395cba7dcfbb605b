# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Two GPUs at once measure what one alone measures, in half the time; one with a load is named."""

import os
import signal
import subprocess
import sys
import time

import pytest
from processes import workers_of

import gpuprof
from gpuprof.comparison.cautions import cautions
from gpuprof.comparison.fleet import cards_of

#: From here on a time is steady enough for 1 %.
_STEADY_US = 50.0

#: The first kernel of the shipped GEMM on GPU 1, one launch behind the other until it is killed.
LOAD = """
from contextlib import closing

from gpuprof.backends.gpu.arrays import ArrayKeeper
from gpuprof.backends.gpu.context import GpuContext
from gpuprof.backends.gpu.loaded_case import LoadedCase
from gpuprof.backends.gpu.driver import query_device
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import configure
from gpuprof.measure.execute import Compiler
from gpuprof.problems.problem import Problem

context, device, ladder = GpuContext(1), query_device(1), shipped_ladder("gemm")
kernel, problem = ladder.kernels[0], Problem.of(ladder.operation, (4096, 4096, 4096))
shape = configure(kernel, problem, kernel.block, {}, device)
arrays = ArrayKeeper(context, device.arch, 0).of(problem)
compiled = Compiler(device.arch)(shape)
with closing(LoadedCase(shape, compiled, arrays, device, context.stream)) as case:
    while True:
        for _ in range(8):
            case.queue()
        context.synchronize()
"""


@pytest.fixture(scope="module")
def two_gpus(gpu_count):
    if gpu_count < 2:
        pytest.skip("needs two GPUs")


@pytest.fixture(scope="module")
def kernels():
    """Three kernels of the shipped GEMM that run at any size, whatever they are called."""
    from gpuprof.kernels.catalog import shipped_ladder

    kernels = shipped_ladder("gemm").kernels
    ladder = [one.id for one in kernels if "f32" in one.dtypes and not (one.requirements or one.choices)]
    return [ladder[0], ladder[len(ladder) // 2], ladder[-1]]


#: Nothing beside the kernels.
ALONE = {"references": (), "lines": False}


def timed(**how):
    """A run and the seconds that it took."""
    start = time.monotonic()
    run = gpuprof.profile("gemm", sizes=[1024, 2048, 4096], seconds_per_case=1.0, rounds=2, **how, **ALONE)
    return run, time.monotonic() - start


def medians(run, device):
    return {
        (case.kernel, case.problem.label): case.timing.cold.median_us
        for case in run.record.cases
        if case.device == device and case.outcome == "ok"
    }


@pytest.fixture(scope="module")
def alone(two_gpus, kernels):
    """Each GPU by itself; the first run fills the caches of code and rates and is thrown away."""
    timed(device=[0, 1], kernels=kernels)
    return [timed(device=number, kernels=kernels) for number in (0, 1)]


def agree(run, device, reference):
    found, expected = medians(run, device), medians(reference, 0)
    assert found.keys() == expected.keys()
    steady = {key: time for key, time in expected.items() if time >= _STEADY_US}
    assert steady
    for key, time_us in steady.items():
        assert found[key] == pytest.approx(time_us, rel=0.01), key


@pytest.mark.gpu
def test_two_gpus_side_by_side_measure_what_each_does_alone(alone, kernels):
    run, seconds = timed(device="0,1", kernels=kernels)
    for number in (0, 1):
        agree(run, number, alone[number][0])
    assert run.record.places[0].bus_id != run.record.places[1].bus_id
    assert seconds < 0.65 * sum(taken for _, taken in alone)


@pytest.mark.gpu
def test_cluster_with_a_worker_a_gpu_measures_the_same(alone, kernels):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    run, seconds = timed(cluster="local:2", kernels=kernels)
    assert len(run.devices) == 2
    buses = {place.bus_id for place in run.record.places}
    assert len(buses) == 2
    by_bus = {one.record.places[0].bus_id: one for one, _ in alone}
    for number, place in enumerate(run.record.places):
        agree(run, number, by_bus[place.bus_id])
    assert seconds < 0.75 * sum(taken for _, taken in alone)


@pytest.mark.gpu
def test_process_of_one_gpu_that_is_killed_costs_nothing(two_gpus, kernels):
    """A worker that is killed from outside is replaced, and its case is measured again."""

    class Killer(gpuprof.Progress):
        done = 0

        def finished(self, _):
            self.done += 1
            if self.done == 3:
                for pid in workers_of(os.getpid()):
                    os.kill(pid, signal.SIGKILL)

    run = gpuprof.profile(
        "gemm", kernels=kernels, sizes=[1024, 2048], device="all", progress=Killer(), explain=False, **ALONE
    )
    first = [case for case in run.record.cases if case.device < 2]
    assert len(first) == 12
    # A case that is killed in its fresh process, before any other ran there, is taken for the culprit.
    assert sum(case.outcome == "ok" for case in first) >= 10
    assert all(place.lost is None for place in run.record.places)


@pytest.mark.gpu
def test_gpu_that_somebody_else_uses_is_named(two_gpus, kernels):
    pynvml = pytest.importorskip("pynvml")
    from gpuprof.backends.gpu.driver import pci_bus_id

    load = subprocess.Popen(
        [sys.executable, "-c", LOAD], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id(1).encode())
        deadline = time.monotonic() + 180
        busy = 0
        while busy < 3:
            assert time.monotonic() < deadline, "the load did not begin"
            assert load.poll() is None, "the load ended"
            busy = busy + 1 if pynvml.nvmlDeviceGetUtilizationRates(handle).gpu > 80 else 0
            time.sleep(1.0)
        # Processes share a GPU by slices of time: kernels shorter than one may not feel the other.
        run = gpuprof.profile(
            "gemm", kernels=kernels, sizes=4096, device="0,1", seconds_per_case=1.0, **ALONE
        )
    finally:
        load.kill()
        load.wait()
    (kind,) = cards_of(run.record).found.kinds
    (outlier,) = kind.outliers
    assert outlier.card == run.record.device_label(1)
    assert outlier.change > 0.02
    assert any("load" in cause or "processes" in cause for cause in outlier.causes), outlier.causes
    assert "card_outlier" in {banner.code for banner in cautions(run.record)}
