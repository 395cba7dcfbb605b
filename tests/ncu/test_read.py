# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reading raw pages; the tables are synthetic, in the documented form."""

from pathlib import Path

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from ncu_support import FIXTURES, table

from gpuprof.counters import COUNTERS, OPCODES
from gpuprof.ncu.metrics import CopyMetrics, copies_in
from gpuprof.ncu.outcome import profile_of, without_profile
from gpuprof.ncu.read import MetricCell, parse_raw_csv, raw_csv
from gpuprof.ncu.tool import Ncu, NcuReadError
from gpuprof.records import replace

LAUNCH = {"kernel": "naive", "block": "(32, 32, 1)", "grid": "(128, 128, 1)"}


def counters(name, copies=None):
    (launch,) = parse_raw_csv((FIXTURES / name).read_text())
    return profile_of(launch, copies or CopyMetrics()).counters


def test_a_value_that_is_missing_or_nan_has_a_reason_and_is_no_zero():
    found = counters("synthetic_missing_values.csv")
    for name in ("global_load_sectors", "l2_hit_rate_pct", "dram_read_bytes"):
        assert found[name].value is None
        assert "did not collect" in found[name].reason
    assert found["global_load_requests"].value == 4294967296
    found = counters("synthetic_nan.csv")
    for name in ("global_load_efficiency_pct", "dram_throughput_gbps", "sol_compute_pct"):
        assert found[name].value is None
        assert "version does not match" in found[name].reason


HEAD = '"ID","Kernel Name","Block Size","Grid Size"\n'
UNITS = f'{HEAD}"","","",""\n'


