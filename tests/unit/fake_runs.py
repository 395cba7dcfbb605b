# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs of kernels that do as their names say, where `fake_worker` stands in for GPUs."""

import fake_worker
from unit_support import build_request, write_transpose_kernel

from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure import session
from gpuprof.measure.run import Progress, measure
from gpuprof.options import RunOptions
from gpuprof.reading import read_run
from gpuprof.store import ResultsFile


class Watcher(Progress):
    """Remembers what a run tells, and calls a function with how many cases are done."""

    def __init__(self, on_finished=lambda done: None):
        self.started_cases, self.finished_cases = [], []
        self.announced = 0
        self._on_finished = on_finished

    def opened(self, opened, cases):
        self.told = opened
        self.announced += cases

    def started(self, case):
        self.started_cases.append((case.device, case.name))

    def finished(self, measurement):
        self.finished_cases.append((measurement.device, measurement.kernel))
        self._on_finished(len(self.finished_cases))

    @property
    def names(self):
        """Kernels of the cases that are done."""
        return [name for _, name in self.finished_cases]


def request_of(folder, names, sizes="64", **more):
    """A request for transposes of these names, whose files are written there."""
    paths = [str(write_transpose_kernel(folder, name, rung)) for rung, name in enumerate(names)]
    return build_request(shipped_ladder("transpose"), paths, False, sizes, None, "f32", **more)


def options(**changes):
    """How such runs are measured."""
    usual = {"device": "0", "timeout_s": 300.0, "seconds_per_case": 0.1, "explain": False, "lines": False}
    return RunOptions(**{**usual, **changes})


def keeper(path):
    """Opens the results file of a run there."""
    return lambda run: ResultsFile(path, run, replace=True)


def fake_workers(folder, monkeypatch):
    """Let the fake worker stand in for GPUs; gives the processes that have started so far."""
    fake_worker.take_the_workers_place(monkeypatch.setattr, fork=True)
    log = folder / "workers.log"
    monkeypatch.setenv("FAKE_WORKER_LOG", str(log))
    monkeypatch.setenv("FAKE_WORKER_STARTS", "99")
    return lambda: log.read_text().split()


def runner(folder, monkeypatch, *pauses_s):
    """Measures kernels `k0_WHAT`, `k1_WHAT`, … that do as named; gives the run and its watcher."""
    workers = fake_workers(folder, monkeypatch)
    monkeypatch.setattr(session, "_PAUSES_S", pauses_s)

    def run(*whats, watcher=None, references="none", **how):
        names = [f"k{number}_{what}" for number, what in enumerate(whats)]
        request, path = request_of(folder, names, references=references), folder / "results.json"
        watcher = watcher or Watcher()
        result = measure(request, options(**how), watcher, argv=("transpose",), keep=keeper(path))
        assert read_run(path) == result
        watcher.workers = len(workers())
        return result, watcher

    return run
