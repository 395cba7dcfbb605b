# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Counters into a run: after profiling, and from a report made by hand."""

from pathlib import Path

import pytest
from each import each
from ncu_support import install, table
from plain_runs import plain_run
from problem_support import Gemm, find_kernel, ladder

from gpuprof.commands.rendering import import_report
from gpuprof.counters import COUNTERS, OCCUPANCY
from gpuprof.errors import InputError
from gpuprof.measure.case import Case
from gpuprof.ncu.importing import match_launches
from gpuprof.ncu.metrics import CopyMetrics
from gpuprof.ncu.outcome import NcuOutcome, merge, profilable, profile_of, without_profile
from gpuprof.ncu.read import parse_raw_csv
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import (
    Measurement,
    Occupancy,
    Resources,
    Timing,
    TimingPair,
    dumps,
)
from gpuprof.store import write_run

REGISTERS = COUNTERS["registers_per_thread"].metrics[0]
TIMING = TimingPair(Timing(10.0, 9.0, 11.0, 0.1, ((9.0, 10.0, 11.0),)), None)


def case(name, grid, k=64, registers=1000, outcome="ok"):
    kernel = find_kernel("gemm", name)
    return Measurement(
        kernel=name,
        problem=Gemm(64, 64, k).record(),
        block=kernel.block,
        grid=grid,
        params={},
        outcome=outcome,
        source_hash=kernel.source_hash,
        timing=TIMING,
        resources=Resources(registers, 0, 0, 0),
        occupancy=Occupancy(100.0, "threads", 2),
        counters_reason="not asked for",
    )


def run_of(*cases):
    names = dict.fromkeys(one.kernel for one in cases)
    return plain_run([find_kernel("gemm", name).record() for name in names], cases)


def launch(name, grid, block="(32, 32, 1)"):
    return {"kernel": name, "block": block, "grid": f"({grid}, {grid}, 1)"}


def test_merging_adds_counters_and_leaves_times_alone():
    run = run_of(case("naive", (2, 2, 1)), case("smem_tiled", (2, 2, 1)))
    (row,) = parse_raw_csv(table([launch("naive", 2)], {COUNTERS[OCCUPANCY].metrics[0]: "93.5"}))
    profiles = {0: profile_of(row, CopyMetrics()), 1: without_profile("it died")}
    merged = merge(run, NcuOutcome(profiles, version="2025.3.1.0"))
    first, second = merged.cases
    assert first.timing == TIMING
    assert first.counters["global_load_sectors"].value == 1000
    assert first.counters_reason is None
    assert first.occupancy.achieved_pct == 93.5
    assert first.occupancy.achieved_reason is None
    assert second.counters["global_load_sectors"].reason == "it died"
    assert second.counters_reason == "it died"
    assert second.occupancy.achieved_pct is None
    assert second.occupancy.achieved_reason == "it died"
    assert merged.environment["ncu"] == "2025.3.1.0"
    assert '"ncu"' in dumps(merged)


def test_an_import_finds_unlike_cases_in_any_order():
    run = run_of(case("naive", (2, 2, 1)), case("smem_tiled", (2, 2, 1)))
    rows = parse_raw_csv(table([launch("smem_tiled", 2), launch("naive", 2), launch("elsewhere", 1)]))
    rows = [
        replace(row, cells={**row.cells, REGISTERS: replace(row.cells[REGISTERS], value=1000)})
        for row in rows
    ]
    outcome, unmatched = match_launches(run, rows, Path("r.ncu-rep"))
    assert sorted(outcome.profiles) == [0, 1]
    assert outcome.profiles[0].counters["global_load_requests"].value == 1001
    assert len(unmatched) == 1
    assert "elsewhere" in unmatched[0]


HEADER = '/*gpuprof\nentry = "a::first<BM>"\n[[variants]]\nid = "other"\nentry = "second"\n*/'


@each(shown=["first", "a::first", "void a::first<64>(int, float *)"])
def test_an_import_knows_a_function_however_it_is_shown(shown):
    run = run_of(case("naive", (2, 2, 1)), case("smem_tiled", (3, 3, 1), registers=1001))
    records = tuple(replace(record, source=HEADER) for record in run.kernels)
    records = (records[0], replace(records[1], id="other"))
    cases = (run.cases[0], replace(run.cases[1], kernel="other"))
    rows = parse_raw_csv(table([launch(shown, 2), launch("second", 3)]))
    outcome, _ = match_launches(replace(run, kernels=records, cases=cases), rows, Path("r"))
    assert sorted(outcome.profiles) == [0, 1]
    with pytest.raises(InputError, match="for certain"):
        match_launches(run, rows, Path("r"))


def test_a_profiled_case_has_the_block_that_ran():
    chosen = replace(case("naive", (2, 2, 1)), kernel="by_size", chosen="naive")
    planned = Case.of(find_kernel("gemm", "by_size"), Gemm(64, 64, 64), alternatives=ladder("gemm"))
    assert planned.block == (1, 1, 1)
    ((index, profiled),) = profilable(run_of(chosen), [planned])
    assert (index, profiled) == (0, replace(planned, block=(32, 32, 1)))


def test_an_import_refuses_other_code_and_other_gpus():
    rows = parse_raw_csv(table([launch("naive", 2)]))
    with pytest.raises(InputError, match="registers"):
        match_launches(run_of(case("naive", (2, 2, 1), registers=7)), rows, Path("r"))
    run = run_of(case("naive", (2, 2, 1)))
    other = replace(run, devices=(replace(run.device, compute_capability="8.6"),))
    with pytest.raises(InputError, match=r"compute capability 9\.0"):
        match_launches(other, rows, Path("r"))


@each(registers=[(7, 16, True), (16, 16, True), (17, 16, False), (40, 40, True), (7, 15, False)])
def test_a_launch_is_given_sixteen_registers_at_least(registers):
    compiled, given, same = registers
    rows = parse_raw_csv(table([launch("naive", 2)], {REGISTERS: str(given)}))
    run = run_of(case("naive", (2, 2, 1), registers=compiled))
    if same:
        assert sorted(match_launches(run, rows, Path("r"))[0].profiles) == [0]
    else:
        with pytest.raises(InputError, match="registers"):
            match_launches(run, rows, Path("r"))


def test_the_import_command_writes_the_results(tmp_path, capsys):
    results = tmp_path / "results.json"
    write_run(run_of(case("naive", (2, 2, 1)), case("smem_tiled", (2, 2, 1), outcome="failed")), results)
    report = tmp_path / "by-hand.ncu-rep"
    report.write_text('[{"kernel": "naive", "block": "(32, 32, 1)", "grid": "(2, 2, 1)"}]')
    import_report(report, results, None, install(tmp_path / "bin", ""))
    assert "Counters for 1 of 2 cases" in capsys.readouterr().out
    assert read_run(results).cases[0].counters["global_load_sectors"].value == 1000
    with pytest.raises(InputError, match="There is no file"):
        import_report(tmp_path / "none.ncu-rep", results, None, None)