@each(
    foreign=[
        ((FIXTURES / "synthetic_truncated.csv").read_text(), "cut off"),
        ((FIXTURES / "synthetic_cut_in_a_cell.csv").read_text(), "cut off"),
        ("", "one column each"),
        ('"ID","Kernel Name"\n', "one column each"),
        (HEAD, "row of units"),
        (f'{UNITS}"x","k","(1, 1, 1)","(1, 1, 1)"', "number"),
        (f'{UNITS}"0","k","1x1","(1, 1, 1)"', "as a size"),
        (table([{**LAUNCH, "grid": f"({'9' * 5000}, 1, 1)"}]), "as a size"),
    ]
)
def test_a_foreign_table_is_refused(foreign):
    text, complaint = foreign
    with pytest.raises(NcuReadError, match=complaint):
        parse_raw_csv(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_counts_are_exact_with_and_without_thousands(value):
    metric = COUNTERS["global_load_requests"].metrics[0]
    for text in (str(value), f"{value:,}"):
        (launch,) = parse_raw_csv(table([LAUNCH], {metric: text}))
        assert launch.cells[metric].value == value


@each(text=["-5", "1e999", "1e300", "9" * 400])
def test_a_number_that_counts_nothing_never_reaches_a_results_file(text):
    metric = COUNTERS["global_load_requests"].metrics[0]
    (launch,) = parse_raw_csv(table([LAUNCH], {metric: text}))
    counter = profile_of(launch, CopyMetrics()).counters["global_load_requests"]
    assert counter.value is None
    assert counter.reason.endswith(", which counts nothing")


def test_a_share_of_more_than_there_is_is_none():
    name = "global_load_efficiency_pct"
    metric = COUNTERS[name].metrics[0]
    found = []
    for text in ("100.2", "400"):
        (launch,) = parse_raw_csv(table([LAUNCH], {metric: text}))
        found.append(profile_of(launch, CopyMetrics()).counters[name])
    assert [counter.value for counter in found] == [100.2, None]
    assert found[1].reason == "Nsight Compute gives 400 %, more than there is"


def test_a_scaled_unit_is_not_taken_for_a_base_unit():
    text = (FIXTURES / "synthetic_naive_4096.csv").read_text()
    (launch,) = parse_raw_csv(text.replace('"byte/second"', '"Gbyte/second"').replace('"ns"', '"us"'))
    found = profile_of(launch, CopyMetrics()).counters
    assert found["global_load_throughput_gbps"].value is None
    assert "Gbyte/second" in found["global_load_throughput_gbps"].reason
    assert found["ncu_duration_us"].value is None


def test_first_metric_of_a_counter_that_has_a_value_is_taken():
    name = next(name for name, row in COUNTERS.items() if len(row.metrics) > 1)
    first, second = COUNTERS[name].metrics[:2]
    (launch,) = parse_raw_csv(table([LAUNCH]))

    def found(**held):
        cells = {key: value for key, value in launch.cells.items() if key not in (first, second)}
        cells |= {metric: cell for metric, cell in ((first, held.get("a")), (second, held.get("b"))) if cell}
        counter = profile_of(replace(launch, cells=cells), CopyMetrics()).counters[name]
        return counter.value, counter.metric

    unit = launch.cells[first].unit
    one, two, none = MetricCell(1, unit), MetricCell(2, unit), MetricCell(None, unit, "why")
    assert found(a=one, b=two)[1] == found(a=one)[1] == found(a=none)[1] == found()[1] == first
    assert found(a=none, b=two)[1] == found(b=two)[1] == second
    assert found()[0] is None


def test_instances_must_add_up():
    metric = COUNTERS["barriers"].metrics[0]
    (launch,) = parse_raw_csv(table([LAUNCH], {metric: "5 (BAR: 2; EXIT: 3)"}))
    assert profile_of(launch, CopyMetrics()).counters["barriers"].value == 2
    with pytest.raises(NcuReadError, match="add up"):
        parse_raw_csv(table([LAUNCH], {metric: "6 (BAR: 2; EXIT: 3)"}))
    (launch,) = parse_raw_csv(table([LAUNCH], {metric: "6"}))
    assert profile_of(launch, CopyMetrics()).counters["barriers"].value is None


@each(cell=["5 (BAR 5)", "5 (BAR: 2; BAR: 3)", "5 (BAR: x; EXIT: 5)", "5 (: 5)", "5 (BAR: 5; )", "5 ()"])
def test_instances_in_another_form_are_not_guessed(cell):
    with pytest.raises(NcuReadError, match="lists the instances of"):
        parse_raw_csv(table([LAUNCH], {COUNTERS["barriers"].metrics[0]: cell}))


PAGE = table([LAUNCH])


@pytest.mark.parametrize(
    ("output", "status", "complaint"),
    [
        (PAGE, 1, "it ended with status 1 and no table"),
        ("==PROF== nothing", 0, "it ended with status 0 and no table"),
        ("==ERROR== The file is of the future.", 2, r"run\.ncu-rep: The file is of the future\. "),
        ("==ERROR== ERR_NVGPUCTRPERM", 1, "NVreg_RestrictProfilingToAdminUsers=0"),
    ],
)
def test_page_of_an_ncu_that_failed_is_no_table(tmp_path, output, status, complaint):
    (tmp_path / "page").write_text(output)
    program = tmp_path / "ncu"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/page"\nexit {status}\n')
    program.chmod(0o755)
    with pytest.raises(NcuReadError, match=complaint) as error:
        raw_csv(Path("run.ncu-rep"), Ncu(str(program)))
    if "ERR_" not in output:
        assert "the Nsight Compute that wrote it" in str(error.value)


@each(
    found=[
        ("ld.global.f32 %f1, [%rd1];", (), None),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16;", ("async",), "global_load_sectors"),
        ("cp.async.ca.shared.global.L2::128B [%r1], [%rd1], 4;", ("async",), "shared_store_wavefronts"),
        ("cp.async.commit_group;\ncp.async.wait_group 0;", (), None),
        ("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;", (), None),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];",
            ("bulk",),
            "global_load_efficiency_pct",
        ),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.tile [a], [b];", ("bulk",), "global_load_requests"),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [a], [b];",
            ("bulk",),
            "global_store_sectors",
        ),
        ("cp.async.bulk.prefetch.L2.global [a], 16;", (), None),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};", ("tensor",), None),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1], %r2;", ("tensor",), None),
    ]
)
def test_copies_past_the_counters_are_found_in_ptx(found):
    code, kinds, hidden = found
    copies = copies_in(code)
    assert copies.kinds == kinds
    assert not copies.hidden if hidden is None else hidden in copies.hidden


def test_counters_that_cannot_see_a_copy_say_so():
    found = counters("synthetic_naive_4096.csv", copies_in("cp.async.cg.shared.global [a], [b], 16;"))
    for name in ("global_load_requests", "global_load_sectors", "global_load_efficiency_pct"):
        assert found[name].value is None
        assert "cp.async" in found[name].reason
    assert found["global_store_sectors"].value == 2097152
    assert "bulk_load_bytes" not in found


def test_copies_that_were_counted_in_changed_code_have_no_count():
    copies = copies_in("cp.async.cg.shared.global [a], [b], 16, %r1;")
    (launch,) = parse_raw_csv(table([LAUNCH]))
    found = profile_of(launch, copies).counters
    assert found["barriers"].value == 200
    assert found["async_copy_sectors"].value is None
    assert "collect it without sass__inst_executed_per_opcode" in found["async_copy_sectors"].reason
    cells = {name: cell for name, cell in launch.cells.items() if name != OPCODES}
    found = profile_of(replace(launch, cells=cells), copies).counters
    assert found["async_copy_sectors"].value == 1000
    assert found["barriers"].value is None
    assert found["barriers"].reason.endswith("which is not collected beside cp.async")


def test_a_case_without_profile_has_every_counter_with_the_reason():
    profile = without_profile("because")
    assert {counter.reason for counter in profile.counters.values()} == {"because"}
    assert {counter.value for counter in profile.counters.values()} == {None}
    assert "global_load_sectors" in profile.counters
