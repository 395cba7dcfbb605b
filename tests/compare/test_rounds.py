# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rounds: every case again in a process of its own, and two versions in turns."""

import os

import compared_runs  # noqa: F401 - makes the helpers of the unit tests importable
import fake_worker
import pytest
from fake_runs import Watcher, keeper, options, request_of

from gpuprof.measure.run import measure, measure_in_turns
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """The fake worker, and the processes that have started so far."""
    fake_worker.take_the_workers_place(monkeypatch.setattr, fork=True)
    log = tmp_path / "workers.log"
    monkeypatch.setenv("FAKE_WORKER_LOG", str(log))
    monkeypatch.setenv("FAKE_WORKER_STARTS", "99")
    return lambda: log.read_text().split()


@pytest.fixture
def request_for(tmp_path):
    """A request for kernels that do as their names say."""
    return lambda *names: request_of(tmp_path, names)


def cold_rounds(run):
    return [len(case.timing.cold.rounds_us) if case.timing else 0 for case in run.cases]


def test_every_round_is_a_process_of_its_own(workers, request_for, tmp_path):
    watcher, path = Watcher(), tmp_path / "results.json"
    run = measure(request_for("k0_a", "k1_b"), options(rounds=3), watcher, keep=keeper(path))
    assert cold_rounds(run) == [3, 3]
    assert len(set(workers())) == 3
    assert os.getpid() not in map(int, workers())
    # Cases take turns, and every other round runs backwards.
    assert [name for _, name in watcher.started_cases] == ["k0_a", "k1_b", "k1_b", "k0_a", "k0_a", "k1_b"]
    assert (watcher.announced, len(watcher.names)) == (6, 6)
    assert read_run(path) == run
    assert run.cases[0].timing.cold.rounds_us == ((10.0,) * 8,) * 3


def test_one_round_is_the_rule(workers, request_for):
    assert cold_rounds(measure(request_for("k0_a"), options(rounds=1), Watcher())) == [1]
    assert len(workers()) == 1


def test_what_went_wrong_is_not_tried_again(workers, request_for):
    watcher = Watcher()
    run = measure(request_for("k0_wrong", "k1_crashes", "k2_a"), options(rounds=2), watcher)
    assert [case.outcome for case in run.cases] == ["incorrect", "failed", "ok"]
    assert cold_rounds(run) == [0, 0, 2]
    assert watcher.started_cases[-1] == (0, "k2_a")
    assert watcher.started_cases.count((0, "k0_wrong")) == 1


def test_ctrl_c_keeps_the_rounds_until_then(workers, request_for, tmp_path):
    def interrupt(done):
        if done == 4:
            raise KeyboardInterrupt

    path = tmp_path / "results.json"
    run = measure(request_for("k0_a", "k1_b"), options(rounds=5), Watcher(interrupt), keep=keeper(path))
    assert not run.complete
    assert read_run(path) == run
    assert sorted(cold_rounds(run)) in ([1, 2], [2, 2])


def test_two_versions_take_turns(workers, request_for):
    watcher = Watcher()
    base, new = measure_in_turns(
        (request_for("k0_a"), request_for("k0_b", "k1_c")),
        options(rounds=2),
        watcher,
    )
    assert [name for _, name in watcher.started_cases] == ["k0_a", "k0_b", "k1_c", "k1_c", "k0_b", "k0_a"]
    assert cold_rounds(base) == [2]
    assert cold_rounds(new) == [2, 2]
    assert len(set(workers())) == 4
    assert base.complete
    assert new.complete


def test_an_interrupted_comparison_keeps_both_versions(workers, request_for):
    def interrupt(done):
        if done == 3:
            raise KeyboardInterrupt

    base, new = measure_in_turns(
        (request_for("k0_a"), request_for("k0_b")), options(rounds=4), Watcher(interrupt)
    )
    assert not base.complete
    assert not new.complete
    assert cold_rounds(base) + cold_rounds(new) in ([1, 1], [1, 2])
