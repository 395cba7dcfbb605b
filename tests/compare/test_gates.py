# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Gates: what their text may say, what it means, and what becomes of cases held against them."""

import pytest
from compared_runs import gemm_case, in_rounds, ladder, run, runs, with_cases
from hypothesis import example, given
from hypothesis import strategies as st

from gpuprof.comparison.compared import compare_runs
from gpuprof.comparison.gates import hold_comparison, hold_run, read_gates
from gpuprof.errors import InputError
from gpuprof.records import replace
from gpuprof.results import Model, Resources


def held(text, whole):
    (result,) = hold_run(read_gates([text], with_base=False), whole)
    return result


def compared(text, base, new):
    (result,) = hold_comparison(read_gates([text], with_base=True), compare_runs(base, new))
    return result


def failing(result):
    return [case.case.split()[0] for case in result.of("yes")]


ONE = run("gpu", [], [gemm_case("k", runs.Gemm(128, 128, 128), 50.0, registers=40)])


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("registers_per_thread > 40", "passed"),
        ("registers_per_thread >= 40", "failed"),
        ("registers_per_thread < +41", "failed"),
        ("spill_bytes > 1 KiB", "passed"),
        ("theoretical_occupancy_pct <= 100", "failed"),
        ('occupancy_limiter != "threads"', "passed"),
        ("outcome != 'ok'", "passed"),
        ("kernel == 'other' and registers_per_thread > 30", "not judged"),
        ("kernel == 'other' or registers_per_thread > 30", "failed"),
        ("not registers_per_thread < 30 and not spill_bytes > 0", "failed"),
        ("size == '128' and dtype == 'f32' and block == '32x32' and operation == 'gemm'", "failed"),
        ("smsp__inst_executed.sum > 5", "not judged"),
        ("global_load_efficiency_pct < 90 or spill_bytes > 0", "not judged"),
        ("global_load_efficiency_pct < 90 and spill_bytes > 0", "passed"),
        ("time > 0.00001 s", "failed"),
        ("time > 51us", "uncertain"),
        ("gflops < 1 TFLOP/s", "failed"),
    ],
)
def test_outcome(text, outcome):
    assert held(text, ONE).outcome == outcome


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", None, "cannot be read"),
        ("time", 0, "no condition"),
        ("> 3", None, "cannot be read"),
        ("time > 3 spill_bytes", 9, "'spill_bytes' is not a unit"),
        ("  (spill_bytes > 0", None, "cannot be read"),
        ("time > 'fast'", 7, "is a number, not text"),
        ("bound > 3", 8, "is text, not a number"),
        ("bound > 'shared'", 0, "cannot be more or less"),
        ("bound == 'warp drive'", 9, "no part of a device"),
        ("kernel == naive", 10, "naive is no value"),
        ("kernel == 3", 10, "is text, not a number"),
        ("change(kernel) == 'x'", 7, "does not change"),
        ("time in 3", 0, "no condition"),
        ("spill_bytes > 3 us", 14, "is a size in bytes, not in us"),
        ("registers_per_thread > 3 KiB", 23, "counted in registers"),
        ("spill_byte > 0", 0, "there is no figure 'spill_byte'"),
        ("gain < 1", 0, "no gate can use it"),
        ("time > 1e999", 7, "too large"),
        ("__import__('os') > 3", 0, "no condition"),
        ("a.b > 3", 0, "there is no figure"),
        ("time > 3 # us", None, "cannot be read"),
        ("time\t> 3 x", 9, "'x' is not a unit"),
    ],
)
def test_what_is_wrong_is_shown_with_a_caret(text, place, words):
    with pytest.raises(InputError) as refused:
        read_gates([text], with_base=True)
    assert words in refused.value.what
    shown, caret = refused.value.fix.split("\n")
    assert shown == text.replace("\t", " ")
    # Where Python's parser stops is its own affair.
    assert caret.index("^") == place + 2 if place is not None else "^" in caret


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("traffic > 2", "That column is sector_ratio"),
        ("tiem > 3%", "Did you mean .*time"),
        ("register_per_thread > 3", "Did you mean .*registers_per_thread"),
        ("time > 3 and " * 100, "longer than"),
    ],
)
def test_what_is_no_gate_is_answered_with_what_may_be_meant(text, words):
    with pytest.raises(InputError, match=words):
        read_gates([text], with_base=True)


@pytest.mark.parametrize("text", ["time > 3%", "regressed", "verdict == 'same'"])
def test_what_needs_a_base_says_so_without(text):
    with pytest.raises(InputError, match="there is none"):
        read_gates([text], with_base=False)
    read_gates([text], with_base=True)


@given(st.text(st.sampled_from("abtime_ ()<>=!'\"%+-0123456789.e&|\n\\µ×and or not change"), max_size=40))
@example("time > −3%")
@example("not " * 100 + "regressed")
@example("(" * 250)
@example("regressed" + ".a" * 245)
def test_any_text_is_read_or_refused(text):
    try:
        gates = read_gates([text], with_base=True)
    except InputError:
        return
    hold_run(gates, ONE)


