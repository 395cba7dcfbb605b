# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The journal, and the profiled process: what it does without a GPU, and that it ends with its run."""

import subprocess
import sys

from ncu_support import transpose_cases

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
