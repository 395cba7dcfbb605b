# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A card that other processes use makes no right kernel one that keeps results."""

import subprocess
import sys

import pytest
from problem_support import find_kernel, problem_for

from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case

NEIGHBOURS, TIMES = 8, 12
BUSY = """
from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.statistics import SamplingBudget
backend = GpuBackend(0, seed=1, budget=SamplingBudget())
print("busy", flush=True)
while True:
    for _ in range(20):
        backend._flush()
    backend._context.synchronize()
"""


@pytest.fixture(scope="module")
def neighbours():
    processes = [
        subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
        for _ in range(NEIGHBOURS)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "busy\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("operation", "kernel", "sizes"),
    [
        ("gemm", "reg_8x16_async", (128, 128, 128)),
        ("gemm", "naive", (300, 200, 100)),
        ("softmax", "three_passes", (8192, 8192)),
        ("transpose", "smem_padded", (512, 512)),
    ],
)
def test_right_kernels_stay_right(backend, neighbours, operation, kernel, sizes):
    one = find_kernel(operation, kernel)
    case = Case.of(one, problem_for(one, *sizes), one.block)
    for _ in range(TIMES):
        measurement, lost = measure_case(case, backend, Compiler(backend.device.arch))
        assert not lost
        assert measurement.outcome == "ok", measurement.reason
