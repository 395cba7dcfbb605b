# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a comparison says of cases: outcomes, bounds, what moved; and that nothing in a file breaks it."""

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from compared_runs import HOSTILE, gemm_case, ladder, runs, with_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_schemas import json_schema
from unit_support import busy_runs

from gpuprof.comparison.compared import compare_runs
from gpuprof.comparison.comparison_document import ComparisonDocument, document, dumps
from gpuprof.comparison.gates import hold_comparison, read_gates
from gpuprof.errors import InputError
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.report.compared_text import comparison_page, comparison_report, render_junit, short_names
from gpuprof.report.markdown import markdown_of
from gpuprof.report.terminal import print_document
from gpuprof.results import Counter, Model, Occupancy, Resources, Tool
from gpuprof.schema import from_json
from gpuprof.statistics import joined, summarise, with_round

SAMPLES = Path(__file__).parents[2] / "samples"
SCHEMA = json_schema(ComparisonDocument)
GATES = ("time > 3%", "spill_bytes > 0", "global_load_sectors > 10", "bound == 'shared'", "missing or new")


def case_of(comparison, kernel):
    of_kernel = (case for case in comparison.cases if case.new.case.kernel == kernel)
    return next(case for case in of_kernel if case.new.case.problem.label == "128")


#: What one case may have of another.
MEASURED = ("outcome", "timing", "counters", "executor_counters", "occupancy", "resources", "chosen")


def everything(comparison):
    """Every rendering of a comparison, read back as far as it can be."""
    gates = hold_comparison(read_gates(GATES, with_base=True), comparison)
    report = comparison_report(comparison, gates)
    file = io.StringIO()
    print_document(report, file=file, width=60)
    found = document([comparison], [gates], Tool("gpuprof", "0"))
    text = dumps(found)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert from_json(ComparisonDocument, json.loads(text)) == found
    junit = render_junit([comparison], [gates])
    ElementTree.fromstring(junit)
    return {
        "terminal": file.getvalue(),
        "markdown": markdown_of(report),
        "html": comparison_page([(comparison, gates)], Tool("gpuprof", "0")),
        "junit": junit,
    }


def test_a_run_is_the_same_as_itself_measured_again():
    comparison = compare_runs(ladder(seed=1), ladder(seed=2))
    assert comparison.verdict == "same"
    assert {verdict: count for verdict, count in comparison.counts.items() if count} == {
        "same": 7,
        "unmeasured": 1,
    }
    assert {case.basis for case in comparison.cases} == {"time", "outcome"}


def test_a_page_of_two_whole_ladders_has_few_elements():
    base = read_run(SAMPLES / "gemm-h200.json")
    cases = []
    for number, case in enumerate(base.cases):
        if case.timing:
            factor = 1.1 if number % 2 else 0.9
            rounds = tuple(tuple(time * factor for time in samples) for samples in case.timing.cold.rounds_us)
            counted = {
                key: replace(held, value=(held.value or 0) * 1.2) for key, held in case.counters.items()
            }
            timing = replace(case.timing, cold=joined([summarise(samples) for samples in rounds]))
            case = replace(case, source_hash="other", timing=timing, counters=counted)
        cases.append(case)
    kernels = tuple(replace(kernel, source=f"{kernel.source}\n// other") for kernel in base.kernels)
    comparison = compare_runs(base, replace(base, cases=tuple(cases), kernels=kernels))
    assert sum(len(case.moved) for case in comparison.cases) > 1000
    page = comparison_page([(comparison, [])], Tool("gpuprof", "0"))
    assert len(re.findall(r"<[a-z]", page.split("<body>")[1])) < 3000
    assert not re.search(r"<th[^>]*></th>", page)
    itself = compare_runs(base, base)
    page = comparison_page([(itself, [])], Tool("gpuprof", "0"))
    assert page.count('<div id="case-0-') == itself.counts["uncertain"]


def test_a_reference_has_a_verdict_that_counts_for_nothing_and_is_told():
    comparison = compare_runs(ladder(seed=1), ladder(seed=2, factors={"cublas": 1.2}))
    assert comparison.verdict == "same"
    assert case_of(comparison, "cublas").verdict == "regressed"
    assert "not your code" in markdown_of(comparison_report(comparison))


