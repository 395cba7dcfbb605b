# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which case belongs to which, and what differs besides the kernels."""

from dataclasses import replace

import pytest
from compared_runs import gemm_case, ladder, run, runs

from gpuprof.comparison.compared import compare_runs
from gpuprof.comparison.matching import differences, match
from gpuprof.errors import InputError
from gpuprof.results import Clocks, ClockState


def on(**fields):
    return replace(ladder(1), devices=(replace(runs.DEVICE, **fields),))


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (on(name="NVIDIA A100"), "device"),
        (on(sm_count=66), "device"),
        (on(compute_capability="8.0"), "device"),
        (on(sm_clock_mhz=1400.0), "boost clock"),
        (on(memory_clock_mhz=2000.0), "memory clock"),
        (replace(ladder(1), backend="sim"), "how"),
        (replace(ladder(1), environment={**ladder(1).environment, "l2_flush": "write"}), "how L2 is flushed"),
        (replace(ladder(1), environment={**ladder(1).environment, "launch_gate": "none"}), None),
    ],
)
def test_what_misleads_is_refused_unless_forced(other, what):
    base = ladder(1)
    if what is None:
        base = replace(base, environment={**base.environment, "launch_gate": "stream wait"})
        what = "how launches are queued"
    with pytest.raises(InputError) as refused:
        compare_runs(base, other)
    assert what in refused.value.what
    assert "--force" in refused.value.fix
    forced = compare_runs(base, other, force=True)
    assert forced.differences[0].what == what
    assert forced.differences[0].misleads
    assert len(forced.cases) == len(base.cases)


def test_times_with_and_without_the_events_own_are_not_compared():
    base = timed_by(ladder(1), None)
    new = timed_by(ladder(1), 2.9)
    assert "times" in {difference.what for difference in differences(base, new) if difference.misleads}
    assert differences(new, timed_by(ladder(1), 2.8)) == ()
    assert differences(base, base) == ()


def timed_by(run, event_pair_us):
    cases = [replace(case, event_floor_us=1.3, event_pair_us=event_pair_us) for case in run.cases]
    return replace(run, cases=tuple(cases))


def test_versions_are_told_and_not_refused():
    base = ladder(1)
    other = replace(base, environment={**base.environment, "driver": "595.1", "nvrtc": "13.1"}, seed=3)
    found = compare_runs(base, other).differences
    assert {difference.what for difference in found} == {"seed", "driver", "compiler (NVRTC)"}
    assert not any(difference.misleads for difference in found)
    assert "driver: 580.95.05 → 595.1" in [difference.text for difference in found]


def test_a_tool_that_only_one_run_used_is_no_difference():
    base = ladder(1)
    assert differences(base, replace(base, environment={**base.environment, "ncu": "2025.3"})) == ()


@pytest.mark.parametrize(
    ("mhz", "named", "refused"), [(1960, False, False), (1850, True, False), (1500, True, True)]
)
def test_clocks_while_timing(mhz, named, refused):
    state = ClockState(mhz, 3201, 41, 310.0, ())
    base = ladder(1)
    other = replace(base, cases=tuple(replace(case, clocks=Clocks(state, state)) for case in base.cases))
    found = [item for item in differences(base, other) if item.what.startswith("SM clock")]
    assert bool(found) == named
    assert any(item.misleads for item in found) == refused


def test_throttled_and_incomplete_runs_are_named():
    base = ladder(1)
    hot = replace(base.cases[0].timing.cold, throttled=60)
    cases = (replace(base.cases[0], timing=replace(base.cases[0].timing, cold=hot)), *base.cases[1:])
    found = differences(base, replace(base, cases=cases, complete=False))
    assert [item.text for item in found] == [
        "run: complete → stopped early",
        "cases timed while throttled: 0 → 1",
    ]


SMALL = runs.Gemm(128, 128, 128)


def of(*cases, **fields):
    return replace(run("gpu", [], [], **fields), cases=cases)


def test_cases_of_other_sizes_types_and_scalars_are_not_matched():
    case = gemm_case("k", SMALL, 9.0)
    for problem in (
        replace(SMALL, sizes={"M": 128, "N": 128, "K": 64}),
        replace(SMALL, dtype="f64"),
        replace(SMALL, scalars={"alpha": 2.0, "beta": 0.0}),
        replace(SMALL, options={"layout": "column"}),
    ):
        pairs = match(of(case), of(replace(case, problem=problem)))
        assert [(pair.base is None, pair.new is None) for pair in pairs] == [(True, False), (False, True)]


def test_a_changed_block_or_parameter_is_matched_and_told():
    case = replace(gemm_case("k", SMALL, 9.0), params={"BK": 8})
    other = replace(case, block=(8, 32, 1), params={"BK": 16, "TM": 4})
    (pair,) = match(of(case), of(other))
    assert pair.moved == ("block 32x32 → 8x32", "BK 8 → 16", "TM – → 4")


def test_a_sweep_is_matched_case_by_case():
    blocks = [replace(gemm_case("k", SMALL, 9.0), block=(8, y, 1)) for y in (8, 16, 32)]
    pairs = match(of(*blocks[:2]), of(*blocks[1:]))
    assert [(pair.base, pair.new) for pair in pairs] == [
        (blocks[1], blocks[1]),
        (None, blocks[2]),
        (blocks[0], None),
    ]


def test_in_a_run_on_several_devices_the_device_counts():
    case = gemm_case("k", SMALL, 9.0)
    devices = (runs.DEVICE, replace(runs.DEVICE, name="Another"))
    there = replace(of(case, replace(case, device=1)), devices=devices)
    back = replace(of(replace(case, device=1), case), devices=devices)
    pairs = match(there, back)
    assert [(pair.base.device, pair.new.device) for pair in pairs] == [(1, 1), (0, 0)]


def test_a_kernel_that_chooses_is_matched_whatever_it_chose():
    case = replace(gemm_case("by_size", SMALL, 9.0), chosen="a")
    other = replace(case, chosen="b", block=(64, 1, 1), source_hash="1" * 64)
    (pair,) = match(of(case), of(other))
    assert (pair.base, pair.new) == (case, other)
