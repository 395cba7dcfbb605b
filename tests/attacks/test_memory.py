# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What asks for more memory than there is: a row that says so, no broken kernel, and the next case runs."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from processes import ran

from gpuprof import machine
from gpuprof.measure import process, starting
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import Open, Size, WorkerLost
from gpuprof.problems.formulas import evaluate_arrays
from gpuprof.toolchain.nvrtc_program import UnknownInclude, included_files

#: What a process may take here: enough to run a kernel, too little for what the files below ask for.
_ROOM = 1 << 30
OPERATION = """
name = "copy"
title = "Copy"
dimensions = ["n"]
default_sizes = "32"
[arrays.x]
shape = ["n"]
[arrays.y]
shape = ["n"]
role = "out"
[inputs]
x = "normal(0, 1)"
[work]
flops = "n"
bytes = "2 * n * real_bytes"
rate = "bytes"
[check]
y = "{formula}"
relative = "4 * u"
"""
KERNEL = """/*gpuprof
title = "Copies"
operation = "copy"
idea = "One thread an element."
arguments = ["x", "y", "n"{more}]
entry = "copy"
[launch]
block = [32]
grid = ["cdiv(n, block_x)"]
{tables}
*/
{variables}
extern "C" __global__ void copy(const float *x, float *y, int n{parameters}) {{
    {statement}
    y[blockIdx.x * 32 + threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
}}
"""
PLAIN = {"more": "", "tables": "", "variables": "", "parameters": "", "statement": ""}
VARIABLE = {"variables": "__device__ char huge[8000000000];", "statement": "if (n < 0) huge[n] = 1;"}
WORKSPACE = {
    "more": ', "room"',
    "tables": '[workspace.room]\nshape = ["1000000000"]\n',
    "parameters": ", float *room",
}


def cases_of(folder, formula="x", **kernels):
    """What a run of some kernels tells of each, in little memory."""
    (folder / "ladder").mkdir()
    (folder / "ladder" / "operation.toml").write_text(OPERATION.format(formula=formula))
    for name, parts in kernels.items():
        (folder / "ladder" / f"{name}.cu").write_text(KERNEL.format(**PLAIN | parts))
    results = folder / "here" / "results.json"
    command = ["run", "ladder", "--device", "sim", "-o", "here"]
    done = ran(
        [sys.executable, "-m", "gpuprof", *command],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (_ROOM, _ROOM)),
    )
    assert results.exists(), done.stderr
    return {case["kernel"]: case for case in json.loads(results.read_text())["cases"]}


@pytest.mark.deep
def test_kernels_whose_memory_is_not_there_are_skipped_and_the_others_run(tmp_path):
    cases = cases_of(tmp_path, a_variable=VARIABLE, b_workspace=WORKSPACE, c_plain={})
    for name, needed in (("a_variable", "7.5 GiB"), ("b_workspace", "3.7 GiB")):
        assert cases[name]["outcome"] == "skipped"
        assert "not enough memory" in cases[name]["reason"]
        assert needed in cases[name]["reason"]
    assert cases["c_plain"]["outcome"] == "ok"


@pytest.mark.deep
def test_formula_whose_memory_is_not_there_says_nothing_of_the_kernel(tmp_path):
    (case,) = cases_of(tmp_path, "x + 0 * sum(ones(700000000))", copy={}).values()
    assert case["outcome"] == "skipped"
    assert "not enough memory" in case["reason"]
    assert "5.22 GiB" in case["reason"]


def test_formula_without_memory_is_no_malformed_one():
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    with machine.memory_limited():
        machine.limit_memory(machine.held_memory_bytes() + (64 << 20))
        with pytest.raises(MemoryError):
            evaluate_arrays("sum(outer(x, x))", {"x": np.ones(1 << 14)})
    assert resource.getrlimit(resource.RLIMIT_DATA) == limits


@pytest.mark.parametrize(
    "ends", ["MemoryError('Unable to allocate 9 GiB')", "OSError(errno.ENOMEM, 'Unable to allocate 9 GiB')"]
)
def test_worker_without_memory_says_so_and_ends(monkeypatch, ends):
    serving = "import errno, sys, gpuprof.measure.serving as serving"
    program = (
        f"{serving}\ndef fail(*_): raise {ends}\nserving.WorkerSide.answer = fail\nserving.main(sys.stdin)"
    )
    died = died_of(monkeypatch, program)
    assert died.out_of_memory
    assert not died.taken
    assert "Unable to allocate 9 GiB" in str(died)


@pytest.mark.parametrize("said", ["LLVM ERROR: out of memory", "  what():  std::bad_alloc"])
def test_library_that_ends_its_process_without_memory_is_understood(monkeypatch, said):
    died = died_of(monkeypatch, f"import os, sys; print({said!r}, file=sys.stderr, flush=True); os.abort()")
    assert died.out_of_memory
    assert said.strip() in str(died)


def test_process_that_the_system_killed_for_memory_is_told_from_others(monkeypatch):
    counts = iter([3, 4])
    monkeypatch.setattr(process, "kills_for_memory", lambda: next(counts))
    died = died_of(monkeypatch, "import os; os.kill(os.getpid(), 9)")
    assert died.taken
    assert died.out_of_memory
    assert "no memory left" in str(died)


def died_of(monkeypatch, program):
    """How a worker died that runs another program."""
    worker = WorkerProcess.__new__(WorkerProcess)
    start = subprocess.Popen
    monkeypatch.setattr(
        starting.subprocess, "Popen", lambda _, **more: start([sys.executable, "-c", program], **more)
    )
    worker._start(Open(device="none", arch=None, seed=0, seconds_per_case=0.25))
    try:
        with pytest.raises(WorkerLost) as caught:
            worker.ask(Size(()), 60)
    finally:
        worker.close()
    return caught.value


def test_worker_without_a_gpu_is_bounded_before_it_is_sent_anything():
    worker = WorkerProcess(Open(device="none", arch=None, seed=0, seconds_per_case=0.25))
    try:
        with open(f"/proc/{worker._process.pid}/limits") as file:
            (line,) = (line for line in file if line.startswith("Max data size"))
        assert int(line.split()[3]) < machine.available_memory_bytes() + (4 << 30)
    finally:
        worker.close()


def test_header_of_gigabytes_is_not_read_to_know_what_was_compiled(tmp_path):
    with (tmp_path / "huge.cuh").open("wb") as file:
        file.truncate(6 << 30)
    with pytest.raises(UnknownInclude):
        included_files(['#include "huge.cuh"'], [f"-I{tmp_path}"])