def test_other_machine_code_of_the_same_source_is_told():
    """Without a process of its own NVRTC makes one of several of some sources: with 66 or 72 registers."""
    base = with_cases(
        ladder(1), naive={"resources": Resources(66, 0, 0, 0), "compile_options": ("-lineinfo",)}
    )
    held = {"resources": Resources(72, 0, 0, 0), "compile_options": ("-lineinfo",)}
    told = "NVRTC made other machine code of the same source"
    for new, expected in (
        (with_cases(base, naive=held), True),
        (base, False),
        (with_cases(base, naive={**held, "source_hash": "other"}), False),
        (with_cases(base, naive={**held, "compile_options": ("-G",)}), False),
        (replace(with_cases(base, naive=held), environment={**base.environment, "nvrtc": "99.9"}), False),
    ):
        assert (told in markdown_of(comparison_report(compare_runs(base, new)))) is expected


def test_a_kernel_that_broke_has_regressed_and_one_that_was_mended_improved():
    broken = with_cases(
        ladder(1), naive={"outcome": "incorrect", "reason": "All elements are NaN.", "timing": None}
    )
    there, back = compare_runs(ladder(1), broken), compare_runs(broken, ladder(1))
    assert case_of(there, "naive").verdict == "regressed"
    assert case_of(there, "naive").sentence == "was ok, now incorrect: All elements are NaN"
    assert case_of(back, "naive").verdict == "improved"
    assert case_of(back, "naive").sentence == "now ok, was incorrect: All elements are NaN"
    row = next(line for line in markdown_of(comparison_report(there)).splitlines() if "regressed |" in line)
    assert row.split("|")[5].strip().endswith("s")  # the time that was measured, and no bound in its place
    again = case_of(compare_runs(broken, broken), "naive")
    assert (again.verdict, again.basis) == ("unmeasured", "outcome")
    assert again.sentence.startswith("incorrect as before")


def test_what_was_not_measured_is_neither_the_same_nor_a_change():
    skipped = with_cases(
        ladder(1), naive={"outcome": "skipped", "reason": "It needs more shared memory.", "timing": None}
    )
    for comparison in (
        compare_runs(ladder(1), skipped),
        compare_runs(skipped, ladder(1)),
        compare_runs(skipped, skipped),
    ):
        assert case_of(comparison, "naive").verdict == "unmeasured"
        assert not comparison.counts["regressed"]
        assert not comparison.counts["improved"]
        assert comparison.counts["unmeasured"] == 3
        assert "3 unmeasured" in comparison.headline


def test_counters_that_only_one_run_took_are_no_change():
    """Executed both, and Nsight Compute beside one of them; or what the executor could not count in one."""
    sectors = {"global_load_sectors": Counter(1000, "sectors", "sim")}
    profiled = {**sectors, "dram_read_bytes": Counter(5, "bytes", "ncu")}
    uncounted = {**sectors, "barriers": Counter(None, "barriers", "sim", "too many blocks")}
    counted = {**sectors, "barriers": Counter(8, "barriers", "sim")}
    base = ladder(1)

    def moved(before, after):
        old, new = (with_cases(base, naive={"counters": held}) for held in (before, after))
        return [item.figure.key for item in case_of(compare_runs(old, new), "naive").moved]

    assert moved(sectors, profiled) == moved(profiled, sectors) == []
    assert moved(uncounted, counted) == moved(counted, uncounted) == []
    assert moved(sectors, counted) == ["barriers"]  # there were none


def test_without_times_exact_bounds_are_compared():
    base = runs.sim_run()
    bound = next(case for case in base.cases if case.bound_by)
    part = bound.bounds[bound.bound_by]
    slower = replace(
        bound, bounds={**bound.bounds, bound.bound_by: replace(part, least_us=2 * part.least_us)}
    )
    comparison = compare_runs(
        base, replace(base, cases=tuple(slower if case is bound else case for case in base.cases))
    )
    (found,) = [case for case in comparison.cases if case.base.case is bound]
    assert (found.verdict, found.basis, found.judgement) == ("regressed", "bound", None)
    assert "not timed" in found.sentence
    texts = [cell.text for cell in comparison_report(comparison).content[-1].content[0].rows[0].cells]
    assert texts[3:7] == ["regressed", *(text for text in texts[4:6] if text.startswith("≥ ")), "+100 %"]
    assert {case.verdict for case in comparison.cases} == {"same", "regressed"} | {
        case.verdict for case in comparison.cases if case.basis == "nothing"
    }


