# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run that was stopped goes on: nothing is measured twice, nothing is lost, and it is the same run."""

import os
import signal

import fake_worker
import pytest
from fake_runs import Watcher, keeper, options, request_of
from unit_support import build_request

from gpuprof.backends.base import NOT_COUNTED
from gpuprof.errors import InputError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure import process
from gpuprof.measure import run as run_module
from gpuprof.measure.counting import is_uncounted
from gpuprof.measure.resume import check_same_request, continued
from gpuprof.measure.run import measure
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import CASES_END, dumps
from gpuprof.store import ResultsFile

pytestmark = pytest.mark.deep

OPTIONS = options()


def stopped(after):
    """Watches a run, and interrupts it after so many cases."""

    def stop(done):
        if done == after:
            raise KeyboardInterrupt

    return Watcher(stop)


class Runs:
    """Runs of one request in one file."""

    def __init__(self, folder):
        self.path = folder / "results.json"
        self._folder = folder

    def request(self, names, sizes="64"):
        return request_of(self._folder, names, sizes)

    def begin(self, request, stop_after, options=OPTIONS):
        watcher = stopped(stop_after)
        return measure(request, options, watcher, argv=("run", "x.cu"), keep=keeper(self.path)), watcher

    def go_on(self, request, options=OPTIONS, stop_after=None):
        watcher = stopped(stop_after)

        def keep(run):
            return ResultsFile.resumed(self.path, lambda: continued(read_run(self.path), run, self.path))

        return measure(request, options, watcher, keep=keep), watcher


@pytest.fixture
def runs(tmp_path, monkeypatch):
    fake_worker.take_the_workers_place(monkeypatch.setattr, fork=True)
    return Runs(tmp_path)


def test_run_goes_on_where_it_was_stopped(runs):
    request = runs.request(["a_good", "b_wrong", "c_good", "d_good"])
    first, _ = runs.begin(request, stop_after=2)
    assert (first.complete, len(first.cases)) == (False, 2)
    whole, watcher = runs.go_on(request)
    assert watcher.names == ["c_good", "d_good"]
    assert watcher.announced == 2
    assert whole.complete
    assert whole.cases[:2] == first.cases
    assert [case.outcome for case in whole.cases] == ["ok", "incorrect", "ok", "ok"]
    assert (whole.argv, whole.created_utc) == (first.argv, first.created_utc)
    assert len(whole.resumed_utc) == 1
    assert read_run(runs.path) == whole


def test_run_may_be_stopped_and_go_on_as_often_as_one_likes(runs):
    request = runs.request(["a_good", "b_good", "c_good"])
    runs.begin(request, stop_after=1)
    second, _ = runs.go_on(request, stop_after=1)
    assert [case.kernel for case in second.cases] == ["a_good", "b_good"]
    whole, watcher = runs.go_on(request)
    assert watcher.names == ["c_good"]
    assert whole.complete
    assert len(whole.resumed_utc) == 2


def test_file_that_was_cut_within_a_row_goes_on_with_the_rows_before(runs):
    request = runs.request(["a_good", "b_good"])
    runs.begin(request, stop_after=2)
    content = runs.path.read_bytes()
    runs.path.write_bytes(content[: len(content) - len(CASES_END) - 40])
    whole, watcher = runs.go_on(request)
    assert watcher.names == ["b_good"]
    assert len(whole.cases) == 2


def test_what_nothing_is_known_of_is_measured_again_and_what_failed_is_not(runs):
    request = runs.request(["a_crashes", "b_good", "c_good"])
    first, _ = runs.begin(request, stop_after=2)
    taken = replace(first.cases[1], outcome="failed", lost=True)
    runs.path.write_text(dumps(replace(first, cases=(first.cases[0], taken))))
    whole, watcher = runs.go_on(request)
    assert watcher.names == ["b_good", "c_good"]
    assert [case.outcome for case in whole.cases] == ["failed", "ok", "ok"]
    assert not any(case.lost for case in whole.cases)


def test_rounds_go_on_too(runs):
    request = runs.request(["a_good", "b_good"])
    rounds = replace(OPTIONS, rounds=3)
    run, _ = runs.begin(request, 1, rounds)
    for more, done in ((4, 1), (None, 5)):
        assert sum(len(case.timing.cold.rounds_us) for case in run.cases) == done
        run, watcher = runs.go_on(request, rounds, more)
        assert watcher.announced == 6 - done
    assert [len(case.timing.cold.rounds_us) for case in run.cases] == [3, 3]
    assert run.complete


def test_each_round_is_on_disk_at_once(runs):
    """A kill that nothing can prepare for: the file, as it was at that moment, holds every round so far."""
    seen = []

    class Reader(Watcher):
        def finished(self, measurement):
            super().finished(measurement)
            cases = read_run(runs.path).cases
            seen.append(sum(len(case.timing.cold.rounds_us) for case in cases))

    request = runs.request(["a_good", "b_good"])
    measure(request, replace(OPTIONS, rounds=3), Reader(), keep=keeper(runs.path))
    assert seen == [1, 2, 3, 4, 5, 6]


