# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels of several launches on the executor: run in order, verified once, counted as one."""

import pytest
from cuda_sources import write_kernel_file
from page_reader import expanded
from problem_support import measured_file

import gpuprof

pytestmark = pytest.mark.deep


def profile(path, **options):
    return gpuprof.profile(path, device="sim:h200", **options)


def value(case, counter):
    return case.counters[counter].value


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000, 65536])
def test_launches_build_on_each_other(tmp_path, n):
    case = measured_file(write_kernel_file(tmp_path, "two_pass_sum"), str(n))
    assert case.outcome == "ok", case.reason
    assert case.verification.checked_elements == 1


def test_counts_are_those_of_all_launches(tmp_path):
    # 65536 elements are 256 blocks of 256; their 256 sums are one block more of the same code.
    case = measured_file(write_kernel_file(tmp_path, "two_pass_sum"), "65536")
    assert value(case, "global_store_requests") == 256 + 1
    assert value(case, "global_load_requests") == (256 + 1) * 8
    assert value(case, "global_load_sectors") == (256 + 1) * 32
    assert value(case, "global_load_efficiency_pct") == 100
    # Of each sector stored, one sum of 4 bytes.
    assert value(case, "global_store_efficiency_pct") == 100 * 4 / 32
    counters = case.counters
    assert (counters["barriers"].sampled_blocks, counters["barriers"].total_blocks) == (257, 257)
    loads = sum(line.counters.get("global_load_requests", 0) for line in case.lines)
    assert loads == value(case, "global_load_requests")


def test_the_largest_launch_stands_for_the_case_and_each_is_recorded(tmp_path):
    record = measured_file(write_kernel_file(tmp_path, "two_pass_sum"), "65536")
    assert (record.block, record.grid) == ((128, 1, 1), (256, 1, 1))
    assert [(one.entry, one.block, one.grid) for one in record.launches] == [
        ("block_sums", (128, 1, 1), (256, 1, 1)),
        ("block_sums", (128, 1, 1), (1, 1, 1)),
    ]
    assert record.resources == record.launches[0].resources
    assert record.resources.dynamic_shared_bytes == 512
    assert record.occupancy == record.launches[0].occupancy


def test_parameters_shape_blocks_and_workspace(tmp_path):
    run = profile(
        write_kernel_file(tmp_path, "two_pass_sum"),
        kernels={str(tmp_path / "two_pass_sum.cu"): {"THREADS": [64, 256]}},
        sizes=5000,
    )
    assert [(case.ok, case.block, case.grid) for case in run.cases] == [
        (True, (64, 1, 1), (40, 1, 1)),
        (True, (256, 1, 1), (10, 1, 1)),
    ]


def test_functions_of_one_file_share_its_variables(tmp_path):
    case = measured_file(write_kernel_file(tmp_path, "through_a_variable"))
    assert case.outcome == "ok", case.reason
    assert [one.entry for one in case.launches] == ["take_first", "scale"]
    assert case.block == (64, 1, 1)


def test_workspace_starts_poisoned(tmp_path):
    # The second launch adds up partial sums that nobody wrote.
    reads_too_much = write_kernel_file(
        tmp_path, "two_pass_sum", old='shape = ["cdiv', new='shape = ["1 + cdiv'
    )
    reads_too_much.write_text(
        reads_too_much.read_text().replace(
            '"cdiv(n, 2 * THREADS)", "partial"', '"1 + cdiv(n, 2 * THREADS)", "partial"'
        )
    )
    case = measured_file(reads_too_much)
    assert case.outcome == "incorrect"
    assert "nan" in case.reason


def test_a_fault_names_the_function_of_its_launch(tmp_path):
    too_small = write_kernel_file(
        tmp_path, "two_pass_sum", old='shape = ["cdiv(n, 2 * THREADS)"]', new='shape = ["1"]'
    )
    case = measured_file(too_small)
    assert case.outcome == "failed"
    assert "block_sums" in case.reason
    assert "partial" in case.reason


def test_launches_too_large_to_run_whole_are_counted_here_and_verified_smaller(tmp_path):
    file = write_kernel_file(tmp_path, "two_pass_sum")
    case, whole = measured_file(file, "65536", blocks=4), measured_file(file, "65536", blocks=0)
    assert case.outcome == "ok", case.reason
    assert any("verified at" in remark and "launches depend" in remark for remark in case.remarks)
    assert value(case, "global_load_sectors") == value(whole, "global_load_sectors")
    wrong = measured_file(
        write_kernel_file(tmp_path, "two_pass_sum", old="sum += in", new="sum -= in"), "65536", blocks=4
    )
    assert wrong.outcome == "incorrect"
    assert wrong.reason.startswith("At size ")


def test_launches_whose_numbers_decide_are_run_whole_or_not_at_all(tmp_path):
    deciding = write_kernel_file(
        tmp_path, "two_pass_sum", old="if (threadIdx.x == 0)", new="if (threadIdx.x == 0 && !(in[0] > 1e30))"
    )
    case = measured_file(deciding, "65536", blocks=4)
    assert case.outcome == "skipped"
    assert "launches depend on each other" in case.reason


def test_the_arguments_of_each_launch_are_checked(tmp_path):
    short = write_kernel_file(tmp_path, "two_pass_sum", old='["n", "x", "partial"]', new='["x", "partial"]')
    case = measured_file(short)
    assert case.outcome == "failed"
    assert case.reason.startswith("two_pass_sum is given 2 arguments (x, partial); block_sums takes 3: ")


def test_the_report_shows_every_launch(tmp_path):
    page = expanded(profile(write_kernel_file(tmp_path, "two_pass_sum"), sizes=65536).to_html())
    assert "block_sums: 256x1 blocks of 128x1" in page
    assert "block_sums: 1x1 blocks of 128x1" in page
