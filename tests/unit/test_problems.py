# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The references against plain loops, the work models, and what the error bound lets through."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_support import Gemm, Transpose

from gpuprof.problems.behaviour import Initial, Pointer
from gpuprof.problems.problem import Problem

small = st.integers(1, 6)
scalars = st.sampled_from([0.0, 1.0, -2.0, 0.1])


def _reference(problem, inputs):
    """The expected values and magnitudes of the one output."""
    (expected,) = problem.reference(inputs).values()
    return expected.values, expected.magnitude


def _relative(problem):
    """The error allowed in the one output, as a share of the magnitude."""
    (output,) = problem.outputs
    return problem.bound(output.name).relative


def _at(problem, name, i, j):
    """Position of element (i, j) of a matrix in storage order."""
    m, n, k = problem.sizes
    rows, columns = {"A": (m, k), "B": (k, n), "C": (m, n)}[name]
    in_rows = {"row": "ABC", "col": "", "tn": "AC"}[problem.options["layout"]]
    return i * columns + j if name in in_rows else j * rows + i


#: NumPy's types of A and B, and of C, in each type of a run; scalars are of the type of sums.
ELEMENTS = {
    name: tuple(map(np.dtype, types))
    for name, types in {
        "f32": ("f4", "f4"),
        "f64": ("f8", "f8"),
        "f16": ("f2", "f2"),
        "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        "tf32": ("f4", "f4"),
        "e4m3": (ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16),
    }.items()
}
SUMS = {name: np.float64 if name == "f64" else np.float32 for name in ELEMENTS}


def _gemm_by_loops(problem, inputs):
    m, n, k = problem.sizes
    alpha, beta = (float(SUMS[problem.dtype](value)) for value in problem.scalars.values())
    expected, magnitude = [0.0] * (m * n), [0.0] * (m * n)
    for i in range(m):
        for j in range(n):
            products = [
                float(inputs["A"][_at(problem, "A", i, p)]) * float(inputs["B"][_at(problem, "B", p, j)])
                for p in range(k)
            ]
            old = float(inputs["C"][_at(problem, "C", i, j)]) if beta else 0.0
            at = _at(problem, "C", i, j)
            expected[at] = alpha * math.fsum(products) + beta * old
            magnitude[at] = abs(alpha) * math.fsum(map(abs, products)) + abs(beta) * abs(old)
    return expected, magnitude


gemms = st.builds(
    Gemm,
    small,
    small,
    small,
    st.sampled_from(list(ELEMENTS)),
    st.sampled_from(["row", "col", "tn"]),
    scalars,
    scalars,
)


