# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs killed at random moments lose no row, leave nobody behind, and go on without repeating any.

`benchmarks/survival.py` does it; here a few moments are drawn of each kind, or GPUPROF_KILLS many.
"""

import os
import random
import resource
import sys
from pathlib import Path

import fake_worker
import pytest
from unit_support import write_transpose_kernel

from gpuprof.reading import read_run

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import survival  # isort: skip - found on the path that was just extended
from processes import ran

pytestmark = pytest.mark.deep

KILLS = int(os.environ.get("GPUPROF_KILLS", "1"))


#: The signals that ask a run to end differ in their status alone, which tests of signals see.
@pytest.mark.parametrize(
    "kind",
    [
        *("SIGTERM", "SIGKILL", "SIGKILL of a worker"),
        *("a removed folder", "a damaged cache", "a second run in the folder"),
    ],
)
def test_killed_run_loses_nothing_and_goes_on(tmp_path, kind):
    for number in range(KILLS):
        moment = survival.Moment.drawn(random.Random(f"{kind} {number}"), 1.0)
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome = survival.kill(kind, moment, folder, go_on=number < 5)
        assert outcome.is_clean, outcome


def run_in(folder, *arguments, prepare=None):
    """A run of fake kernels, which needs no device and takes no time."""
    names = ("k0_good", "k1_good", "k2_good")
    paths = [str(write_transpose_kernel(folder, name, rung)) for rung, name in enumerate(names)]
    named = [argument for path in paths for argument in ("--kernel", path)]
    return ran(
        [
            sys.executable,
            fake_worker.__file__,
            "transpose",
            "--sizes",
            "64",
            "--no-lines",
            *named,
            *arguments,
        ],
        cwd=folder,
        preexec_fn=prepare,
    )


def test_no_room_costs_the_last_row_only_and_says_where_the_others_are(tmp_path):
    begun = run_in(tmp_path, "-o", "probe")
    assert begun.returncode == 0
    probe = tmp_path / "probe" / "results.json"
    *others, last = [case.kernel for case in read_run(probe).cases]
    whole = probe.stat().st_size
    room = whole - 1500  # the last row does not fit
    done = run_in(
        tmp_path, *("-o", "out"), prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    )
    results = tmp_path / "out" / "results.json"
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "Cannot write out/results.json: File too large." in done.stderr
    assert "continue with --resume out" in done.stderr
    assert last in done.stdout  # what could not be written is shown at least
    assert [case.kernel for case in read_run(results).cases] == others
    resumed = run_in(tmp_path, "--resume", "out")
    assert resumed.returncode == 0
    assert f"holds {len(others)} cases: they are not measured again." in resumed.stderr
    run = read_run(results)
    assert (run.complete, len(run.cases)) == (True, len(others) + 1)
    finished = run_in(tmp_path, "--resume", "out")
    assert finished.returncode == 0
    assert "holds the whole run: nothing is left to measure." in finished.stderr
    assert read_run(results) == run


def test_place_of_a_stopped_run_is_not_taken_without_leave(tmp_path):
    run_in(tmp_path, "-o", "out")
    results = tmp_path / "out" / "results.json"
    results.write_text(results.read_text().replace('"complete": true', '"complete": false'))
    done = run_in(tmp_path, "-o", "out")
    assert done.returncode == 2
    assert f"holds {len(read_run(results).cases)} cases of a run that was stopped" in done.stderr
    assert "--resume out" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--resume", "nowhere"), "There is no run to resume: nowhere does not exist."),
        (("--resume", "out", "-o", "other"), "--resume names the run, and where its files are"),
        (("--resume", "out", "--force"), "--resume names the run, and where its files are"),
    ],
)
def test_resume_that_makes_no_sense_is_refused(refused, arguments, words):
    assert words in refused("transpose", *arguments)
