# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels on a real GPU that read what they must not, and what a wrong one's row says."""

import dataclasses

import pytest
from problem_support import Gemm, find_kernel

from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case


@pytest.fixture(scope="module")
def naive():
    """The ladder's first kernel, whose one store is replaced."""
    return find_kernel("gemm", "naive")


def measure(backend, kernel, store, *, poison_inout=True, beta=0.0, size=(70, 44, 33)):
    source = kernel.source.replace("*c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;", store)
    assert source != kernel.source
    changed = dataclasses.replace(kernel, source=source, poison_inout=poison_inout)
    case = Case.of(changed, Gemm(*size, alpha=1.5, beta=beta), (16, 16, 1))
    measurement, lost = measure_case(case, backend, Compiler(backend.compile_arch))
    assert not lost
    return measurement


STORE = "*c"


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (
            f"if (col != 5) {STORE} = alpha * sum;",
            "70 of 3080 elements (2.27 %) are wrong: column 5; they were never",
        ),
        (f"{STORE} = 0;", "All 3080 elements are wrong: they are 0; first: C[0, 0] is 0"),
        (f"{STORE} = alpha * sum + 1;", "All 3080 elements are wrong: they are 1 too large"),
    ],
)
def test_a_wrong_kernels_row_says_what_is_wrong(backend, naive, store, words):
    measurement = measure(backend, naive, store)
    assert measurement.outcome == "incorrect"
    assert words in measurement.reason


READS = f"{STORE} = alpha * sum + beta * {STORE};"


def test_reading_c_where_beta_is_0_is_told(backend, naive):
    measurement = measure(backend, naive, READS)
    assert measurement.reason.startswith("Reads C though beta is 0, which BLAS forbids: ")
    assert measurement.timing is None
    assert measure(backend, naive, READS, beta=0.5).outcome == "ok"


def test_a_kernel_that_reads_c_is_timed_with_a_remark(backend, naive):
    measurement = measure(backend, naive, READS, poison_inout=False)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.remarks == ("Reads C though beta is 0, which BLAS forbids; measured with ones there",)
    assert measurement.timing.cold.median_us > 0
    right = measure(backend, naive, f"{STORE} = alpha * sum;", poison_inout=False)
    assert (right.outcome, right.remarks) == ("ok", ())


@pytest.mark.parametrize("poison_inout", [True, False])
def test_adding_to_c_is_wrong_whatever_it_holds(backend, naive, poison_inout):
    measurement = measure(backend, naive, f"{STORE} += alpha * sum;", poison_inout=poison_inout)
    assert measurement.reason == "Adds to what was in C though beta is 0, which BLAS forbids."
