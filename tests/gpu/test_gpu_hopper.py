# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel files with tensor maps in both directions, and with warpgroup products, verified and timed."""

import pytest
from cuda_sources import kernel_file

from gpuprof.devices.device import parse_arch
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.problem import Problem

SCALED_BOXES, WARPGROUP_GEMM = kernel_file("scaled_boxes"), kernel_file("warpgroup_gemm")


@pytest.fixture
def measure(backend, tmp_path):
    if parse_arch(backend.device.arch) < (9, 0):
        pytest.skip("tensor copies came with compute capability 9.0")

    def measure(text, sizes, dtype):
        path = tmp_path / "mine.cu"
        path.write_text(text)
        file = load_kernels(path)
        case = Case.of(file.kernels[0], Problem.of(file.operation, sizes, dtype))
        measurement, lost = measure_case(case, backend, Compiler(backend.device.arch))
        assert not lost
        return measurement

    return measure


@pytest.mark.parametrize("sizes", [(3, 21, 40), (1, 1, 4), (2, 8, 16), (65, 513, 1000)])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_boxes_go_in_and_out(measure, sizes, dtype):
    measurement = measure(SCALED_BOXES, sizes, dtype)
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize("sizes", [(64, 64, 64), (72, 40, 328), (1024, 1024, 1024)])
def test_tensor_copies_feed_a_warpgroup(measure, backend, sizes):
    if backend.device.arch != "sm_90":
        pytest.skip("only compute capability 9.0 has wgmma")
    measurement = measure(WARPGROUP_GEMM, sizes, "f16")
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.timing.cold.median_us > 0
