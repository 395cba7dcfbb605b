# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels called from Python with arrays, on the GPU: timed, proved again, and told when they are wrong."""

import numpy as np
import pytest

import gpuprof

pytestmark = pytest.mark.usefixtures("gpu_count")

AXPY = """
extern "C" __global__ void axpy(long long n, T a, const T *x, T *y)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
HISTOGRAM = """
extern "C" __global__ void histogram(int n, const unsigned char *x, unsigned *bins)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i]], 1u);
}
"""
X = np.linspace(-1, 1, 1 << 20)


def axpy(source=AXPY, dtype=np.float32, text="float", **changed):
    x, y = X.astype(dtype), np.full(X.size, 3, dtype)
    given = {
        "args": {"n": x.size, "a": 2.0, "x": x, "y": y},
        "expect": {"y": lambda values: values["a"] * values["x"].astype(np.float64) + values["y"]},
        "grid": "cdiv(n, block_x)",
        "block": 256,
        "device": 0,
        "seconds_per_case": 0.02,
        **changed,
    }
    return gpuprof.profile(gpuprof.Source(source.replace("T", text), "axpy"), **given).cases[0]


@pytest.mark.parametrize(("dtype", "text"), [(np.float32, "float"), (np.float64, "double")])
def test_an_output_that_is_read_starts_anew_for_every_proof(dtype, text):
    case = axpy(dtype=dtype, text=text)
    assert case.ok, case.reason
    assert case.median_us > 0
    assert case.figures.gbps > 0


def test_atomics_start_from_the_zeros_that_were_given():
    x = np.random.default_rng(1).integers(0, 256, 1 << 20).astype(np.uint8)
    run = gpuprof.profile(
        gpuprof.Source(HISTOGRAM, "histogram"),
        args={"n": x.size, "x": x, "bins": np.zeros(256, np.uint32)},
        expect={"bins": np.bincount(x, minlength=256)},
        grid=64,
        block=256,
        device=0,
    )
    assert run.cases[0].ok, run.cases[0].reason


def test_counters_come_from_the_executor_beside_the_time():
    case = axpy(lines=True)
    assert case.ok, case.reason
    assert case.median_us > 0
    assert case.counters.global_load_efficiency_pct == 100
    with pytest.raises(gpuprof.NotMeasured, match=r"lines=True"):
        _ = axpy(lines=False).counters.global_load_efficiency_pct


def test_wrong_kernels_are_told():
    assert "y[" in axpy(source=AXPY.replace("a * x[i]", "x[i]")).reason
    spoiled = axpy(source=AXPY.replace("const T *x", "T *x").replace("y[i] =", "x[i] = y[i] ="))
    assert not spoiled.ok
    x = X.astype(np.float32)
    unwritten = axpy(
        source=AXPY.replace("i < n", "i < n - 1").replace(" + y[i]", ""),
        args={"n": x.size, "a": 2.0, "x": x, "y": None},
        expect={"y": 2 * x},
    )
    assert f"y[{x.size - 1}]" in unwritten.reason


def test_nsight_compute_counts_a_call_with_its_own_arrays():
    case = axpy(ncu=True)
    assert case.ok
    requests = case.counters.get("global_load_requests")
    if requests is None:  # there is no ncu, or it may not count: that is the reason then
        assert case.record.counters_reason not in (None, axpy().record.counters_reason)
    else:
        assert requests == 2 * X.size // 32
        assert case.record.counters["global_load_requests"].source == "ncu"