def modelled(run, **medians_us):
    """A run without times, with modelled ones of some kernels at 128."""

    def model(case):
        us = medians_us.get(case.kernel) if case.problem.label == "128" else None
        return replace(case, model=Model(us, 0.85 * us, 1.3 * us) if us else None, bounds={}, bound_by=None)

    return replace(run, cases=tuple(model(case) if case.outcome == "ok" else case for case in run.cases))


@pytest.mark.parametrize(
    ("before", "after", "verdict", "said"),
    [
        (20.0, 30.0, "regressed", "modelled 50 % slower (+15 % to +95 %); not timed"),
        (30.0, 20.0, "improved", "modelled 33 % faster (−49 % to −13 %); not timed"),
        (
            20.0,
            25.0,
            "uncertain",
            "modelled +25 % (−3.8 % to +62 %), which the model cannot tell from no change",
        ),
        (20.0, 20.0, "same", "modelled as before; not timed"),
        (20.0, None, "unmeasured", "neither times, nor modelled ones"),
    ],
)
def test_without_times_modelled_ones_are_compared(before, after, verdict, said):
    base, new = (modelled(runs.sim_run(), naive=us) for us in (before, after))
    comparison = compare_runs(base, new)
    found = case_of(comparison, "naive")
    assert (found.verdict, found.basis) == (verdict, "model" if after else "nothing")
    assert found.sentence.startswith(said)
    texts = everything(comparison)
    assert ("modelled" in comparison.headline) == bool(after)
    assert all((f"{verdict}, modelled" in texts[kind]) == bool(after) for kind in ("markdown", "html"))
    assert ("20 µs" in texts["markdown"]) == bool(after)  # no model is good for a third digit
    assert all("modelled" in texts[kind] for kind in ("terminal", "junit"))


def test_a_measured_time_and_a_modelled_one_are_not_compared():
    timed, counted = ladder(1), modelled(runs.sim_run(), naive=20.0)
    comparison = compare_runs(timed, counted, force=True)
    found = case_of(comparison, "naive")
    assert (found.verdict, found.basis, found.judgement) == ("unmeasured", "nothing", None)
    assert found.sentence.startswith("timed in one run only")


def test_resources_and_counters_that_changed_are_listed():
    base = ladder(1)
    counters = {"global_load_sectors": Counter(1000, "sectors", "sim")}
    fewer = {"global_load_sectors": Counter(500, "sectors", "sim")}
    old = with_cases(base, naive={"counters": counters})
    new = with_cases(
        base, naive={"counters": fewer, "resources": Resources(64, 0, 0, 8), "source_hash": "f" * 64}
    )
    moved = {
        item.figure.key: (item.before, item.after) for item in case_of(compare_runs(old, new), "naive").moved
    }
    assert moved["global_load_sectors"] == (1000, 500)
    assert moved["registers_per_thread"] == (40, 64)
    assert moved["spill_bytes"] == (0, 8)
    assert case_of(compare_runs(old, new), "naive").same_source is False
    full = with_cases(new, naive={"occupancy": Occupancy(12.5, "shared memory", 1)})
    texts = [item.text for item in case_of(compare_runs(full, new), "naive").moved]
    assert "occupancy limiter shared memory → threads" in texts
    assert case_of(compare_runs(old, old), "naive").moved == ()


