# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rounds: every case again in a process of its own, and two versions in turns."""

import os

import compared_runs  # noqa: F401 - makes the helpers of the unit tests importable
import fake_worker
import pytest
from unit_support import write_transpose_kernel

from gpuprof.commands.texts import build_request
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure.options import RunOptions
from gpuprof.measure.run import measure, measure_in_turns
from gpuprof.reading import read_run
from gpuprof.store import ResultsFile

pytestmark = pytest.mark.deep


class Watcher:
    """Remembers what began, and how many cases were announced."""

    def __init__(self, on_finished=lambda done: None):
        self.started_cases = []
        self.announced = 0
        self.done = 0
        self._on_finished = on_finished

    def opened(self, opened, cases):
        self.announced += cases

    def started(self, case):
        self.started_cases.append(case.name)

    def finished(self, measurement):
        self.done += 1
        self._on_finished(self.done)


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """The fake worker, and the processes that have started so far."""
    fake_worker.take_the_workers_place(monkeypatch.setattr)
    log = tmp_path / "workers.log"
    monkeypatch.setenv("FAKE_WORKER_LOG", str(log))
    monkeypatch.setenv("FAKE_WORKER_STARTS", "99")
    return lambda: log.read_text().split()


@pytest.fixture
def request_for(tmp_path):
    """A request for kernels that do as their names say."""

    def make(*names):
        paths = [str(write_transpose_kernel(tmp_path, name, rung)) for rung, name in enumerate(names)]
        return build_request(shipped_ladder("transpose"), paths, False, "64", None, "f32")

    return make


def options(rounds):
    return RunOptions(
        device="0", timeout_s=30.0, seconds_per_case=0.1, explain=False, lines=False, rounds=rounds
    )


def cold_rounds(run):
    return [len(case.timing.cold.rounds_us) if case.timing else 0 for case in run.cases]


def test_every_round_is_a_process_of_its_own(workers, request_for, tmp_path):
    watcher, path = Watcher(), tmp_path / "results.json"
    run = measure(
        request_for("k0_a", "k1_b"),
        options(3),
        watcher,
        keep=lambda run: ResultsFile(path, run, replace=True),
    )
    assert cold_rounds(run) == [3, 3]
    assert len(set(workers())) == 3
    assert os.getpid() not in map(int, workers())
    # Cases take turns, and every other round runs backwards.
    assert watcher.started_cases == ["k0_a", "k1_b", "k1_b", "k0_a", "k0_a", "k1_b"]
    assert (watcher.announced, watcher.done) == (6, 6)
    assert read_run(path) == run
    assert run.cases[0].timing.cold.rounds_us == ((10.0,) * 8,) * 3


def test_one_round_is_the_rule(workers, request_for):
    assert cold_rounds(measure(request_for("k0_a"), options(1), Watcher())) == [1]
    assert len(workers()) == 1


def test_what_went_wrong_is_not_tried_again(workers, request_for):
    watcher = Watcher()
    run = measure(request_for("k0_wrong", "k1_crashes", "k2_a"), options(2), watcher)
    assert [case.outcome for case in run.cases] == ["incorrect", "failed", "ok"]
    assert cold_rounds(run) == [0, 0, 2]
    assert watcher.started_cases[-1] == "k2_a"
    assert watcher.started_cases.count("k0_wrong") == 1


def test_ctrl_c_keeps_the_rounds_until_then(workers, request_for, tmp_path):
    def interrupt(done):
        if done == 4:
            raise KeyboardInterrupt

    path = tmp_path / "results.json"
    run = measure(
        request_for("k0_a", "k1_b"),
        options(5),
        Watcher(interrupt),
        keep=lambda run: ResultsFile(path, run, replace=True),
    )
    assert not run.complete
    assert read_run(path) == run
    assert sorted(cold_rounds(run)) in ([1, 2], [2, 2])


def test_two_versions_take_turns(workers, request_for):
    turns = []
    base, new = measure_in_turns(
        (request_for("k0_a"), request_for("k0_b", "k1_c")),
        options(4),
        Watcher(),
        on_turn=lambda version, number: turns.append((number, version)),
    )
    assert turns == [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1), (3, 1), (3, 0)]
    assert cold_rounds(base) == [4]
    assert cold_rounds(new) == [4, 4]
    assert len(set(workers())) == 8
    assert base.complete
    assert new.complete


def test_an_interrupted_comparison_keeps_both_versions(workers, request_for):
    def interrupt(done):
        if done == 3:
            raise KeyboardInterrupt

    base, new = measure_in_turns((request_for("k0_a"), request_for("k0_b")), options(4), Watcher(interrupt))
    assert not base.complete
    assert not new.complete
    assert cold_rounds(base) + cold_rounds(new) in ([1, 1], [1, 2])
