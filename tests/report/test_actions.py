# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What to do about each limiter: something that a person can do, reckoned from the case's own counts."""

import re
from pathlib import Path

import pytest
from synthetic_runs import CONFLICTS, CYCLES, DEVICE, Gemm, Transpose, at, bounded, run

from gpuprof.analysis.action_facts import Action
from gpuprof.analysis.actions import actions_of
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.limits import limits_of
from gpuprof.analysis.status import is_reference, status_of
from gpuprof.bounds.parts import PARTS
from gpuprof.case_parts import Counter
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Model, Occupancy, Resources

SAMPLES = Path(__file__).parents[2] / "samples"


def counted(values, problem=None, **parts):
    return bounded(values, problem or Gemm(2048, 2048, 2048), **parts)


def found(case, backend="gpu") -> tuple[str, tuple[Action, ...]]:
    held = run(backend, [], [case])
    limiter = limiter_of(held, case)
    return (limiter.key if limiter else ""), actions_of(held, case)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_case_of_the_samples_has_an_action(path):
    held = read_run(path)
    cases = [case for case in held.cases if status_of(held, case).usable and not is_reference(held, case)]
    assert cases
    for case in cases:
        first, *others = actions_of(held, case)
        assert first.do
        # A slight gain is never all that there is to propose.
        assert others or first.factor is None or first.factor >= 1.1, first.text
        assert first.why
        assert "at all" not in first.text
        assert "and L1 needs" not in first.text
        # Only what nobody counted is told to be counted.
        assert first.do.startswith("count ") <= (limits_of(held, case) is None)
        assert first.factor is None or first.factor > 1


def test_every_part_that_may_limit_has_an_action():
    worked = {
        part.key: dict.fromkeys(part.work[0].counters, 512 * CYCLES) for part in PARTS.values() if part.work
    }
    for key, values in worked.items():
        limiter, actions = found(counted(values), "sim")
        if limiter == key:  # a device without the part has no rate for it
            assert actions, key


def test_conflicts_are_taken_away_down_to_the_next_bound():
    key, (first, *_) = found(counted(CONFLICTS), "sim")
    assert (key, first.left) == ("l1", "shared/L1")
    assert (first.least_us, first.factor) == (pytest.approx(2000), pytest.approx(5))
    assert "conflict" in first.why
    scattered = {"global_load_sectors": 16 * CYCLES, "global_load_requests": CYCLES}
    _, (first, *_) = found(counted({"l1_passes": 10 * CYCLES, **scattered}), "sim")
    assert first.do.startswith("coalesce global accesses (")
    fmas = {**CONFLICTS, "ffma_thread_instructions": 5 * 128 * CYCLES}
    _, (first, *_) = found(counted(fmas), "sim")
    assert (first.least_us, first.left) == (pytest.approx(5000), "FMA")


def test_of_a_case_with_a_time_waste_lowers_the_bound_and_says_so():
    _, (first, *_) = found(at(counted(CONFLICTS), 11_000))
    assert first.lowers_bound
    assert first.factor == pytest.approx(5)
    untimed = counted(CONFLICTS)
    assert not found(untimed, "sim")[1][0].lowers_bound
    assert found(replace(untimed, model=Model(11_000, 9000, 13_000)), "sim")[1][0].lowers_bound
    few, (first, *_) = found(replace(untimed, model=Model(30_000, 20_000, 40_000), grid=(2, 1, 1)), "sim")
    assert (few, first.lowers_bound) == ("grid", True)


def test_fewer_instructions_are_bounded_by_the_arithmetic_that_is_needed():
    needed = 2048**3 / 32
    values = {
        "warp_instructions": 2 * needed,
        "pipe_fma_instructions": needed,
        "pipe_lsu_instructions": 0.8 * needed,
    }
    key, (first, *_) = found(counted(values), "sim")
    assert key == "issue"
    assert first.factor == pytest.approx(2, rel=0.01)
    assert "2 instructions are issued for each FMA" in first.why


