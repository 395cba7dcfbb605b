# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that are wrong in every way that is told apart, executed: what their row says."""

import pytest
from cuda_sources import kernel_file
from page_reader import expanded
from problem_support import measured_file
from unit_support import gpuprof as command_line

import gpuprof

pytestmark = pytest.mark.deep

GEMM = kernel_file("stores_otherwise")
AT = "C[row * N + column]"
READS_C = f"{AT} = alpha * sum + beta * {AT};"
FORBIDDEN = "Reads C though beta is 0, which BLAS forbids"


def write(tmp_path, store, header=""):
    path = tmp_path / "mine.cu"
    path.write_text(GEMM.replace("STORE", store).replace("HEADER", header))
    return path


def measured(tmp_path, store, header="", sizes="70x44x33", **options):
    return measured_file(write(tmp_path, store, header), sizes, **{"alpha": 1.5, **options})


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (
            f"if (column != 5) {AT} = alpha * sum;",
            "(2.27 %) are wrong: column 5; they were never written; first: C[0, 5] is nan",
        ),
        (
            f"if (row < 64 && column < 32) {AT} = alpha * sum;",
            "rows from 64, past the last multiple of 64 and columns from 32, past the last multiple of 32",
        ),
        ("C[column * M + row] = alpha * sum;", "they are the right values, transposed"),
    ],
)
def test_a_wrong_kernels_row_says_what_is_wrong(tmp_path, store, words):
    case = measured(tmp_path, store)
    assert case.outcome == "incorrect"
    assert words in case.reason


def test_columns_are_columns_in_column_major_order_too(tmp_path):
    right_inputs = GEMM.replace("A[row * K + k] * B[k * N + column]", "A[k * M + row] * B[column * K + k]")
    path = tmp_path / "columns.cu"
    path.write_text(
        right_inputs.replace("mine", "columns")
        .replace("STORE", "if (column != 5) C[column * M + row] = alpha * sum;")
        .replace("HEADER", 'layout = "col"')
    )
    case = measured_file(path, "70x44x33", alpha=1.5)
    assert case.reason.startswith("70 of 3080 elements (2.27 %) are wrong: column 5; they were never written")


def test_of_a_sample_only_what_was_written_is_looked_at(tmp_path):
    case = measured(tmp_path, f"{AT} = sum;", sizes="160", blocks=4)
    # One of them is so small that the factor is within its bound.
    words = "1023 of 1024 checked elements (99.9 %) are wrong: they lack the factor alpha = 1.5"
    assert case.reason.startswith(words)


def test_reading_c_where_beta_is_0_is_told(tmp_path):
    case = measured(tmp_path, READS_C)
    assert case.outcome == "incorrect"
    assert case.reason.startswith(f"{FORBIDDEN}: its result depends on what was there before.")
    assert "--no-poison-inout" in case.reason
    assert "clears C" not in case.reason
    assert case.remarks == ()


def test_reading_c_is_allowed_with_beta(tmp_path):
    case = measured(tmp_path, READS_C, alpha=1.0, beta=0.5)
    assert (case.outcome, case.remarks) == ("ok", ())


def test_a_kernel_whose_header_says_that_it_reads_c_is_measured_with_a_remark(tmp_path):
    case = measured(tmp_path, READS_C, "poison_inout = false")
    assert case.outcome == "ok", case.reason
    assert case.remarks == (f"{FORBIDDEN}; measured with ones there",)
    # What the kernel read of C is counted.
    right = measured(tmp_path, f"{AT} = alpha * sum;", "poison_inout = false")
    assert case.counters["global_load_requests"].value > right.counters["global_load_requests"].value
    assert (right.outcome, right.remarks) == ("ok", ())


@pytest.mark.parametrize(
    ("store", "header", "words"),
    [
        *(
            (f"{AT} += alpha * sum;", header, "Adds to what was in C though beta is 0, which BLAS forbids.")
            for header in ("", "poison_inout = false")
        ),
        (f"{AT} = sum + beta * {AT};", "", "All 3080 elements are wrong: they are NaN"),
        (
            f"{AT} = sum + beta * {AT};",
            "poison_inout = false",
            "All 3080 elements are wrong: they lack the factor",
        ),
    ],
)
def test_adding_to_c_and_another_fault_are_not_taken_for_reading_c(tmp_path, store, header, words):
    assert measured(tmp_path, store, header).reason.startswith(words)


def test_a_declared_operation_says_itself_what_must_not_be_read(tmp_path):
    source = kernel_file("blend")
    path = tmp_path / "blend.cu"
    path.write_text(source)
    for dtype in ("f32", "f16"):
        assert measured_file(path, dtype=dtype).reason.startswith("Reads y though nothing is kept: ")
        assert gpuprof.profile(path, device="sim:h200", dtype=dtype, poison_inout=False).case().ok
        assert measured_file(path, dtype=dtype, keep=2).outcome == "ok"
    path.write_text(source.replace(', unread = "nothing is kept"', ""))
    assert measured_file(path).reason.startswith("Reads y though keep > 0 does not hold: ")


def test_the_command_line_measures_it_and_every_table_says_so(tmp_path):
    write(tmp_path, READS_C)
    command = "gemm -k mine.cu --sizes 48 --device sim:h200 --no-poison-inout -o ."
    done = command_line(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"mine 48: {FORBIDDEN}" in done.stdout
    run = gpuprof.load(tmp_path / "results.json")
    assert FORBIDDEN in run.to_markdown()
    assert FORBIDDEN in expanded(run.to_html())


TOTAL = kernel_file("total")


@pytest.mark.parametrize(
    "add",
    [
        "if (i < n) atomicAdd(total, x[i]);",
        "if (i == 1000) *total = x[i];",
        "if (i < n && blockIdx.x != 9) atomicAdd(total, x[i]);",
    ],
)
def test_blocks_that_add_up_get_the_verdict_of_the_whole_grid(tmp_path, add):
    path = tmp_path / "total.cu"
    path.write_text(TOTAL.replace("ADD", add))
    case, whole = (measured_file(path, "4096", blocks=blocks) for blocks in (4, 0))
    assert case.outcome == whole.outcome == ("ok" if add.startswith("if (i < n) ") else "incorrect")
    if whole.outcome == "ok":
        for name in ("global_atomic_requests", "global_load_sectors"):
            assert case.counters[name].value == whole.counters[name].value


@pytest.mark.parametrize("add", ["atomicAdd(total, x[i]);", "total[0] += x[i];"])
def test_a_sum_into_what_nobody_cleared_is_told_what_to_do(tmp_path, add):
    path = tmp_path / "total.cu"
    source = (
        TOTAL.replace('"inout"', '"out"').replace('[inputs]\ntotal = "zeros"\n', "").replace("i32", "f32")
    )
    source = source.replace("int *", "float *").replace("ADD", f"if (i == 7) {add}")
    source = source.replace('"sum(x)"', '{ value = "sum(x)", relative = "n * u" }')
    path.write_text(source)
    command_line("run", "total.cu", "--sizes", "128", "--device", "sim:h200", "-o", ".", cwd=tmp_path)
    reason = gpuprof.load(tmp_path / "results.json").case().reason
    assert "Its one element is wrong: it is NaN" in reason
    assert "reads total[0], which was never written; " in reason
    assert "; nothing clears total beforehand: add a launch that does." in reason
