# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What differs besides the kernels: told, and refused where it would mislead."""

from dataclasses import replace

import pytest
from compared_runs import ladder, runs

from gpuprof.comparison.compared import compare_runs
from gpuprof.comparison.surroundings import differences
from gpuprof.errors import InputError
from gpuprof.results import Clocks, ClockState


def test_nothing_differs_between_a_run_and_itself():
    assert differences(ladder(1), ladder(1)) == ()


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
