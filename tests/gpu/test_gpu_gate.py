# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a driver takes while a stream is held back, and kernels whose modules bring much, on a real GPU."""

import os
import shutil
import subprocess
import sys

import pytest
from cuda_sources import FOLDER

from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, queue_copy
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.backends.gpu.timer import _MOST_COMMANDS
from gpuprof.reading import read_run


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
    process = subprocess.run(
        [*command, "--timeout", "20", "--no-lines", "--reference", "none", "--json", "r.json", "-q"],
        cwd=tmp_path,
        env={**os.environ, "CUDA_MODULE_LOADING": loading},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    run = read_run(tmp_path / "r.json")
    assert [(case.kernel, case.outcome) for case in run.cases] == [("headers", "ok"), ("variables", "ok")]
    for case in run.cases:
        assert case.timing.cold.median_us > 0
        assert not any("gaps" in remark for remark in case.remarks)
