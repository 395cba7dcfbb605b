# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rates by hand-worked examples."""

import dataclasses

import pytest
from problem_support import Gemm, Transpose
from unit_support import DEVICE

from gpuprof.devices.cards import load_card
from gpuprof.results import Throughput


def throughput(problem, device, median_us):
    return Throughput.of(problem.record(), device, median_us)


def test_gemm_rate():
    """2 * 4096^3 = 137.44e9 operations in 9.91 ms are 13.87 TFLOP/s."""
    rates = throughput(Gemm(4096, 4096, 4096), DEVICE, 9910.0)
    assert rates.gflops == pytest.approx(13_868.7, abs=0.1)
    assert rates.pct_of_peak_compute == pytest.approx(100 * 13_868.7 / 36_450, abs=0.01)
    assert rates.gbps == pytest.approx(201.326592e6 / 9910.0 / 1e3)


def test_transpose_rate():
    """2 * 2048 * 1024 * 4 = 16.78 MB in 20 us are 838.9 GB/s of a peak of 936."""
    rates = throughput(Transpose(2048, 1024), DEVICE, 20.0)
    assert rates.gbps == pytest.approx(838.8608)
    assert rates.pct_of_peak_bandwidth == pytest.approx(89.62, abs=0.01)
    assert rates.gflops is None
    assert rates.pct_of_peak_compute is None


def test_double_precision_is_held_against_its_own_peak_and_bytes():
    rates = throughput(Gemm(1000, 1000, 1000, "f64"), DEVICE, 10_000.0)
    assert rates.gflops == pytest.approx(200.0)
    assert rates.pct_of_peak_compute == pytest.approx(100 * 200 / 570)
    assert rates.gbps == pytest.approx(2.4)


def test_unknown_peak_gives_no_share():
    unknown = dataclasses.replace(DEVICE, peak_bandwidth_gbps=None, peak_fp32_gflops=None)
    rates = throughput(Gemm(64, 64, 64), unknown, 5.0)
    assert rates.pct_of_peak_compute is None
    assert rates.pct_of_peak_bandwidth is None
    assert rates.gbps == pytest.approx(3 * 64 * 64 * 4 / 5 / 1e3)


@pytest.mark.parametrize(
    ("source", "published_tflops"), [("f16", 312), ("tf32", 156), ("f64", 19.5), ("i8", 624)]
)
def test_tensor_peaks_of_the_a100_are_the_published_ones(source, published_tflops):
    assert load_card("a100").peak_tensor_gflops(source) == pytest.approx(1e3 * published_tflops, rel=0.002)


@pytest.mark.parametrize(
    ("card", "dtype", "fma_per_cycle"),
    [
        *(
            ("h200", dtype, cycle)
            for dtype, cycle in {"f32": 128, "f64": 64, "bf16": 2048, "tf32": 1024}.items()
        ),
        *(("h200", "e4m3", 4096), ("a100", "e4m3", 64), ("a100", "f16", 1024), ("rtx4090", "f16", 128)),
    ],
)
def test_peak_of_a_run_is_that_of_tensor_cores_where_they_are_made_for_its_type(card, dtype, fma_per_cycle):
    device = load_card(card)
    expected = 2e-3 * fma_per_cycle * device.sm_count * device.sm_clock_mhz
    assert device.peak_gflops(dtype) == pytest.approx(expected)


def test_unknown_tensor_peaks_are_none():
    assert load_card("rtx4090").peak_tensor_gflops("f16") is None
    assert load_card("h200").peak_tensor_gflops("f8") is None