@given(gemms, st.integers(0, 2**32))
def test_gemm_reference_is_the_triple_loop(problem, seed):
    inputs = problem.inputs(seed)
    expected, magnitude = _reference(problem, inputs)
    by_loops = _gemm_by_loops(problem, inputs)
    np.testing.assert_allclose(expected, by_loops[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(magnitude, by_loops[1], rtol=1e-14)
    assert expected.dtype == magnitude.dtype == np.float64


@given(small, small, st.sampled_from(["f32", "f64"]))
def test_transpose_reference_is_the_double_loop(nx, ny, dtype):
    problem = Transpose(nx, ny, dtype)
    inputs = problem.inputs(3)
    expected, _ = _reference(problem, inputs)
    for y in range(ny):
        for x in range(nx):
            assert expected[x * ny + y] == inputs["in"][y * nx + x]
    copied, _ = _reference(Transpose(nx, ny, dtype, "copy"), inputs)
    assert np.array_equal(copied, inputs["in"])


@given(gemms)
def test_gemm_arrays_and_inputs_agree(problem):
    inputs = problem.inputs(0)
    sizes = {spec.name: spec.elements for spec in problem.arrays}
    m, n, k = problem.sizes
    assert sizes == {"A": m * k, "B": k * n, "C": m * n}
    assert [spec.name for spec in problem.outputs] == ["C"]
    assert set(inputs) == ({"A", "B", "C"} if problem.scalars["beta"] else {"A", "B"})
    assert {spec.name for spec in problem.arrays if spec.is_read} == set(inputs)
    for name, values in inputs.items():
        assert values.shape == (sizes[name],)
        operand, result = ELEMENTS[problem.dtype]
        assert values.dtype == (result if name == "C" else operand)
        assert (np.abs(values.astype(np.float64)) <= 1).all()
    assert problem.array_bytes == sum(
        sizes[name] * ELEMENTS[problem.dtype][name == "C"].itemsize for name in sizes
    )


@pytest.mark.parametrize("problem", [Gemm(16, 16, 16, beta=1.0), Transpose(16, 16)])
def test_inputs_follow_the_seed(problem):
    assert isinstance(problem, Problem)
    first, again, other = problem.inputs(1), problem.inputs(1), problem.inputs(2)
    for name, values in first.items():
        assert np.array_equal(values, again[name])
        assert not np.array_equal(values, other[name])
        assert len(np.unique(values)) > 200


def test_gemm_inputs_have_both_signs_so_that_a_lost_sign_shows():
    values = Gemm(64, 64, 64).inputs(0)["A"]
    assert 0.4 < (values < 0).mean() < 0.6


def _worst(problem, result, inputs):
    expected, magnitude = _reference(problem, inputs)
    return (np.abs(result.astype(np.float64) - expected) / magnitude).max()


def _float32_product(problem, inputs):
    m, n, k = problem.sizes
    a = inputs["A"].reshape(m, k)
    b = inputs["B"].reshape(k, n)
    return (np.float32(problem.scalars["alpha"]) * (a @ b)).ravel()


sizes = st.integers(1, 150)


@given(sizes, sizes, st.integers(1, 2000), st.integers(0, 2**32))
def test_float32_product_passes(m, n, k, seed):
    problem = Gemm(m, n, k)
    inputs = problem.inputs(seed)
    assert _worst(problem, _float32_product(problem, inputs), inputs) <= _relative(problem)


def test_float32_sum_in_order_passes():
    """The order of a kernel with one accumulator, the least exact of them."""
    problem = Gemm(64, 64, 4096)
    inputs = problem.inputs(5)
    a, b = inputs["A"].reshape(64, 4096), inputs["B"].reshape(4096, 64)
    total = np.zeros((64, 64), np.float32)
    for k in range(4096):
        total += a[:, k, None] * b[k]
    assert _worst(problem, total.ravel(), inputs) <= _relative(problem)


@given(st.integers(8, 64), st.integers(8, 64), st.integers(2, 1000), st.integers(0, 2**32))
def test_dropped_term_fails(m, n, k, seed):
    problem = Gemm(m, n, k)
    inputs = problem.inputs(seed)
    short = {"A": inputs["A"].copy()}
    short["A"].reshape(m, k)[:, -1] = 0
    assert _worst(problem, _float32_product(problem, {**inputs, **short}), inputs) > _relative(problem)


@pytest.mark.parametrize("operand", ["A", "B"])
def test_transposed_operand_fails(operand):
    problem = Gemm(128, 128, 128)
    inputs = problem.inputs(0)
    turned = {operand: inputs[operand].reshape(128, 128).T.ravel()}
    assert _worst(problem, _float32_product(problem, {**inputs, **turned}), inputs) > 100 * _relative(problem)


@pytest.mark.parametrize("k", [1, 16, 128])
def test_tensor_float_inputs_fail(k):
    """TF32 keeps 10 bits of each factor's mantissa: too few for a kernel that claims float32."""
    problem = Gemm(128, 128, k)
    inputs = problem.inputs(0)
    cut = {name: (values.view(np.uint32) & 0xFFFFE000).view(np.float32) for name, values in inputs.items()}
    assert _worst(problem, _float32_product(problem, cut), inputs) > _relative(problem)


def test_float32_result_fails_a_float64_problem():
    problem = Gemm(32, 32, 32, "f64")
    inputs = problem.inputs(0)
    result = (inputs["A"].reshape(32, 32) @ inputs["B"].reshape(32, 32)).astype(np.float32)
    assert _worst(problem, result.ravel(), inputs) > 1000 * _relative(problem)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_tolerance_grows_like_the_root_of_k(dtype):
    roundoff = 2.0**-24 if dtype == "f32" else 2.0**-53
    bounds = [_relative(Gemm(1, 1, k, dtype)) for k in (1, 100, 10_000, 1_000_000)]
    assert bounds == sorted(bounds)
    assert (bounds[3] - bounds[2]) / (bounds[2] - bounds[1]) == pytest.approx(10)
    assert bounds[3] / 1000 == pytest.approx(8 * roundoff, rel=0.01)
    assert _relative(Gemm(7, 9, 100, dtype)) == bounds[1]


def test_scalars_are_rounded_to_the_element_type_as_the_kernel_gets_them():
    problem = Gemm(4, 4, 4, alpha=0.1)
    inputs = problem.inputs(0)
    product, _ = _reference(Gemm(4, 4, 4), inputs)
    expected, _ = _reference(problem, inputs)
    assert np.array_equal(expected, float(np.float32(0.1)) * product)


def test_old_content_is_never_read_without_beta():
    inputs = Gemm(4, 4, 4).inputs(0)
    expected, magnitude = _reference(Gemm(4, 4, 4), {**inputs, "C": np.full(16, np.nan, np.float32)})
    assert np.isfinite(expected).all()
    assert np.isfinite(magnitude).all()


@pytest.mark.parametrize(
    ("problem", "flops", "min_bytes"),
    [
        (Gemm(4096, 4096, 4096), 137_438_953_472, 3 * 4096 * 4096 * 4),
        (Gemm(2, 3, 5), 60, 4 * (10 + 15 + 6)),
        (Gemm(2, 3, 5, "f64"), 60, 8 * (10 + 15 + 6)),
        (Gemm(2, 3, 5, "tf32"), 60, 4 * (10 + 15 + 6)),
        (Gemm(2, 3, 5, "e4m3", beta=1.0), 60, 10 + 15 + 2 * 2 * 6),
        (Gemm(2, 3, 5, beta=1.0), 60, 4 * (10 + 15 + 2 * 6)),
        (Transpose(2048, 1024), 0, 2 * 2048 * 1024 * 4),
        (Transpose(3, 5, "f64", "copy"), 0, 2 * 15 * 8),
    ],
)
def test_work_model(problem, flops, min_bytes):
    assert problem.flops == flops
    assert problem.min_bytes == min_bytes


@pytest.mark.parametrize(
    "problem",
    [
        Gemm(5, 3, 2, beta=0.5),
        Gemm(5, 3, 2, layout="col"),
        Gemm(5, 3, 2, "bf16"),
        Gemm(5, 3, 2, "e4m3", "tn"),
        Transpose(5, 3),
    ],
)
def test_library_and_device_reference_name_arrays_that_the_problem_has(problem):
    names = {spec.name for spec in problem.arrays}
    (output,) = (spec.name for spec in problem.outputs)
    names |= {f"expected {output}", f"magnitude {output}"}
    calls = [
        problem.library_call(one.id)
        for one in problem.operation.references
        if not one.on_host and one.computes_in(problem.dtype)
    ]
    for arguments in (problem.device_reference().arguments, *(call.arguments for call in calls)):
        used = {argument.array for argument in arguments if isinstance(argument, Pointer | Initial)}
        assert used <= names
        assert output in {name.rpartition(" ")[2] for name in used}


@pytest.mark.parametrize(
    ("problem", "label"),
    [
        (Gemm(4096, 4096, 4096), "4096"),
        (Gemm(512, 1024, 256), "512x1024x256"),
        (Gemm(64, 64, 32), "64x64x32"),
        (Transpose(2048, 2048), "2048"),
        (Transpose(1024, 4096), "1024x4096"),
    ],
)
def test_label_is_what_a_user_types(problem, label):
    assert problem.label == label


@pytest.mark.parametrize(
    ("problem", "index", "text"),
    [
        (Gemm(3, 5, 2), 7, "C[1, 2]"),
        (Gemm(3, 5, 2, layout="col"), 7, "C[1, 2]"),
        (Gemm(3, 5, 2, layout="col"), 4, "C[1, 1]"),
        (Gemm(3, 5, 2, layout="tn"), 7, "C[1, 2]"),
        (Transpose(3, 5), 7, "out[1, 2]"),
        (Transpose(3, 5, result="copy"), 7, "out[2, 1]"),
        (Transpose(3, 5), 14, "out[2, 4]"),
    ],
)
def test_element_is_named_by_row_and_column(problem, index, text):
    assert problem.describe_element(problem.outputs[0].name, index) == text
