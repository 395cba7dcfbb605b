# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every shipped kernel under compute-sanitizer: memory, races, initialisation and barriers.

Run alone with: GPUPROF_REQUIRE_GPU=1 python -m pytest tests/gpu/test_sanitizer.py -s
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from problem_support import ladder, problem_for, problem_id

from gpuprof.measure.case import Case
from gpuprof.ncu.journal import Job, Task, read_journal, write_job

#: The fourth is ragged too, but has rows of whole 16-byte words, as bulk copies need them.
GEMM_SIZES = [(33, 17, 65), (128, 128, 128), (259, 131, 300), (97, 516, 540), (512, 512, 512)]
TRANSPOSE_SIZES = [(33, 65), (128, 128), (777, 1000), (1024, 1024)]


def problems():
    # What a kernel chooses is launched as a kernel of its own.
    for kernel in (kernel for kernel in ladder("gemm") if not kernel.choices):
        for size in GEMM_SIZES:
            for dtype in kernel.dtypes if size == GEMM_SIZES[0] else ("f32",):
                beta = 0.5 if "beta" in kernel.arguments and size[0] % 2 else 0.0
                yield kernel, problem_for(kernel, *size, dtype=dtype, alpha=1.5, beta=beta)
    for kernel in (kernel for kernel in ladder("transpose") if not kernel.choices):
        for size in TRANSPOSE_SIZES:
            for dtype in kernel.dtypes if size == TRANSPOSE_SIZES[0] else ("f32",):
                yield kernel, problem_for(kernel, *size, dtype=dtype)


@pytest.fixture(scope="module")
def job(gpu_count, tmp_path_factory):
    """A job that launches every kernel once at each size."""
    directory = tmp_path_factory.mktemp("sanitizer")
    tasks = sorted(problems(), key=lambda pair: problem_id(pair[1]))
    job = Job(
        device_ordinal=0,
        seed=0,
        journal=str(directory / "journal.jsonl"),
        tasks=tuple(Task(index, Case.of(kernel, problem)) for index, (kernel, problem) in enumerate(tasks)),
    )
    path = directory / "job.json"
    write_job(job, path)
    return path, job


def done(job):
    """Indices of the cases whose launch came back."""
    return {event.index for event in read_journal(Path(job.journal)) if event.kind == "done"}


def unexplained(job, launches):
    """Cases that were not launched, other than those that a kernel's header rules out."""
    refusals = {
        event.index: event.reason for event in read_journal(Path(job.journal)) if event.kind == "refused"
    }
    kernels = {kernel.id: kernel for op in ("gemm", "transpose") for kernel in ladder(op)}
    left = []
    for task in job.tasks:
        name = task.case.name
        declared = [one.because.replace("{id}", name) for one in kernels[name].requirements]
        reason = refusals.get(task.index, "")
        if task.index not in launches and not any(reason.startswith(because) for because in declared):
            left.append((name, problem_id(task.case.problem), reason or "no word of it"))
    ran = {task.case.name for task in job.tasks if task.index in launches}
    return left + [
        (kernel.id, "never launched")
        for kernel in kernels.values()
        if not kernel.choices and kernel.id not in ran
    ]


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_every_kernel_is_clean(job, tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        if os.environ.get("GPUPROF_REQUIRE_GPU"):
            pytest.fail("compute-sanitizer is required, and not installed")
        pytest.skip("compute-sanitizer is not installed")
    path, planned = job
    Path(planned.journal).unlink(missing_ok=True)
    command = [sanitizer, "--tool", tool, sys.executable, "-m", "gpuprof.ncu.target", str(path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=570)
    output = process.stdout + process.stderr
    summary = [line for line in output.splitlines() if "SUMMARY" in line]
    launches = done(planned)
    print(f"{tool}: {len(launches)} launches of {len(planned.tasks)}: {summary}")
    assert process.returncode == 0, output[-3000:]
    assert not unexplained(planned, launches)
    assert summary, output[-3000:]
    assert re.search(r"(ERROR|RACECHECK) SUMMARY: 0 ", summary[-1]), output[:6000]