def test_references_are_no_code_under_test():
    result = held("registers_per_thread > 0", ladder(1))
    assert "cublas" not in failing(result)
    assert "naive" in failing(result)


def test_change_of_an_exact_figure():
    base = ladder(1)
    resources = base.cases[0].resources
    more = Resources(resources.registers_per_thread + 10, resources.static_shared_bytes, 0, 16)
    new = with_cases(base, naive={"resources": more})
    assert failing(compared("change(registers_per_thread) > 20%", base, new)) == ["naive", "naive"]
    assert compared("change(registers_per_thread) > 25%", base, new).outcome == "passed"
    assert failing(compared("registers_per_thread > 5%", base, new)) == ["naive", "naive"]
    # From 0 there is no percentage, but more is more.
    assert failing(compared("change(spill_bytes) > 1000%", base, new)) == ["naive", "naive"]
    assert compared("change(spill_bytes) > 0%", base, base).outcome == "passed"
    assert compared("change(spill_bytes) > 0", base, base).outcome == "passed"


def test_change_of_a_time():
    base, new = ladder(seed=1), ladder(seed=2, factors={"smem_tiled": 1.2, "reg_2x1": 0.7})
    assert failing(compared("time > 3%", base, new)) == ["smem_tiled", "smem_tiled"]
    assert failing(compared("change(time) > 15%", base, new)) == ["smem_tiled", "smem_tiled"]
    assert failing(compared("time < -20%", base, new)) == ["reg_2x1", "reg_2x1"]
    assert failing(compared("change(gflops) < -10%", base, new)) == ["smem_tiled", "smem_tiled"]
    assert failing(compared("regressed", base, new)) == ["smem_tiled", "smem_tiled"]
    assert failing(compared("verdict == 'improved'", base, new)) == ["reg_2x1", "reg_2x1"]
    assert failing(compared("regressed and size == '128'", base, new)) == ["smem_tiled"]
    assert compared("time > 30%", base, new).outcome == "passed"


def test_a_time_of_identical_code_never_fails_a_gate():
    for seed in range(20):
        result = compared("time > 0%", ladder(seed=seed), ladder(seed=100 + seed))
        assert result.outcome in ("uncertain", "passed")


def test_new_cases_have_no_change_and_missing_ones_are_looked_at_where_asked():
    base, whole = ladder(1), ladder(1)
    new = replace(whole, cases=whole.cases[1:])
    assert failing(compared("missing", base, new)) == ["naive"]
    assert failing(compared("new", new, base)) == ["naive"]
    assert compared("missing", base, base).outcome == "passed"
    result = compared("change(spill_bytes) > 0%", new, base)
    assert [case.case.split()[0] for case in result.of("unknown")] == ["naive"]
    assert failing(compared("missing or spill_bytes > 0", base, new)) == ["naive"]


def test_a_gate_on_a_time_in_rounds_is_sure_beyond_them():
    case = in_rounds(gemm_case("k", runs.Gemm(128, 128, 128), 50.0), 16, spread=0.002)
    whole = run("gpu", [], [case])
    assert held("time > 51us", whole).outcome == "passed"
    assert held("time > 49us", whole).outcome == "failed"
    assert held(f"time > {case.timing.cold.median_us}us", whole).outcome == "uncertain"
    assert held("gflops > 1", whole).outcome == "failed"


@pytest.mark.parametrize(
    ("text", "us", "outcome", "evidence"),
    [
        ("time > 10us", 20.0, "failed", "20 µs modelled (17–26 µs)"),
        ("time > 18us", 20.0, "uncertain", "20 µs modelled"),
        ("model_us > 18us", 20.0, "uncertain", "20 µs modelled"),
        ("time > 3%", 30.0, "failed", "modelled time +50 % (+15 % to +95 %)"),
        ("time > 3%", 22.0, "uncertain", "modelled time +10 %"),
        ("time > 3%", 12.0, "passed", ""),
        ("warm > 3%", 30.0, "not judged", "not timed"),
        ("regressed", 30.0, "failed", "modelled 50 % slower"),
    ],
)
def test_a_gate_on_the_time_of_what_nobody_timed_holds_the_modelled_one(text, us, outcome, evidence):
    def modelled(time_us):
        case = replace(gemm_case("k", runs.Gemm(128, 128, 128), 1.0), timing=None, throughput=None)
        return run("sim", [], [replace(case, model=Model(time_us, 0.85 * time_us, 1.3 * time_us))])

    result = compared(text, modelled(20.0), modelled(us))
    assert result.outcome == outcome
    assert evidence in result.sentence


def test_the_binding_part_has_several_names():
    for word in ("SHARED", "l1", "shared/L1", "Shared memory"):
        (gate,) = read_gates([f"bound == '{word}'"], with_base=False)
        assert gate[1].texts == ("shared/l1",)
