# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rates by hand-worked examples."""

import pytest

from gpuprof.devices.cards import load_card
from gpuprof.results import Throughput


def throughput(problem, device, median_us):
    return Throughput.of(problem.record(), device, median_us)


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