def test_request_that_differs_is_refused_and_the_file_stays_as_it_was(runs):
    request = runs.request(["a_good", "b_good"])
    runs.begin(request, stop_after=1)
    before = runs.path.read_bytes()
    others = [
        (runs.request(["a_good", "b_good"], sizes="64,128"), OPTIONS, "--sizes was 64, now it is 64,128"),
        (runs.request(["a_good"]), OPTIONS, "--kernel was a_good b_good, now it is a_good"),
        (request, replace(OPTIONS, seed=7), "--seed was 0, now it is 7"),
        (request, replace(OPTIONS, rounds=2), "--rounds was 1, now it is 2"),
        (request, replace(OPTIONS, seconds_per_case=0.5), "--seconds was 0.1, now it is 0.5"),
        (request, replace(OPTIONS, flush="write"), "--flush was read, now it is write"),
        (request, replace(OPTIONS, sim_blocks=0), "--sim-blocks was not given, now it is all"),
        (request, replace(OPTIONS, poison_inout=False), "--poison-inout was true, now it is false"),
        (
            build_request(shipped_ladder("gemm"), ["naive"], False, "64", None, "f32"),
            OPTIONS,
            "it measures transpose, not gemm",
        ),
    ]
    for other, how, words in others:
        with pytest.raises(InputError) as caught:
            runs.go_on(other, how)
        assert words in caught.value.what
        assert caught.value.fix.startswith("It was begun with: gpuprof run x.cu\n")
    assert runs.path.read_bytes() == before


def test_source_that_changed_is_named(runs):
    request = runs.request(["a_good", "b_good"])
    runs.begin(request, stop_after=1)
    path = runs.path.parent / "b_good.cu"
    text = path.read_text()
    (selection, other) = request.selections
    kernel = replace(other.kernel, source=f"{text}// faster now\n")
    changed = replace(request, selections=(selection, replace(other, kernel=kernel)))
    with pytest.raises(InputError, match="the source of b_good has changed"):
        runs.go_on(changed)
    with pytest.raises(InputError, match="the source of b_good has changed"):
        check_same_request(read_run(runs.path), changed, OPTIONS, runs.path)


CHANGES = {
    "gpuprof 0.0.1 wrote it, this is": lambda run: {"tool": replace(run.tool, version="0.0.1")},
    "nvrtc was 11.0, now it is": lambda run: {"environment": {**run.environment, "nvrtc": "11.0"}},
    "cublas was 9, now it is not given": lambda run: {"environment": {**run.environment, "cublas": "9"}},
    "the device was Other, now it is": lambda run: {"devices": (replace(run.device, name="Other"),)},
    "differs in sm_count": lambda run: {"devices": (replace(run.device, sm_count=7),)},
    "it ran on 2 devices, now there are 1": lambda run: {"devices": run.devices * 2},
    "it ran on sim, now it would on gpu": lambda run: {"backend": "sim"},
    "it does not say what was asked for": lambda run: {"asked": {}},
}


def test_surroundings_that_differ_are_named(runs):
    request = runs.request(["a_good", "b_good"])
    first, _ = runs.begin(request, stop_after=1)
    for words, change in CHANGES.items():
        runs.path.write_text(dumps(replace(first, **change(first))))
        with pytest.raises(InputError) as caught:
            runs.go_on(request)
        assert words in caught.value.what


def test_what_is_measured_at_opening_may_differ(runs):
    request = runs.request(["a_good", "b_good"])
    first, _ = runs.begin(request, stop_after=1)
    device = replace(first.device, measured_copy_bandwidth_gbps=123.0, measured_rates={"x_gbps": 1.0})
    runs.path.write_text(dumps(replace(first, devices=(device,))))
    whole, _ = runs.go_on(request)
    assert whole.device == device


def test_rows_of_another_plan_are_refused(runs):
    request = runs.request(["a_good", "b_good"])
    first, _ = runs.begin(request, stop_after=1)
    runs.path.write_text(dumps(replace(first, cases=(replace(first.cases[0], planned=1),))))
    with pytest.raises(InputError, match="holds a_good at size 64 where another case is planned"):
        runs.go_on(request)


def test_case_whose_process_is_taken_is_tried_again_and_then_told_from_one_that_fails(runs, monkeypatch):
    request = runs.request(["a_good", "b_hangs"])
    real, killed = process.WorkerProcess.tell, []

    def tell(worker, message):
        real(worker, message)
        if type(message).__name__ == "Measure" and message.case.name == "b_hangs":
            killed.append(worker._process.pid)
            os.kill(worker._process.pid, signal.SIGKILL)

    monkeypatch.setattr(process.WorkerProcess, "tell", tell)
    run, _ = runs.begin(request, stop_after=None)
    assert [(case.outcome, case.lost) for case in run.cases] == [("ok", False), ("failed", True)]
    assert "the worker process was killed by SIGKILL" in run.cases[1].reason
    assert len(killed) == 4  # once after another case, three times alone


def test_counts_that_are_missing_are_made_up_for_without_measuring(runs):
    request = runs.request(["a_good"])
    run, _ = runs.begin(request, stop_after=None)
    (case,) = run.cases
    kept = run_module._Keeper(run, (), [None], None)
    kept.add(0, replace(case, lines_reason=NOT_COUNTED))
    assert is_uncounted(kept.case(0))
    assert (kept.missing(), kept.uncounted()) == ([], [0])
    kept.add(0, replace(case, lines_reason="counting it takes more than 10 s"))
    assert kept.uncounted() == []
