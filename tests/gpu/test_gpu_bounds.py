# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""On a real card: what it reaches, and that no bound lies above a measured time."""

import json
import os
import sys

import pytest
from processes import ran

import gpuprof
from gpuprof.backends.gpu import rate_meter
from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.devices.measured import MEASURED_RATES, theoretical
from gpuprof.records import replace
from gpuprof.statistics import SamplingBudget

#: Timer resolution and clocks that boost a little above what the driver says.
TOLERANCE = 1.02
#: An empty launch is measured too, and takes a little longer at times than one that does next to nothing.
NOISE = 1.05
SIZES = {"reduce": (4096, 1 << 22), "transpose": (128, 2048), "gemm": (128, 1024)}


@pytest.fixture(scope="module")
def device(gpu_count):
    return GpuBackend(0, seed=7, budget=SamplingBudget(seconds=0.01)).measured_device()


def shares(device):
    limits = theoretical(device)
    return {key: device.measured_rates[key] / limits[key] for key in limits if key in device.measured_rates}


def test_every_rate_is_measured(device):
    assert device.measured_rates_reason is None
    assert device.measured_rates.keys() == MEASURED_RATES.keys()


def test_no_rate_is_above_what_the_hardware_has(device):
    assert {key: share for key, share in shares(device).items() if share > TOLERANCE} == {}


@pytest.mark.parametrize(
    ("key", "least"),
    [("fma_f32_gflops", 0.9), ("fma_f64_gflops", 0.9), ("shared_gbps", 0.9), ("dram_read_gbps", 0.8)],
)
def test_small_kernels_come_near_the_theoretical_rates(device, key, least):
    assert shares(device)[key] > least


def test_latencies_grow_with_the_distance(device):
    cycles = [
        device.measured_rates[f"{part}_latency_cycles"] for part in ("fma", "shared", "l1", "l2", "dram")
    ]
    assert cycles == sorted(cycles)
    assert cycles[0] > 1


def test_rates_are_kept_on_disk_and_not_measured_twice(device, tmp_path, monkeypatch):
    # A folder of its own: tests beside this one measure the rates too, and the last to end keeps its own.
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    first = GpuBackend(0, seed=7, budget=SamplingBudget(seconds=0.01)).measured_device().measured_rates

    def measured_again(self):
        pytest.fail("the rates of this device were measured before")

    monkeypatch.setattr(rate_meter.RateMeter, "measure", measured_again)
    again = GpuBackend(0, seed=7, budget=SamplingBudget(seconds=0.01)).measured_device().measured_rates
    own = {key: value for key, value in again.items() if key != "launch_floor_us"}
    assert own == {key: first[key] for key in own}


def test_another_driver_or_kernel_of_ours_measures_anew(device, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    calls = []

    def measure():
        calls.append(1)
        return {"fma_f32_gflops": float(len(calls))}

    assert rate_meter.kept_rates(device, "one", measure) == rate_meter.kept_rates(device, "one", measure)
    rate_meter.kept_rates(device, "another", measure)
    rate_meter.kept_rates(replace(device, name="another card"), "one", measure)
    assert len(calls) == 3


def gpuprof_says(*arguments):
    done = ran([sys.executable, "-m", "gpuprof", *arguments], env={**os.environ, "COLUMNS": "120"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_devices_measure_prints_them(gpu_count):
    said = gpuprof_says("devices", "--measure")
    for info in MEASURED_RATES.values():
        assert info.label in said
    assert "not measured" not in said


def profiled(tmp_path, *options):
    out = tmp_path / "results.json"
    case = ("-k", "naive_col", "--sizes", "256", "--device", "0", "--reference", "none")
    gpuprof_says("transpose", *case, "--json", str(out), "--quiet", *options)
    (found,) = json.loads(out.read_text("utf-8"))["cases"]
    return found


def test_a_run_is_counted_and_bounded_beside_its_times(gpu_count, tmp_path):
    case = profiled(tmp_path)
    assert case["outcome"] == "ok", case["reason"]
    assert case["executor_counters"]["l1_passes"]["value"] > 0
    assert case["lines"]
    assert case["bound_by"] in case["bounds"]
    assert all(bound["formula"] and bound["source"] for bound in case["bounds"].values())
    assert case["bounds"]["launch"]["least_us"] == case["event_floor_us"]


def test_no_lines_counts_nothing_and_says_why_there_are_no_bounds(gpu_count, tmp_path):
    case = profiled(tmp_path, "--no-lines")
    assert case["outcome"] == "ok", case["reason"]
    assert not case["executor_counters"]
    assert not case["lines"]
    assert case["bound_by"] is None
    assert case["bounds_reason"]


@pytest.mark.parametrize(
    ("operation", "size"), [(operation, size) for operation, sizes in SIZES.items() for size in sizes]
)
def test_no_bound_is_above_the_measured_median(gpu_count, operation, size):
    run = gpuprof.profile(operation, sizes=size, device="0", lines=True, seconds_per_case=0.05)
    bounded = [case for case in run.cases if case.ok and not case.is_reference and case.bound_by]
    assert bounded
    above = {
        (repr(case), part): bound.least_us
        for case in bounded
        for part, bound in case.bounds.items()
        if bound.least_us > (NOISE if part == "launch" else TOLERANCE) * case.median_us
    }
    assert above == {}
    assert all(0 < case.pct_of_bound <= 100 * NOISE for case in bounded)
