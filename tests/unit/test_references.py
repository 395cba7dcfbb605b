# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""References beside the ladder: which are chosen, where they stand in the plan, what their absence costs."""

import pytest
from problem_support import Gemm
from unit_support import build_request

from gpuprof.commands.texts import choose_references
from gpuprof.devices.cards import load_card
from gpuprof.errors import BackendUnavailable, InputError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.measure.plan import plan_cases


@pytest.mark.parametrize(
    ("op", "text", "ids"),
    [
        ("gemm", "vendor", ["cublas", "cublaslt", "cublaslt_tn"]),
        ("gemm", "cpu", ["numpy"]),
        ("gemm", "all", ["cublas", "cublaslt", "cublaslt_tn", "numpy"]),
        ("gemm", "vendor,cpu", ["cublas", "cublaslt", "cublaslt_tn", "numpy"]),
        ("gemm", "none", []),
        ("transpose", "vendor", ["cublas_geam", "device_copy"]),
        ("transpose", "cpu", []),
    ],
)
def test_words_choose_references(op, text, ids):
    assert [reference.id for reference in choose_references(shipped_operation(op), text)] == ids


def test_unknown_word_is_refused():
    with pytest.raises(InputError, match="'cublass' is not a reference"):
        choose_references(shipped_operation("gemm"), "cublass")


def request(kernels, sizes, references):
    return build_request(shipped_ladder("gemm"), kernels, False, sizes, None, "f32", references=references)


@pytest.mark.parametrize(
    ("op", "dtype", "ids"),
    [
        ("gemm", "f32", ["cublas"]),
        ("gemm", "f64", ["cublas"]),
        ("gemm", "bf16", ["cublaslt"]),
        ("gemm", "float16", ["cublaslt"]),
        ("gemm", "tf32", ["cublaslt"]),
        ("gemm", "e4m3", ["cublaslt_tn"]),
        ("transpose", "f64", ["cublas_geam", "device_copy"]),
        ("transpose", "f16", ["device_copy"]),
    ],
)
def test_each_reference_runs_in_its_types(op, dtype, ids):
    made = build_request(shipped_ladder(op), [], True, "64", None, dtype, references="vendor")
    assert [reference.id for reference in made.references] == ids


def test_references_come_last_at_each_size_and_only_where_there_is_a_gpu():
    request = build_request(
        shipped_ladder("gemm"), ["naive", "col_naive"], False, "64,128", None, "f32", references="all"
    )
    assert not any(case.is_reference for case in plan_cases(request))
    planned = [(case.name, case.problem.label) for case in plan_cases(request, references=True)]
    assert planned == [
        *(("naive", "64"), ("col_naive", "64"), ("cublas", "64"), ("numpy", "64")),
        *(("naive", "128"), ("col_naive", "128"), ("cublas", "128"), ("numpy", "128")),
    ]


class WithoutLibrary:
    device = load_card("h200")

    def run_reference(self, name, problem):
        raise BackendUnavailable("cuBLAS is not installed.", fix="Install it.")


def test_missing_library_is_one_skipped_row():
    case = Case("cublas", Gemm(8, 8, 8), (1, 1, 1))
    measurement, lost = measure_case(case, WithoutLibrary(), None)
    assert not lost
    assert measurement.outcome == "skipped"
    assert measurement.reason == "cuBLAS is not installed. Install it."
    assert measurement.is_reference