def test_at_its_roof_less_work_is_what_is_left():
    us = Transpose(8192, 8192).min_bytes / DEVICE.peak_bandwidth_gbps / 1e3
    values = {"warp_instructions": CYCLES / 1000}
    key, (first, *_) = found(at(counted(values, Transpose(8192, 8192)), us / 0.95))
    assert key == "dram"
    assert first.factor is None
    assert "95.0 % of theoretical peak" in first.why
    untimed = counted({"pipe_fma_instructions": 2048**3 / 32})
    limits = limits_of(run("sim", [], [untimed]), untimed)
    assert limits is not None
    for factor in (1.01, 1.3):
        us = factor * limits.least_us
        _, (first, *_) = found(replace(untimed, model=Model(us, us / 2, 2 * us)), "sim")
        assert ("at its roof" in first.why) == (factor < 1.1)


def test_a_short_launch_is_batched_and_a_small_grid_spread():
    small = counted(
        {"warp_instructions": CYCLES / 1e5}, Gemm(64, 64, 64), grid=(16, 1, 1), event_floor_us=2.0
    )
    key, (first, second, *_) = found(at(small, 4.0))
    assert key == "grid"
    assert (first.least_us, first.factor) == (pytest.approx(2), pytest.approx(2))
    assert "launch overhead 2.0 of 4.0" in first.why
    assert "16 blocks for 132 SMs" in second.why
    # What the kernel itself can gain stands first where the launch is less than half of the time.
    key, (first, *_, last) = found(at(small, 5.0))
    assert "16 blocks" in first.why
    assert "launch overhead 2.0 of 5.0" in last.why
    key, (first, *_) = found(at(small, 12.0))
    assert "16 blocks for 132 SMs" in first.why
    whole = replace(small, grid=(132, 1, 1))
    assert found(at(whole, 2.5))[0] == "launch"


def test_hidden_latency_is_a_matter_of_what_is_in_flight():
    held = {"occupancy": Occupancy(12.5, "registers", 1), "resources": Resources(255, 0, 0, 0)}
    case = counted({"ffma_thread_instructions": 128 * CYCLES}, block=(256, 1, 1), **held)
    key, actions = found(at(case, 2000))
    assert key == "latency"
    # Four cycles and a bit of latency at four a cycle, over eight resident warps.
    assert "keep 3 warp FMAs of each warp in flight" in actions[0].do
    assert "needs 16.4 warp FMAs in flight on each SM, 8 warps are resident (registers)" in actions[0].why
    assert actions[0].factor == pytest.approx(2)
    assert any("at most 128 registers a thread (now 255)" in action.do for action in actions)
    counters = case.counters | dict.fromkeys(
        ("global_load_requests", "shared_store_requests"), Counter(None, "requests", "sim", reason="copied")
    )
    _, copied = found(at(replace(case, counters=counters), 2000))
    assert not any("registers a thread" in action.do for action in copied)
    assert copied[-1].do.startswith("overlap the work of several tiles")
    spilled = replace(case, resources=Resources(255, 0, 0, 64))
    assert "64 B a thread" in found(at(spilled, 2000))[1][0].why


def test_fewer_loads_are_enough_where_each_is_wider():
    values = {"global_load_requests": 2**20, "global_load_useful_bytes": 2**27, "global_load_sectors": 2**22}
    held = {"occupancy": Occupancy(50, "registers", 8), "resources": Resources(64, 0, 0, 0)}
    key, actions = found(at(counted(values, Transpose(4096, 4096), **held), 2000))
    assert key == "latency"
    (action,) = [one for one in actions if "in flight" in one.do]
    narrow, wide = (int(word) for word in action.do.split() if word.isdecimal() and word != "16")
    assert f"keep {narrow} loads of each thread in flight, or {wide} of 16 bytes" in action.do
    assert narrow > wide


def test_atomics_of_floats_that_meet_in_one_word_are_combined_first():
    case = counted({"global_atomic_requests": 3125, "global_atomic_sectors": 100_000})
    for us, combined in ((3, False), (180, True), (2000, False)):
        modelled = replace(case, model=Model(us, us / 2, 2 * us))
        for held, backend in ((at(case, us), "gpu"), (modelled, "sim")):
            said = [one.why for one in found(held, backend)[1] if one.do.startswith("combine")]
            # At most: it may be more than the time that they were measured or modelled to take.
            assert all(re.fullmatch("3,125 requests .* if all lanes met in one word", why) for why in said)
            assert bool(said) == combined


def test_what_nobody_counted_is_to_be_counted():
    bare = counted({})
    _, (first, *_) = found(at(bare, 1e6))
    assert first.do.startswith("count ")
    assert found(bare, "none")[1] == ()
