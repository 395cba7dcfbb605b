# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The journal of a profiled process, and what Nsight Compute wrote on an H200, damaged copies too."""

import subprocess
import sys

import pytest
from ncu_support import FIXTURES, transpose_cases

from gpuprof.ncu.journal import (
    Job,
    JournalWriter,
    Launched,
    attempts,
    read_job,
    read_journal,
    write_job,
)
from gpuprof.ncu.journal import JournalEvent as Event
from gpuprof.ncu.metrics import CopyMetrics
from gpuprof.ncu.outcome import profile_of
from gpuprof.ncu.read import parse_raw_csv
from gpuprof.ncu.tool import NcuReadError


def test_a_job_survives_its_file(tmp_path):
    cases = tuple(transpose_cases("copy_row", "naive_col"))
    job = Job(1, 7, str(tmp_path / "journal"), cases)
    write_job(job, tmp_path / "job.json")
    assert read_job(tmp_path / "job.json") == job


def test_a_journal_is_read_up_to_the_line_being_written(tmp_path):
    path = tmp_path / "journal"
    assert read_journal(path) == []
    launched = Launched("k", (32, 1, 1), (1, 1, 1), CopyMetrics(("async",), {"global_load_sectors": "why"}))
    events = [Event("opened", pid=5), Event("started", 3), Event("launching", 3, launched=launched)]
    writer = JournalWriter(path)
    for event in events:
        writer.write(event)
    with path.open("a") as file:
        file.write('{"kind": "do')
    assert read_journal(path) == events
    (attempt,) = attempts(events)
    assert (attempt.index, attempt.launched, attempt.done) == (3, launched, False)
    assert attempts([*events, Event("done", 3)])[0].done
    assert attempts([*events, Event("refused", 3, reason="no")]) == []


def test_a_process_that_cannot_open_its_gpu_says_why(tmp_path):
    cases = tuple(transpose_cases("copy_row"))
    write_job(Job(999, 0, str(tmp_path / "journal"), cases), tmp_path / "job.json")
    command = [sys.executable, "-m", "gpuprof.ncu.target", str(tmp_path / "job.json")]
    assert subprocess.run(command, check=False).returncode == 1
    opened, failed = read_journal(tmp_path / "journal")
    assert (opened.kind, failed.kind, failed.index) == ("opened", "failed", None)
    assert failed.reason


WAITS = (
    "import sys, time\n"
    "from gpuprof.ncu.target import end_with\n"
    "end_with(int(sys.argv[1]))\n"
    "print('waiting', flush=True)\n"
    "time.sleep(600)\n"
)


def start(owner):
    return subprocess.Popen(
        [sys.executable, "-c", WAITS, str(owner)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def test_target_ends_with_its_owner():
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    target = start(owner.pid)
    try:
        assert target.stdout.readline() == "waiting\n"
        owner.kill()
        owner.wait()
        assert target.wait(timeout=300) == 1
    finally:
        target.kill()


def test_target_whose_owner_is_gone_does_not_begin():
    owner = subprocess.Popen([sys.executable, "-c", ""])
    owner.wait()
    target = start(owner.pid)
    assert target.stdout.read() == ""
    assert target.wait(timeout=300) == 1


GEMM = (FIXTURES / "recorded_gemm_4096.csv").read_text()
TRANSPOSE = (FIXTURES / "recorded_transpose_2048.csv").read_text()
#: Requests and sectors of loads, then of stores, then both efficiencies in percent.
TILED = (134217728, 536870912, 524288, 2097152, 100, 100)
TRUTH = {
    "naive": (4294967296, 10737418240, 524288, 2097152, 82.5, 100),
    "smem_tiled": TILED,
    "reg_2x1": TILED,
    "copy_row": (131072, 524288, 131072, 524288, 100, 100),
    "copy_col": (131072, 2097152, 131072, 2097152, 25, 25),
    **dict.fromkeys(("naive_row", "diagonal_row", "unroll4_row"), (131072, 524288, 131072, 2097152, 100, 25)),
    **dict.fromkeys(("naive_col", "diagonal_col", "unroll4_col"), (131072, 2097152, 131072, 524288, 25, 100)),
}
NAMES = [
    *(f"global_{kind}_{event}" for kind in ("load", "store") for event in ("requests", "sectors")),
    *("global_load_efficiency_pct", "global_store_efficiency_pct"),
]


def profiles(text):
    return {launch.kernel: profile_of(launch, CopyMetrics()) for launch in parse_raw_csv(text)}


def test_every_launch_counts_the_ground_truth():
    found = {**profiles(GEMM), **profiles(TRANSPOSE)}
    assert found.keys() == TRUTH.keys()
    for kernel, profile in found.items():
        assert tuple(profile.counters[name].value for name in NAMES) == TRUTH[kernel], kernel


def test_gemms_count_their_multiply_adds_and_are_as_resident_as_measured():
    found = profiles(GEMM)
    for kernel in ("naive", "smem_tiled", "reg_2x1"):
        assert found[kernel].counters["ffma_thread_instructions"].value == 4096**3
        assert 98 < found[kernel].counters["achieved_occupancy_pct"].value <= 100
    wavefronts = {
        kernel: found[kernel].counters["shared_load_wavefronts"].value for kernel in ("smem_tiled", "reg_2x1")
    }
    assert wavefronts["smem_tiled"] == pytest.approx(4294967296, rel=5e-4)
    assert wavefronts["reg_2x1"] == pytest.approx(2147483648, rel=5e-4)


@pytest.mark.parametrize("length", [0.3, 0.6, 0.9])
def test_truncated_table_is_refused_or_keeps_only_whole_launches(length):
    text = GEMM[: int(len(GEMM) * length)]
    try:
        found = profiles(text)
    except NcuReadError:
        return
    for kernel, profile in found.items():
        assert tuple(profile.counters[name].value for name in NAMES) == TRUTH[kernel]
