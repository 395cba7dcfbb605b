# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds of a case: what binds and where, what less of it would allow, and how that is shown."""

import re
from functools import cache

import pytest
from page_reader import PageReader, expanded
from synthetic_runs import CONFLICTS, CYCLES, Gemm, at, bounded, counted_run, gemm_run, run

from gpuprof.analysis.limiter import Limiter, verdict
from gpuprof.analysis.limits import limits_of, shifts
from gpuprof.case_parts import Explanation
from gpuprof.records import replace
from gpuprof.report.device_facts import rates_table
from gpuprof.report.html import render_html
from gpuprof.report.source import LineCounts
from gpuprof.results import Run, SourceLine


def counted(values, **parts):
    return bounded(values, Gemm(4096, 4096, 4096), **{"grid": (128, 128, 1), **parts})


def limits(case, backend="gpu"):
    found = limits_of(run(backend, [], [case]), case)
    assert found is not None
    return found


def test_what_binds_is_the_longest_and_is_said_without_a_time():
    found = limits(counted(CONFLICTS), "sim")
    assert [floor.key for floor in found.floors[:2]] == ["l1", "fma"]
    assert found.least_us == pytest.approx(10_000)
    assert found.text == "cannot be faster than 10.0 ms (Shared memory and L1)"
    assert found.ratio is None


def test_near_its_bound_a_case_is_said_to_be_bound():
    found = limits(at(counted(CONFLICTS), 12_500))
    assert found.text == "bound by Shared memory and L1: 10.0 ms at least, 80.0 % of the time it takes"


def test_far_above_every_bound_it_is_latency():
    found = limits(at(counted({"ffma_thread_instructions": 128 * CYCLES}), 2000))
    said = "takes 2.00× its highest bound, 1.00 ms (FMA f32)"
    assert found.text == said
    assert verdict(found, Limiter("latency", "latency")) == f"latency-bound: {said}"
    assert verdict(found, Limiter("grid", "grid")) == f"too few blocks: {said}"
    modelled = replace(found, measured_us=None, modelled_us=2000)
    least = "cannot be faster than 1.00 ms (FMA f32)"
    assert verdict(modelled, Limiter("grid", "grid")) == f"too few blocks as modelled; {least}"
    assert verdict(replace(modelled, modelled_us=1400), Limiter("fma", "FMA")) == least


def test_what_moved_since_the_rung_below_is_said_in_times_the_largest_first():
    below = limits(at(counted(CONFLICTS), 12_500))
    counters = {**CONFLICTS, "l1_passes": 2 * CYCLES, "ffma_thread_instructions": 4 * 128 * CYCLES}
    above = limits(at(counted(counters), 5000))
    assert list(shifts(below, above)) == [
        "Shared memory and L1 10.0 ms → 2.00 ms",
        "FMA f32 1.00 ms → 4.00 ms",
    ]
    assert shifts(below, below) == ()
    # What caches may absorb: of 64 bytes a cycle and SM, 256 are asked for.
    asked = ({"l1_passes": CYCLES, "global_load_sectors": sectors * CYCLES} for sectors in (8, 4))
    below, above = (limits(counted(counters), "sim") for counters in asked)
    assert "L2 without cache hits 4.00 ms → 2.00 ms" in shifts(below, above)


def test_the_line_that_causes_most_of_it_is_named_and_marked():
    lines = (
        SourceLine(10, {"l1_passes": 30, "warp_instructions": 60}),
        SourceLine(12, {"l1_passes": 70}),
        SourceLine(14, {"warp_instructions": 40}),
    )
    case = counted(CONFLICTS, lines=lines)
    found = limits(case, "sim")
    assert found.hot is not None
    assert (found.hot.line, found.hot.share_pct) == (12, pytest.approx(70))
    counts = LineCounts(case)
    assert [counts.share_pct(line, *counts.binding) for line in (10, 12)] == [30, 70]
    assert [counts.is_most(line, *counts.binding) for line in (10, 12)] == [False, True]
    assert [counts.share_pct(line, "warp_instructions") for line in (10, 14)] == [60, 40]


RATES = {
    "fma_f32_gflops": 65_500.0,
    "shared_gbps": 33_000.0,
    "dram_read_gbps": 4400.0,
    "barriers_gips": 91.25,
}


def measured(run: Run) -> Run:
    """The run on a device whose rates were measured."""
    return replace(run, devices=(replace(run.device, measured_rates=RATES),))


@cache
def page() -> str:
    return expanded(render_html(counted_run()))


def test_the_line_that_causes_most_is_linked_and_marked_in_the_source() -> None:
    reader = PageReader(page())
    hot = [tag["id"] for name, tag in reader.tags if name == "b" and "id" in tag]
    linked = [link[1:] for link in reader.attributes("href") if re.search(r"-L\d+$", link)]
    assert linked
    assert set(linked) <= set(hot)
    assert "sum += a[k] * b[(size_t)k * N]; ◂ most of shared/L1" in reader.text


def test_the_line_where_a_case_went_wrong_is_marked_with_how() -> None:
    found = Explanation("illegal address", "line 47, thread …", {}, 47, "naive")
    cases = [
        replace(case, outcome="failed", reason="It faults.", explanation=found)
        if case.kernel == "naive"
        else case
        for case in counted_run().cases
    ]
    text = PageReader(expanded(render_html(replace(counted_run(), cases=tuple(cases))))).text
    assert text.count(" ◂ illegal address") == 1


def test_what_the_device_reached_stands_beside_what_it_promises() -> None:
    table = rates_table(measured(gemm_run()).device)
    rows = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}
    assert rows["FMA f32"] == ["65,500", "66,910", "97.9 %", "GFLOP/s"]
    assert rows["Barriers"][:3] == ["91.25", "130.7", "69.8 %"]
    assert (rows["DRAM, write"][0], rows["DRAM, write"][2]) == (None, "–")
    text = PageReader(render_html(measured(gemm_run()))).text
    assert "| FMA f32 | 65,500 | 66,910 | 97.9 % | GFLOP/s" in text
    assert "What small kernels reached" not in PageReader(render_html(gemm_run())).text