def test_what_hardware_counts_differently_each_time_is_no_change():
    def counted(value, source="0" * 64):
        held = {
            "dram_read_bytes": Counter(value, "bytes", "ncu"),
            "l2_hit_rate_pct": Counter(value / 20, "%", "ncu"),
        }
        return with_cases(ladder(1), naive={"counters": held, "source_hash": source})

    assert case_of(compare_runs(counted(1000), counted(1030, "1" * 64)), "naive").moved == ()
    (moved,) = case_of(compare_runs(counted(1000), counted(1100, "1" * 64)), "naive").moved
    assert moved.ratio == pytest.approx(1.1)
    assert case_of(compare_runs(counted(1000), counted(2000)), "naive").moved == ()


def test_nothing_to_compare_is_refused():
    with pytest.raises(InputError, match="no case in common"):
        compare_runs(runs.empty_run(), ladder(1))
    other = replace(ladder(1), cases=tuple(replace(case, kernel="another") for case in ladder(1).cases))
    with pytest.raises(InputError, match=r"naive 128 .* the other another 128"):
        compare_runs(ladder(1), other)
    comparison = compare_runs(runs.empty_run(), runs.empty_run(), force=True)
    assert (comparison.verdict, comparison.headline) == ("unmeasured", "nothing to compare")
    assert "nothing to compare" in everything(comparison)["html"]


# Rounds.


def test_a_round_that_goes_wrong_is_what_became_of_the_case():
    case = gemm_case("k", runs.Gemm(128, 128, 128), 50.0)
    wrong = replace(case, outcome="incorrect", reason="3 elements are wrong.", timing=None)
    found = with_round(case, wrong, runs.DEVICE)
    assert (found.outcome, found.timing) == ("incorrect", None)
    assert found.reason == "3 elements are wrong. This was round 2: before, it was right."
    assert with_round(wrong, case, runs.DEVICE) is wrong


# Whatever a file holds.


def test_hostile_names_stay_text():
    comparison = compare_runs(runs.hostile_run(), runs.hostile_run(), base_name=HOSTILE, new_name=HOSTILE)
    texts = everything(comparison)
    assert "<img src=x" not in texts["html"]
    assert "</script><img" not in texts["html"]
    assert "<img" not in texts["markdown"]
    assert not {"\x1b", "\u202e"} & {*"".join(texts.values())}


@pytest.mark.parametrize("width", [60, 120])
def test_the_terminals_lines_fit_and_ascii_is_enough(width):
    base, new = ladder(seed=1), ladder(seed=2, factors={"naive": 1.1, "reg_2x1": 0.8})
    blocks = tuple(replace(case, block=(8, 8, 1)) for case in new.cases if case.kernel == "naive")
    comparison = compare_runs(base, replace(new, cases=(*new.cases, *blocks)))
    gates = hold_comparison(read_gates(GATES, with_base=True), comparison)
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_document(comparison_report(comparison, gates), file=file, width=width)
    file.seek(0)
    lines = file.read().splitlines()
    assert max(map(len, lines)) <= width
    assert not any("\\u" in line for line in lines)
    assert any(re.match(r"v  reg_2x1 .* improved", line) for line in lines)


def test_the_page_runs_no_script_and_loads_nothing():
    page = everything(compare_runs(ladder(), ladder(seed=3)))["html"]
    assert re.findall(r"<script[^>]*>", page) == ['<script type="application/json" id="gpuprof-comparison">']
    assert "script-src 'none'" in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


@st.composite
def pairs(draw):
    """A run, and one of the same kernels in which cases have what others had, or are not there."""
    run = draw(busy_runs())
    random = draw(st.randoms(use_true_random=False))
    others = random.sample(run.cases, len(run.cases))
    new = [
        replace(case, **{name: getattr(other, name) for name in MEASURED})
        for case, other in zip(run.cases, others, strict=True)
        if random.random() < 0.9
    ]
    return run, replace(run, cases=tuple(new))


@pytest.mark.deep
@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_any_two_runs_can_be_compared_and_shown(pair):
    base, new = pair
    everything(compare_runs(base, new, force=True))
    everything(compare_runs(base, base, force=True))


def test_names_are_told_by_what_differs_in_them():
    assert short_names(("base.json", "new.json")) == ["base.json", "new.json"]
    assert short_names(("/a/old/x/results.json", "/a/new/results.json")) == ["old/x", "new"]
    assert short_names(("/a/same.json", "/a/same.json")) == ["same.json", "same.json"]
