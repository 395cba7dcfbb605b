# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Profiling with a stand-in for ncu: what is kept, what is said, and that no case is lost."""

import subprocess
import sys
import time

import pytest
from hurried_clock import HurriedClock
from ncu_support import FIXTURES, install, transpose_cases
from problem_support import find_kernel, problem_for, shipped_kernels

from gpuprof import signals
from gpuprof.counters import OPCODES
from gpuprof.measure.case import Case
from gpuprof.ncu import collecting as module
from gpuprof.ncu import invocation
from gpuprof.ncu.collecting import Collector
from gpuprof.ncu.invocation import Ended, NcuOptions, ncu_command
from gpuprof.ncu.journal import JournalEvent as Event
from gpuprof.ncu.tool import Ncu, NcuError, diagnose, find_ncu, run_to_end

pytestmark = pytest.mark.deep

NAMES = ("copy_row", "copy_col", "naive_row")


def profile(tmp_path, plan, *, timeout_s=300.0, names=NAMES):
    cases = transpose_cases(*names)
    seen = []
    outcome = Collector(
        cases=dict(cases),
        device_ordinal=0,
        seed=0,
        options=NcuOptions(path=install(tmp_path / "bin", plan), timeout_s=timeout_s),
        report_path=tmp_path / "out" / "run.ncu-rep",
        progress=seen.append,
    ).collect()
    assert sorted(outcome.profiles) == [index for index, _ in cases]
    return outcome, [case.name for case in seen]


SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def test_program_that_does_not_end_is_killed():
    begin = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired, match=r"timed out after 0\.5 seconds"):
        run_to_end(SLEEP, 0.5)
    assert time.monotonic() - begin < 300


@pytest.mark.parametrize(
    ("after_s", "act"),
    [
        (0.3, lambda _: run_to_end(SLEEP, 600.0)),
        (2, lambda tmp_path: profile(tmp_path, "hangs:10", timeout_s=600.0)),
    ],
    ids=["a program", "profiling"],
)
def test_what_runs_is_killed_when_the_command_is_asked_to_end(tmp_path, monkeypatch, after_s, act):
    begin = time.monotonic()

    def check():
        if time.monotonic() - begin > after_s:
            raise KeyboardInterrupt

    monkeypatch.setattr(signals, "check", check)
    with pytest.raises(KeyboardInterrupt):
        act(tmp_path)
    assert time.monotonic() - begin < 300


def requests(outcome):
    found = [outcome.profiles[i].counters.get("global_load_requests") for i in sorted(outcome.profiles)]
    return [counter and counter.value for counter in found]


def test_every_case_is_profiled_in_one_process(tmp_path):
    outcome, seen = profile(tmp_path, "")
    assert requests(outcome) == [1000, 1001, 1002]
    assert seen == list(NAMES)
    assert outcome.version == "2025.3.1.0"
    assert outcome.reports == (tmp_path / "out" / "run.ncu-rep",)
    assert outcome.problem is None
    assert outcome.profiles[10].counters["barriers"].value == 200


@pytest.mark.parametrize(
    ("plan", "counted", "index", "reason"),
    [
        ("dies:11", [1000, None, 1000], 11, "LaunchFailed"),
        ("refuses:10", [None, 1000, 1001], 10, "refused."),
        ("wrong", [None, None, None], 10, "of other with 16x16 threads"),
    ],
)
def test_what_goes_wrong_with_a_case_costs_only_itself_and_is_its_reason(
    tmp_path, plan, counted, index, reason
):
    outcome, _ = profile(tmp_path, plan)
    assert requests(outcome) == counted
    assert reason in outcome.profiles[index].reason
    assert outcome.problem is None


def test_a_kernel_that_hangs_under_replay_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(invocation, "time", HurriedClock(tmp_path / "bin" / "hangs"))
    outcome, _ = profile(tmp_path, "hangs:10", timeout_s=300.0)
    assert [value is None for value in requests(outcome)] == [True, False, False]
    assert "did not end" in outcome.profiles[10].reason


def test_a_lost_profile_in_the_middle_is_not_guessed_over(tmp_path):
    outcome, seen = profile(tmp_path, "gap")
    assert requests(outcome) == [1000, 1000, 1000]
    assert seen == [*NAMES, *NAMES]


