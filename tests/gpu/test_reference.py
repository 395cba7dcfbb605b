# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's device code against NumPy, which nobody here wrote."""

import numpy as np
import pytest

from gpuprof.backends.gpu.verifier import ProblemArrays
from gpuprof.problems.base import numpy_dtype
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
        wrong[[11, 600, 3499]] = [np.nan, right[600] + 4 * problem.tolerance * magnitude[600], np.inf]
        arrays.output.upload(wrong)
        found = arrays.verify()
        assert found.wrong_elements == 3
        assert "C[0, 11] is nan" in found.detail
    finally:
        arrays.free()


def test_unwritten_output_never_passes(backend):
    arrays = arrays_of(backend, Transpose(64, 32))
    try:
        arrays.reset_output()
        assert arrays.verify().wrong_elements == 64 * 32
    finally:
        arrays.free()
