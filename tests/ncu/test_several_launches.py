# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cases that take several launches under Nsight Compute: one profile of each, and all of them together."""

from pathlib import Path

import pytest
from ncu_support import table
from test_merge import case, run_of

from gpuprof.counters import COUNTERS, OF_NCU
from gpuprof.errors import InputError
from gpuprof.ncu.collecting import settle
from gpuprof.ncu.importing import match_launches
from gpuprof.ncu.invocation import Ended
from gpuprof.ncu.journal import JournalEvent as Event
from gpuprof.ncu.journal import Launched, attempts
from gpuprof.ncu.metrics import CopyMetrics
from gpuprof.ncu.outcome import combined, profile_of, without_profile
from gpuprof.ncu.read import parse_raw_csv
from gpuprof.records import replace
from gpuprof.results import LaunchRecord, Resources

LARGE, SMALL = ("sums", (128, 1, 1), (256, 1, 1)), ("total", (128, 1, 1), (1, 1, 1))


def launches_of(*made, **cells):
    """Profiled launches as a report holds them; `cells` replaces values, one for each launch, by counter."""
    read = []
    for number, (entry, block, grid) in enumerate(made):
        values = {COUNTERS[name].metrics[0]: held[number] for name, held in cells.items()}
        row = {"kernel": entry, "block": str(block), "grid": str(grid)}
        read += parse_raw_csv(table([row], values))
    return read


def profiles_of(*made, **cells):
    return [profile_of(launch, CopyMetrics()) for launch in launches_of(*made, **cells)]


def test_an_efficiency_is_that_of_all_sectors_and_a_rate_that_of_all_the_time():
    made = profiles_of(
        LARGE,
        SMALL,
        global_load_sectors=("300", "100"),
        global_load_efficiency_pct=("100", "20"),
        ncu_duration_us=("9000", "1000"),
        dram_throughput_gbps=("2000000000000", "1000000000000"),
        sol_dram_pct=("50", "10"),
        warp_instructions=("100", "300"),
        stall_barrier=("1", "5"),
    )
    counters = combined(made, 0).counters
    assert counters["global_load_efficiency_pct"].value == pytest.approx(80)
    assert counters["dram_throughput_gbps"].value == pytest.approx(1900)
    assert counters["sol_dram_pct"].value == pytest.approx(46)
    assert counters["stall_barrier"].value == pytest.approx(4)


def test_a_launch_without_stores_takes_no_part_in_their_efficiency():
    made = profiles_of(
        LARGE, SMALL, global_store_sectors=("0", "10"), global_store_efficiency_pct=("n/a", "50")
    )
    assert combined(made, 0).counters["global_store_efficiency_pct"].value == 50
    none = profiles_of(LARGE, SMALL, global_store_sectors=("0", "0"), global_store_efficiency_pct=("0", "0"))
    counter = combined(none, 0).counters["global_store_efficiency_pct"]
    assert (counter.value, counter.reason) == (None, "there were no global store sectors")


def test_a_count_that_one_launch_lacks_is_not_measured():
    made = profiles_of(LARGE, SMALL, dram_read_bytes=("4096", "n/a"))
    counter = combined(made, 0).counters["dram_read_bytes"]
    assert counter.value is None
    assert "did not collect" in counter.reason


def test_a_launch_without_a_profile_leaves_none_of_the_case():
    (first,) = profiles_of(LARGE)
    assert combined([first, without_profile("it broke")], 0).reason == "it broke"


def test_every_counter_has_a_rule():
    rules = {row.over_launches for row in OF_NCU}
    assert rules - COUNTERS.keys() == {"sum", "largest", "none"}
    # What a mean is weighted by is itself added up.
    assert all(COUNTERS[name].over_launches == "sum" for name in rules & COUNTERS.keys())


def launched(made):
    return Launched(*made, CopyMetrics(), launches=2)


def journal(index, *ends):
    """A case's events: each of its launches, and how it ended."""
    events = [Event("started", index)]
    for made, end in zip((LARGE, SMALL), ends, strict=False):
        events.append(Event("launching", index, launched=launched(made)))
        if end:
            events.append(Event(end, index, reason=None if end == "done" else "no."))
    return events


def settled(events, *made):
    return settle(Ended(events, "", 0, timed_out=False), launches_of(*made))


def test_each_launch_of_a_case_is_an_attempt_of_its_own():
    made = attempts(journal(3, "done", None))
    assert [(attempt.index, attempt.launched.entry, attempt.done) for attempt in made] == [
        (3, "sums", True),
        (3, "total", False),
    ]
    assert [attempt.launched.entry for attempt in attempts(journal(3, "done", "refused"))] == ["sums"]


def test_profiles_of_several_cases_are_told_apart():
    events = [*journal(1, "done", "done"), *journal(2, "done", "done")]
    profiles = settled(events, LARGE, SMALL, LARGE, SMALL)
    assert profiles.keys() == {1, 2}
    assert all(profile.reason is None for profile in profiles.values())
    one = profile_of(launches_of(LARGE)[0], CopyMetrics()).counters["global_load_sectors"].value
    assert profiles[1].counters["global_load_sectors"].value == 2 * one


@pytest.mark.parametrize(
    ("end", "made", "words"),
    [
        ("refused", (LARGE,), "no."),
        (None, (LARGE,), "ended under Nsight Compute's replay"),
        ("done", (LARGE, LARGE), "the profile in its place is of sums"),
    ],
)
def test_a_case_whose_second_launch_fails_has_no_profile(end, made, words):
    profiles = settled(journal(1, "done", end), *made)
    assert words in profiles[1].reason


def test_a_report_made_by_hand_gives_a_case_all_of_its_launches():
    records = tuple(LaunchRecord(*made, Resources(16, 0, 0, 0)) for made in (LARGE, SMALL))
    one = replace(case("naive", LARGE[2]), block=LARGE[1], launches=records)
    run = run_of(one)
    outcome, unmatched = match_launches(
        run, launches_of(SMALL, LARGE, registers_per_thread=("16", "16")), Path("r")
    )
    assert outcome.profiles[0].counters["barriers"].value == 400
    assert unmatched == ()
    half = (*launches_of(LARGE, registers_per_thread=("16",)), *launches_of(("other", *LARGE[1:])))
    with pytest.raises(InputError, match="No launch in r belongs to a case"):
        match_launches(run, half, Path("r"))
