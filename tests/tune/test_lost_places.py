# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Searches whose workers, folders or disks are lost: nothing measured is, and it is said."""

import errno
import os
import shutil
import time
from pathlib import Path

import pytest
from synthetic_runs import tuned_run
from synthetic_times import TILES

from gpuprof import files, store
from gpuprof.commands import output, tune
from gpuprof.devices.cards import load_card
from gpuprof.errors import ExitCode, OutputError
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure import process
from gpuprof.measure.protocol import Open
from gpuprof.measure.request import Selection
from gpuprof.options import Given, OutputOptions, RunOptions, SelectOptions
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.tuning.space import make_space
from gpuprof.tuning.tuner import WorkerPool

pytestmark = pytest.mark.deep

FOUND = tuned_run()


class Found:
    """A search that has found everything already, and keeps it."""

    def __init__(self, plan, watcher, *, argv, keep, earlier):
        self._keep = keep

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        self._file.close()

    def search(self):
        self._file = self._keep(replace(FOUND, cases=(), complete=False))
        for case in FOUND.cases:
            self._file.append(case)
        self._file.finish(FOUND)
        return FOUND


@pytest.fixture
def search(scale, tmp_path, monkeypatch):
    """Runs the command in this process, around a search that has found everything."""
    monkeypatch.setattr(tune, "Tuner", Found)
    monkeypatch.chdir(tmp_path)

    def run():
        given = Given(SelectOptions(sizes="512"), RunOptions(device="sim:h200"), argv=("tune",))
        return tune.run_search(replace(given, output=OutputOptions(output=Path("out"))), [str(scale)])

    return run


def test_folder_that_is_removed_while_the_page_is_rendered_comes_back_whole(search, monkeypatch):
    real = output.text_of

    def text_of(run, kind):
        shutil.rmtree("out")
        return real(run, kind)

    monkeypatch.setattr(output, "text_of", text_of)
    assert search() == ExitCode.CASES_FAILED  # what was found says nothing of ties
    assert sorted(os.listdir("out")) == ["report.html", "results.json"]
    assert read_run(Path("out/results.json")) == FOUND


def test_page_that_cannot_be_written_leaves_the_results_and_says_how_to_make_it(search, monkeypatch, capfd):
    def refuse(path, text):
        if path.name == files.REPORT_NAME:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, text)

    real = files.replace_text
    monkeypatch.setattr(files, "replace_text", refuse)
    with pytest.raises(OutputError) as caught:
        search()
    assert "Cannot write out/report.html: No space left on device" in caught.value.what
    assert caught.value.fix == "Make room, or name another path: gpuprof report out/results.json -o FILE"
    assert "Wrote out/results.json" in capfd.readouterr().out
    assert read_run(Path("out/results.json")) == FOUND


def full_disk(monkeypatch, *folders):
    real = os.pwrite

    def write(descriptor, content, offset):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(folders) and offset:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, content, offset)

    monkeypatch.setattr(store.os, "pwrite", write)


def test_search_on_a_full_disk_says_where_what_it_wrote_is(search, monkeypatch, tmp_path):
    full_disk(monkeypatch, str(tmp_path))
    with pytest.raises(OutputError) as caught:
        search()
    assert "No space left on device" in caught.value.what
    assert caught.value.fix == (
        "What was written before is in out/results.json: make room, and the same command continues."
    )


def test_workers_that_compiled_count_and_disassemble_several_points_together(monkeypatch):
    started = []
    begin = process.WorkerProcess.__init__

    def begun(self, *arguments):
        started.append(self)
        begin(self, *arguments)

    monkeypatch.setattr(process.WorkerProcess, "__init__", begun)
    device = load_card("h200")
    file = load_kernels(TILES)
    problem = Problem.of(file.operation, (256, 256, 256), "f32", {}, {})
    candidates, _ = make_space([Selection(file.kernels[0])], named=True).allowed(problem, device)
    cases = [one.case for one in candidates[:6]]
    built, counted = {}, {}
    until = time.monotonic() + 240
    with WorkerPool(device, Open(), 1) as pool:
        assert pool.build(cases, built.__setitem__, until) == 6
        # The process outlives the thread's work of one stage.
        time.sleep(0.3)
        pairs = [(case, built[index]) for index, case in enumerate(cases)]
        assert pool.count(pairs, counted.__setitem__, until) == 6
        assert pool.count(pairs[:1], counted.__setitem__, until) == 1
    assert len(started) == 1
    assert sorted(counted) == list(range(6))
    for measurement in counted.values():
        assert measurement.bounds_reason is None
        # Counted from the machine code.
        assert measurement.executor_counters["warp_instructions"].value