@pytest.mark.parametrize(
    ("fixture", "words"),
    [
        (
            "permission",
            ("ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0", "SYS_ADMIN", "--cap-add"),
        ),
        ("dcgm", ("DCGM", "dcgmi profile --pause")),
        ("unknown_gpu", ("does not know this GPU", "newer Nsight Compute")),
        ("old_driver", ("driver is too old", "Update the driver")),
        ("no_library", ("counter library", "NVIDIA_DRIVER_CAPABILITIES")),
        ("lock_file", ("lock file", "TMPDIR")),
        ("clocks", ("lock the GPU's clocks", "--ncu-clocks none")),
    ],
)
def test_each_failure_has_its_own_words_and_fix(fixture, words):
    said = str(diagnose((FIXTURES / f"synthetic_error_{fixture}.txt").read_text()))
    for word in words:
        assert word in said


def test_a_failure_is_the_reason_of_every_case(tmp_path):
    outcome, _ = profile(tmp_path, "says:synthetic_error_unforeseen.txt")
    assert "never-heard-of" in str(outcome.problem)
    assert {case.reason for case in outcome.profiles.values()} == {str(outcome.problem)}
    assert requests(outcome) == [None, None, None]


def test_a_missing_ncu_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GPUPROF_NCU", raising=False)
    with pytest.raises(NcuError, match=r"is not a program.*Install it"):
        find_ncu("no-such-ncu")


def test_an_old_ncu_is_refused(tmp_path):
    outcome, _ = profile(tmp_path, "version:2019.5.0")
    assert "2019.5 is too old" in str(outcome.problem)


def test_five_processes_in_a_row_without_a_profile_end_the_attempt(tmp_path, monkeypatch):
    """Each dies in a case, before it has made one launch; with one more case it would be a case's fault."""
    started = []

    def run(ncu, options, report, job, on_start):
        index, _ = job("journal").cases[0]
        started.append(index)
        return Ended([Event("opened", pid=1), Event("started", index)], "==ERROR== strange", 1, False)

    monkeypatch.setattr(module, "run_ncu", run)
    names = ("copy_row", "copy_col", "naive_row", "naive_col", "unroll4_row", "unroll4_col")
    outcome, _ = profile(tmp_path, "", names=names[:4])
    assert outcome.problem is None
    assert started == [10, 11, 12, 13]
    started.clear()
    outcome, _ = profile(tmp_path / "more", "", names=names)
    assert started == [10, 11, 12, 13, 14]
    assert "Nsight Compute failed 5 times in a row: strange" in str(outcome.problem)
    assert outcome.profiles[15].reason == str(outcome.problem)
    assert "failed 5 times" not in outcome.profiles[10].reason


@pytest.mark.parametrize(
    ("name", "counted"), [("reg_8x8", True), ("splitk_16x32", False), ("by_size", False)]
)
def test_opcodes_are_not_counted_beside_asynchronous_copies(tmp_path, monkeypatch, name, counted):
    asked = []

    def run(ncu, options, report, job, on_start):
        asked.append(options)
        return Ended([], "stopped", 1, False)

    monkeypatch.setattr(module, "run_ncu", run)
    kernel = find_kernel("gemm", name)
    ladder = tuple(each for each in shipped_kernels() if each.operation == "gemm")
    case = Case.of(kernel, problem_for(kernel, 64, 64, 64), alternatives=ladder if kernel.choices else ())
    Collector(
        cases={0: case},
        device_ordinal=0,
        seed=0,
        options=NcuOptions(path=install(tmp_path / "bin", "")),
        report_path=tmp_path / "run.ncu-rep",
        progress=lambda _: None,
    ).collect()
    assert {options.opcodes for options in asked} == {counted}
    command = ncu_command(Ncu("ncu"), asked[0], tmp_path / "r.ncu-rep", tmp_path / "job")
    assert (OPCODES in command[command.index("--metrics") + 1]) is counted


def test_clocks_are_left_alone_unless_asked(tmp_path):
    command = ncu_command(Ncu("ncu"), NcuOptions(), tmp_path / "r.ncu-rep", tmp_path / "job")
    assert command[command.index("--clock-control") + 1] == "none"
    assert command[command.index("--profile-from-start") + 1] == "off"
    assert "--set" not in command
    full = NcuOptions(metric_set="full", clock_control="base")
    command = ncu_command(Ncu("ncu"), full, tmp_path / "r.ncu-rep", tmp_path / "job")
    assert command[command.index("--set") + 1] == "full"
    assert command[command.index("--clock-control") + 1] == "base"
