# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Factors at the ends of a type's range do not make right kernels wrong, nor wrong ones right."""

from dataclasses import replace

import pytest
from problem_support import Gemm, find_kernel, measured

pytestmark = pytest.mark.deep

F32 = [1e-45, 1e-42, 1e-38, 3e38, -3.4e38]
F64 = [5e-324, 1e-310, 1.7e308, -1.7e308]


@pytest.mark.parametrize(
    ("kernel", "dtype", "alpha"),
    [
        *(("naive", "f32", alpha) for alpha in F32),
        *(("naive", "f64", alpha) for alpha in F64),
        *(("splitk_8x32", "f32", alpha) for alpha in F32),
        *(("col_4x4", "f32", alpha) for alpha in F32),
    ],
)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_right_kernel_stays_right(kernel, dtype, alpha, beta):
    layout = "col" if kernel.startswith("col") else "row"
    measurement = measured(find_kernel("gemm", kernel), Gemm(40, 36, 48, dtype, layout, alpha, beta))
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize("alpha", [1e-38, 3e38])
def test_wrong_kernel_stays_wrong(alpha):
    source = find_kernel("gemm", "naive").source.replace("alpha *", "-alpha *")
    assert "-alpha *" in source
    negated = replace(find_kernel("gemm", "naive"), id="negated", source=source)
    assert measured(negated, Gemm(40, 36, 48, alpha=alpha)).outcome == "incorrect"
