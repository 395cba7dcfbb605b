# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Processes that measure on one card disturb each other's times, and make no right kernel a wrong one."""

import os
import subprocess
import sys

PROCESSES = 12
MEASURES = """
from problem_support import find_kernel, problem_for
from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.statistics import SamplingBudget

CASES = [
    ("gemm", "reg_8x16_async", (128, 128, 128)),
    ("gemm", "naive", (300, 200, 100)),
    ("softmax", "three_passes", (8192, 8192)),
    ("transpose", "smem_padded", (512, 512)),
]
backend = GpuBackend(0, seed=7, budget=SamplingBudget(seconds=0.01, min_samples=6, max_samples=20))
for _ in range(6):
    for operation, name, sizes in CASES:
        kernel = find_kernel(operation, name)
        case = Case.of(kernel, problem_for(kernel, *sizes), kernel.launch.block)
        measurement, _ = measure_case(case, backend, Compiler(backend.compile_arch))
        print(name, measurement.outcome, measurement.reason)
"""


def test_right_kernels_stay_right(gpu_count):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", MEASURES], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(PROCESSES)
    ]
    said = [line for process in processes for line in process.communicate()[0].splitlines()]
    assert len(said) == PROCESSES * 6 * 4
    assert [line for line in said if not line.endswith(" ok None")] == []
