# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's device code and the vendor's references against NumPy, which nobody here wrote."""

import re

import numpy as np
import pytest
from problem_support import Gemm, Transpose, problem_id

from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.backends.gpu.context import DeviceBuffer
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.check import compare
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.statistics import SamplingBudget

GEMMS = [
    Gemm(m, n, k, dtype, layout, alpha, beta)
    for m, n, k in [(1, 1, 1), (1, 7, 3), (65, 1, 129), (64, 64, 64), (130, 67, 33), (257, 300, 511)]
    for dtype in ("f32", "f64", "f16", "bf16")
    for layout in ("row", "col")
    for alpha, beta in ((1.0, 0.0), (1.7, -0.3))
]
TRANSPOSES = [
    Transpose(nx, ny, dtype, result)
    for nx, ny in [(1, 1), (1, 9), (9, 1), (33, 65), (1000, 777)]
    for dtype in ("f32", "f64", "f16", "bf16")
    for result in ("transpose", "copy")
]


def arrays_of(backend, problem):
    return ProblemArrays(backend._arrays.code, problem, 3, backend._context.free_bytes)


def expected_of(problem):
    """The values and magnitudes of the one output, by NumPy."""
    (expected,) = problem.reference(problem.inputs(3)).values()
    return expected.values, expected.magnitude


@pytest.mark.parametrize("problem", [*GEMMS, *TRANSPOSES], ids=problem_id)
def test_device_reference_equals_numpy(backend, problem):
    arrays = arrays_of(backend, problem)
    try:
        (spec,) = problem.outputs
        expected, magnitude = expected_of(problem)
        found = arrays.expected.download(spec, begin=0, count=spec.elements)
        got = found.values
        if problem.operation.name == "transpose":
            np.testing.assert_array_equal(got, expected)
            assert found.magnitude.tolist() == [1.0]
        else:
            k = problem.dimensions["K"]
            np.testing.assert_allclose(found.magnitude, magnitude, rtol=1e-13 * k)
            assert np.abs(got - expected).max() <= 1e-14 * k * magnitude.max()
    finally:
        arrays.free()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_comparison_finds_every_planted_error(backend, dtype):
    problem = Gemm(70, 50, 30, dtype)
    arrays = arrays_of(backend, problem)
    try:
        expected, magnitude = expected_of(problem)
        right = expected.astype(numpy_dtype(dtype))
        arrays.buffer("C").upload(right)
        clean = arrays.verify()
        assert clean.wrong_elements == 0
        assert clean.detail == ""
        assert clean.max_abs_error == pytest.approx(
            np.abs(right.astype(np.float64) - expected).max(), rel=1e-6
        )

        wrong = right.copy()
        beyond = 4 * problem.bound("C").relative * magnitude[600]
        wrong[[11, 600, 3499]] = [np.nan, right[600] + beyond, np.inf]
        arrays.buffer("C").upload(wrong)
        found = arrays.verify()
        assert found.wrong_elements == 3
        assert "C[0, 11] is nan" in found.detail
    finally:
        arrays.free()


@pytest.mark.parametrize(
    "problem", [Gemm(40, 30, 20, alpha=3e38), Gemm(40, 30, 20, "f64", alpha=1.7e308)], ids=problem_id
)
def test_comparison_is_the_hosts_where_results_overflow(backend, problem):
    arrays = arrays_of(backend, problem)
    try:
        expected, magnitude = expected_of(problem)
        with np.errstate(over="ignore"):
            right = expected.astype(numpy_dtype(problem.dtype))
        assert np.isinf(right).any()
        arrays.buffer("C").upload(right)
        assert arrays.verify().passed
        turned = np.where(np.isinf(right), -right, right)
        arrays.buffer("C").upload(turned)
        compared = compare(turned.astype(np.float64), expected, magnitude, problem.bound("C"))
        assert arrays.verify().wrong_elements == compared.wrong.sum() > 0
    finally:
        arrays.free()


@pytest.mark.parametrize("name", ["in", "out"])
@pytest.mark.parametrize(("offset", "place"), [(-1, "before the start"), (64 * 32, "past the end")])
def test_writing_beyond_either_end_of_any_array_is_seen_and_mended(backend, name, offset, place):
    arrays = arrays_of(backend, Transpose(64, 32))
    try:
        buffer = arrays.buffer(name)
        expected, _ = expected_of(arrays.problem)
        arrays.buffer("out").upload(expected.astype(np.float32))
        assert arrays.verify().passed
        beyond = DeviceBuffer.__new__(DeviceBuffer)
        beyond.address = buffer.address + 4 * offset
        beyond.upload(np.zeros(1, np.float32))
        assert arrays.verify().detail == f"the kernel wrote {place} of {name}"
        arrays.prepare()
        assert buffer.overrun() == ""
    finally:
        arrays.free()


def test_overwritten_input_is_seen_and_mended(backend):
    arrays = arrays_of(backend, Transpose(64, 32))
    try:
        before = arrays.buffer("in").download(np.float32, count=64 * 32)
        arrays.buffer("in").upload(np.ones(3, np.float32))
        assert not arrays.inputs_intact()
        arrays.prepare()
        assert arrays.inputs_intact()
        assert np.array_equal(arrays.buffer("in").download(np.float32, count=64 * 32), before)
    finally:
        arrays.free()


def test_unwritten_output_never_passes(backend):
    arrays = arrays_of(backend, Transpose(64, 32))
    try:
        arrays.prepare()
        assert arrays.verify().wrong_elements == 64 * 32
    finally:
        arrays.free()


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
    measurement, lost = measure_case(case, backend, Compiler(backend.device.arch))
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
