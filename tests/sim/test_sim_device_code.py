# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The GPU backend's own device functions, run on the executor and held against the host's rules."""

import numpy as np
import pytest
from problem_support import Gemm, Transpose, problem_id

from gpuprof.backends.gpu.device_code import device_macros, device_source
from gpuprof.executor import GlobalMemory, launch, load_program
from gpuprof.problems.behaviour import Initial, Pointer
from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.dtypes import RUN_TYPES, largest, numpy_dtype, rounded
from gpuprof.toolchain.cache import compile_cached
from gpuprof.toolchain.nvrtc import compiler_options


def program(entry, dtype, source=None):
    options = compiler_options("sm_90", device_macros(dtype))
    return load_program(compile_cached(device_source(source), "device.cu", entry, options).ptx, entry)


def compared_on_device(got, expected, magnitude, bound, dtype):
    memory = GlobalMemory()
    arrays = [memory.allocate(array, "array") for array in (got.view(np.uint8), expected, magnitude)]
    result = memory.allocate(np.array([0, 0, 0, 2**64 - 1], np.uint64), "result")
    numbers = [bound.relative, bound.absolute, bound.largest, bound.rounding]
    launch(
        program("compare", dtype), (2, 1, 1), (64, 1, 1), [len(expected), *arrays, *numbers, result], memory
    )
    raw = result.array()
    return raw[:2].view(np.float64).tolist(), int(raw[2]), int(raw[3])


@pytest.mark.parametrize("dtype", [*RUN_TYPES, "i8", "u32", "i64"])
@pytest.mark.parametrize("rounding", [0.0, 2.0**-8])
def test_comparison_is_the_hosts(dtype, rounding):
    rng = np.random.default_rng(5)
    expected = np.round(100 * rng.standard_normal(500), 1)
    magnitude = np.abs(expected) + 1
    got = expected * (1 + 0.02 * rng.standard_normal(500))
    if dtype in RUN_TYPES:
        got[[3, 99, 100]] = np.nan, np.inf, -np.inf
        got = rounded(got, dtype)
        # Near the end of the range, where the right result may have overflowed.
        expected[[99, 100]] = largest(dtype)
    else:
        expected = np.trunc(np.abs(expected) % 100)
        got = (np.abs(got) % 100).astype(numpy_dtype(dtype))
    bound = ErrorBound(0.01, 0.05, largest(dtype), rounding)
    on_host = compare(got, expected, magnitude, bound)
    (max_abs, max_rel), wrong, first = compared_on_device(got, expected, magnitude, bound, dtype)
    assert 20 < wrong == on_host.wrong.sum() < 480
    assert first == np.flatnonzero(on_host.wrong)[0]
    assert max_abs == on_host.max_abs_error
    assert max_rel == pytest.approx(on_host.max_rel_error)


@pytest.mark.parametrize(
    "problem",
    [
        *(Gemm(33, 70, 19, dtype, alpha=0.5, beta=-2.0) for dtype in RUN_TYPES),
        *(Transpose(9, 14, dtype) for dtype in RUN_TYPES),
    ],
    ids=problem_id,
)
def test_references_are_the_hosts(problem):
    inputs = problem.inputs(0)
    ((name, expected),) = problem.reference(inputs).items()
    reference = problem.device_reference()
    memory = GlobalMemory()
    arrays = {key: memory.allocate(array.view(np.uint8), key) for key, array in inputs.items()}
    count = problem.array(name).elements
    for column in ("expected", "magnitude"):
        arrays[f"{column} {name}"] = memory.allocate(np.full(count, np.nan), column)
    packed = [arrays[one.array] if isinstance(one, Pointer | Initial) else one for one in reference.arguments]
    code = program(reference.entry, problem.dtype, reference.source)
    grid = (2, 1, 1) if problem.operation.name == "transpose" else reference.grid
    launch(code, grid, reference.block, packed, memory)
    np.testing.assert_allclose(arrays[f"expected {name}"].array(), expected.values, rtol=1e-12, atol=1e-12)
    if reference.has_magnitude:
        np.testing.assert_allclose(
            arrays[f"magnitude {name}"].array(), expected.magnitude, rtol=1e-12, atol=1e-12
        )
