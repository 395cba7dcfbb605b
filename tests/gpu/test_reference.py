# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's device code against NumPy, which nobody here wrote."""

import numpy as np
import pytest

from gpuprof.backends.gpu.context import Buffer
from gpuprof.backends.gpu.verifier import ProblemArrays
from gpuprof.problems.base import numpy_dtype
from gpuprof.problems.check import compare
from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose

GEMMS = [
    Gemm(m, n, k, dtype, layout, alpha, beta)
    for m, n, k in [(1, 1, 1), (1, 7, 3), (65, 1, 129), (64, 64, 64), (130, 67, 33), (257, 300, 511)]
    for dtype in ("f32", "f64")
    for layout in ("row", "col")
    for alpha, beta in ((1.0, 0.0), (1.7, -0.3))
]
TRANSPOSES = [
    Transpose(nx, ny, dtype, result)
    for nx, ny in [(1, 1), (1, 9), (9, 1), (33, 65), (1000, 777)]
    for dtype in ("f32", "f64")
    for result in ("transpose", "copy")
]


def arrays_of(backend, problem):
    return ProblemArrays(backend._context, backend._device_code(problem.dtype), problem, seed=3)


@pytest.mark.parametrize("problem", [*GEMMS, *TRANSPOSES], ids=repr)
def test_device_reference_equals_numpy(backend, problem):
    arrays = arrays_of(backend, problem)
    try:
        expected, magnitude = problem.reference(problem.inputs(3))
        got = arrays._expected.download(np.float64, count=arrays.elements)
        if isinstance(problem, Transpose):
            np.testing.assert_array_equal(got, expected)
        else:
            sizes = arrays._magnitude.download(np.float64, count=arrays.elements)
            np.testing.assert_allclose(sizes, magnitude, rtol=1e-13 * problem.k)
            assert np.abs(got - expected).max() <= 1e-14 * problem.k * magnitude.max()
    finally:
        arrays.free()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_comparison_finds_every_planted_error(backend, dtype):
    problem = Gemm(70, 50, 30, dtype)
    arrays = arrays_of(backend, problem)
    try:
        expected, magnitude = problem.reference(problem.inputs(3))
        right = expected.astype(numpy_dtype(dtype))
        arrays.output.upload(right)
        clean = arrays.verify()
        assert clean.wrong_elements == 0
        assert clean.detail == ""
        assert clean.max_abs_error == pytest.approx(
            np.abs(right.astype(np.float64) - expected).max(), rel=1e-6
        )

        wrong = right.copy()
        wrong[[11, 600, 3499]] = [np.nan, right[600] + 4 * problem.bound.relative * magnitude[600], np.inf]
        arrays.output.upload(wrong)
        found = arrays.verify()
        assert found.wrong_elements == 3
        assert "C[0, 11] is nan" in found.detail
    finally:
        arrays.free()


@pytest.mark.parametrize(
    "problem", [Gemm(40, 30, 20, alpha=3e38), Gemm(40, 30, 20, "f64", alpha=1.7e308)], ids=repr
)
def test_comparison_is_the_hosts_where_results_overflow(backend, problem):
    arrays = arrays_of(backend, problem)
    try:
        expected, magnitude = problem.reference(problem.inputs(3))
        with np.errstate(over="ignore"):
            right = expected.astype(numpy_dtype(problem.dtype))
        assert np.isinf(right).any()
        arrays.output.upload(right)
        assert arrays.verify().passed
        turned = np.where(np.isinf(right), -right, right)
        arrays.output.upload(turned)
        compared = compare(turned.astype(np.float64), expected, magnitude, problem.bound)
        assert arrays.verify().wrong_elements == compared.wrong.sum() > 0
    finally:
        arrays.free()


@pytest.mark.parametrize("name", ["in", "out"])
@pytest.mark.parametrize(("offset", "place"), [(-1, "before the start"), (64 * 32, "past the end")])
def test_writing_beyond_either_end_of_any_array_is_seen_and_mended(backend, name, offset, place):
    arrays = arrays_of(backend, Transpose(64, 32))
    try:
        buffer = arrays._buffer(name)
        arrays.output.upload(arrays._expected.download(np.float64, count=64 * 32).astype(np.float32))
        assert arrays.verify().passed
        beyond = Buffer.__new__(Buffer)
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
        before = arrays.inputs["in"].download(np.float32, count=64 * 32)
        arrays.inputs["in"].upload(np.ones(3, np.float32))
        assert not arrays.inputs_intact()
        arrays.prepare()
        assert arrays.inputs_intact()
        assert np.array_equal(arrays.inputs["in"].download(np.float32, count=64 * 32), before)
    finally:
        arrays.free()


def test_unwritten_output_never_passes(backend):
    arrays = arrays_of(backend, Transpose(64, 32))
    try:
        arrays.prepare()
        assert arrays.verify().wrong_elements == 64 * 32
    finally:
        arrays.free()
