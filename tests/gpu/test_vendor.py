# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The vendor's references compute what the ladder computes."""

import re

import pytest
from problem_support import Gemm, Transpose, problem_id

from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.statistics import SamplingBudget

CASES = [
    *(
        (name, Gemm(m, n, k, dtype, layout, 1.5, 0.25))
        for name in ("cublas", "numpy")
        for m, n, k in [(64, 64, 64), (130, 70, 257), (1, 5, 3)]
        for dtype in ("f32", "f64")
        for layout in ("row", "col")
    ),
    *(
        (name, Gemm(m, n, k, dtype, layout, 1.5, 0.25))
        for name in ("cublaslt", "numpy")
        for m, n, k in [(64, 64, 64), (130, 70, 257), (512, 512, 4096)]
        for dtype in ("f16", "bf16", "tf32")
        for layout in ("row", "col")
    ),
    *(("cublaslt_tn", Gemm(*size, "e4m3", "tn", 1.5, 0.25)) for size in [(64, 64, 64), (512, 528, 4096)]),
    *(
        ("cublas_geam", Transpose(nx, ny, dtype))
        for nx, ny in [(64, 64), (33, 130)]
        for dtype in ("f32", "f64")
    ),
    ("device_copy", Transpose(33, 130, result="copy")),
]


@pytest.mark.parametrize(
    ("name", "problem"), CASES, ids=lambda value: value if isinstance(value, str) else problem_id(value)
)
def test_reference_is_correct_and_timed(backend, name, problem):
    case = Case(name, problem, (1, 1, 1))
    measurement, lost = measure_case(case, backend, Compiler(backend.compile_arch))
    assert not lost
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.timing.cold.median_us > 0
    assert measurement.throughput.gbps > 0
    assert measurement.verification.wrong_elements == 0


def test_version_of_every_library_that_is_measured_is_recorded(gpu_count):
    libraries = ("cublas", "cublasLt", "device_copy")
    recorded = GpuBackend(0, 0, SamplingBudget(seconds=0.01), libraries).foresee([])
    for name in ("cublas", "cublasLt"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", recorded[name])
    assert "cublas" not in GpuBackend(0, 0, SamplingBudget(seconds=0.01), ("device_copy",)).foresee([])
