# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels of several launches on a real GPU, and what a driver takes while a stream is held back."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from cuda_sources import FOLDER, write_kernel_file
from processes import ran

import gpuprof
from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, queue_copy
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.backends.gpu.timer import _MOST_COMMANDS
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.ncu.journal import Job, attempts, read_journal, write_job
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run


def case_of(path, *sizes, dtype="f32"):
    file = load_kernels(path)
    return Case.of(file.kernels[0], Problem.of(file.operation, sizes, dtype))


def measure(backend, case):
    measurement, lost = measure_case(case, backend, Compiler(backend.device.arch))
    assert not lost
    return measurement


@pytest.mark.parametrize("n", [1, 257, 65536])
def test_launches_are_timed_as_one(backend, tmp_path, n):
    measurement = measure(backend, case_of(write_kernel_file(tmp_path, "two_pass_sum"), n))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.timing.cold.median_us > 0
    assert [one.entry for one in measurement.launches] == ["block_sums", "block_sums"]


def test_functions_of_one_module_share_its_variables(backend, tmp_path):
    measurement = measure(backend, case_of(write_kernel_file(tmp_path, "through_a_variable"), 256))
    assert measurement.outcome == "ok", measurement.reason


def test_workspace_starts_poisoned_and_its_guards_are_watched(backend, tmp_path):
    wide = write_kernel_file(
        tmp_path, "two_pass_sum", old='shape = ["cdiv', new='shape = ["1 + cdiv', to="wide"
    )
    given = '"cdiv(n, 2 * THREADS)", "partial"'
    wide.write_text(wide.read_text().replace(given, given.replace("cdiv", "1 + cdiv", 1)))
    good = write_kernel_file(tmp_path, "two_pass_sum")
    narrow = write_kernel_file(
        tmp_path, "two_pass_sum", old='shape = ["cdiv(n, 2 * THREADS)"]', new='shape = ["1"]', to="narrow"
    )
    outcomes = [measure(backend, case_of(path, 1000)) for path in (good, wide, good, narrow, good)]
    assert [one.outcome for one in outcomes] == ["ok", "incorrect", "ok", "incorrect", "ok"]
    assert "nan" in outcomes[1].reason
    assert "wrote past the end of partial" in outcomes[3].reason.lower()


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_every_launch_is_run_and_clean(tmp_path, gpu_count, tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        if os.environ.get("GPUPROF_REQUIRE_GPU"):
            pytest.fail("compute-sanitizer is required, and not installed")
        pytest.skip("compute-sanitizer is not installed")
    journal = tmp_path / "journal"
    write_job(
        Job(0, 0, str(journal), ((0, case_of(write_kernel_file(tmp_path, "two_pass_sum"), 5000)),)),
        tmp_path / "job",
    )
    command = [sanitizer, "--tool", tool, sys.executable, "-m", "gpuprof.ncu.target", str(tmp_path / "job")]
    process = ran(command)
    assert process.returncode == 0, process.stdout + process.stderr
    assert [attempt.done for attempt in attempts(read_journal(Path(journal)))] == [True, True]
    assert " SUMMARY: 0 " in process.stdout + process.stderr


@pytest.fixture
def timer(backend):
    yield backend._timer
    backend._timer.reset()


@pytest.mark.parametrize("kind", ["copy", "fill", "event", "launch"])
def test_driver_takes_as_many_commands_as_are_queued(backend, timer, kind):
    stream, buffer = backend._context.stream, DeviceBuffer(1 << 16)
    event = call("creating an event", driver().cuEventCreate(0))
    function = backend._arrays.code("f32").load("nothing")
    queue = {
        "copy": lambda: queue_copy(buffer.address, buffer.address + 4096, 100, stream),
        "fill": lambda: buffer.queue_fill(0, stream),
        "event": lambda: call("recording an event", driver().cuEventRecord(event, stream)),
        "launch": lambda: function.launch((1, 1, 1), (32, 1, 1), 0, stream, Arguments([])),
    }[kind]
    queue()
    backend._context.synchronize()
    with timer.gate.closed():
        for _ in range(_MOST_COMMANDS):
            queue()
    backend._context.synchronize()
    buffer.free()
    assert not timer.gate.expired


def test_gate_that_something_waits_behind_opens_by_itself(timer):
    """Giving memory back waits for all that runs, and so does loading a module."""

    def frees():
        DeviceBuffer(1 << 20).free()

    frees()
    assert len(timer.cold(frees, 2, settle=0)) == 2
    assert timer.ungated
    timer.reset()
    assert timer.pair_us > 0


@pytest.mark.parametrize("loading", ["EAGER", "LAZY"])
def test_kernels_are_timed_whatever_their_modules_bring(gpu_count, tmp_path, loading):
    shutil.copytree(FOLDER / "double", tmp_path, dirs_exist_ok=True)
    command = [sys.executable, "-m", "gpuprof", "run", ".", "--device", "0", "--seconds", "0.05"]
    process = ran(
        [*command, "--timeout", "20", "--no-lines", "--reference", "none", "--json", "r.json", "-q"],
        cwd=tmp_path,
        env={**os.environ, "CUDA_MODULE_LOADING": loading},
    )
    assert process.returncode == 0, process.stderr
    run = read_run(tmp_path / "r.json")
    assert [(case.kernel, case.outcome) for case in run.cases] == [("headers", "ok"), ("variables", "ok")]
    for case in run.cases:
        assert case.timing.cold.median_us > 0
        assert not any("gaps" in remark for remark in case.remarks)


def test_flush_that_writes_leaves_lines_that_are_written_back(gpu_count):
    """Each line that is read takes the place of a dirty one."""
    how = {"kernels": "float4_loads", "sizes": 1 << 24, "device": 0, "lines": False, "references": ()}
    read, write = (gpuprof.profile("reduce", flush=flush, **how).cases[0] for flush in ("read", "write"))
    assert write.figures["median_us"] > 1.05 * read.figures["median_us"]
