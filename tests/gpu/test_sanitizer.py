# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every shipped kernel under compute-sanitizer: memory, races, initialisation and barriers.

Run alone with: GPUPROF_REQUIRE_GPU=1 python -m pytest tests/gpu/test_sanitizer.py -s
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from problem_support import problem_for, problem_id, shipped_kernels
from processes import ran

from gpuprof.kernels.shipped import shipped_operation
from gpuprof.measure.case import Case
from gpuprof.ncu.journal import Job, read_journal, write_job

#: By operation; for one that is not here, some that fit no tile.
SIZES = {
    # The fourth is ragged too, but has rows of whole 16-byte words, as bulk copies need them.
    # The last two are for kernels of a few rows and of a tall C; smem_panel has no room for a longer k.
    "gemm": [
        *((33, 17, 65), (128, 128, 128), (259, 131, 300), (97, 516, 540), (512, 512, 512)),
        *((3, 517, 902), (517, 60, 300)),
    ],
    "transpose": [(33, 65), (128, 128), (777, 1000), (1024, 1024)],
    "reduce": [(1001,), (1,), (65_536,), (1_000_003,)],
    "attention": [(1, 2, 70, 64), (2, 1, 333, 128), (1, 1, 1, 64)],
    "softmax": [(5, 77), (3, 1000), (64, 1024), (33, 4100), (3, 9001)],
}
RAGGED = [33, 130]
#: Further ones of some kernels: with a k so long that clusters share a tile, or that fills every stage of a
#: cluster's blocks again; with one that registers, or a single tile, hold; with so many tiles that few blocks
#: share one.
MORE = {
    "splitk_fit": [(33, 17, 2100)],
    "short_k": [(517, 60, 47), (65, 259, 8)],
    "wgmma_gathered_short": [(517, 60, 47), (65, 259, 8)],
    "wgmma_split": [(264, 520, 1040)],
    "wgmma_split_turned": [(57, 2224, 272)],
    "e4m3_split_turned": [(57, 2224, 272)],
    "wgmma_gathered": [(264, 520, 1040)],
    "e4m3_gathered": [(65, 259, 1030), (264, 520, 1040)],
}
#: Scalars of the sizes whose first extent is odd, for kernels that take them; the others have the defaults.
SCALARS = {"gemm": {"alpha": 1.5, "beta": 0.5}, "attention": {"causal": 1.0}}


def problems():
    # What a kernel chooses is launched as a kernel of its own.
    for kernel in (kernel for kernel in shipped_kernels() if not kernel.choices):
        dimensions = shipped_operation(kernel.operation).dimensions
        sizes = SIZES.get(kernel.operation) or [(size,) * len(dimensions) for size in RAGGED]
        sizes = [*sizes, *MORE.get(kernel.id, ())]
        taken = set(kernel.arguments)
        for size in sizes:
            for dtype in kernel.dtypes if size == sizes[0] else kernel.dtypes[:1]:
                scalars = SCALARS.get(kernel.operation, {})
                scaled = size[0] % 2 and scalars.keys() <= taken
                yield kernel, problem_for(kernel, *size, dtype=dtype, **(scalars if scaled else {}))


@pytest.fixture(scope="module")
def job(gpu_count, tmp_path_factory):
    """A job that launches every kernel once at each size."""
    directory = tmp_path_factory.mktemp("sanitizer")
    pairs = sorted(problems(), key=lambda pair: problem_id(pair[1]))
    job = Job(
        device_ordinal=0,
        seed=0,
        journal=str(directory / "journal.jsonl"),
        cases=tuple(enumerate(Case.of(kernel, problem) for kernel, problem in pairs)),
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
    kernels = {(kernel.operation, kernel.id): kernel for kernel in shipped_kernels()}
    left = []
    for index, case in job.cases:
        name = case.name
        kernel = kernels[case.problem.operation.name, name]
        declared = [one.because.replace("{id}", name) for one in kernel.requirements]
        reason = refusals.get(index, "")
        if index not in launches and not any(reason.startswith(because) for because in declared):
            left.append((name, problem_id(case.problem), reason or "no word of it"))
    ran = {(case.problem.operation.name, case.name) for index, case in job.cases if index in launches}
    return left + [
        (*name, "never launched")
        for name, kernel in kernels.items()
        if not kernel.choices and name not in ran
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
    process = ran(command)
    output = process.stdout + process.stderr
    summary = [line for line in output.splitlines() if "SUMMARY" in line]
    launches = done(planned)
    print(f"{tool}: {len(launches)} launches of {len(planned.cases)}: {summary}")
    assert process.returncode == 0, output[-3000:]
    assert not unexplained(planned, launches)
    assert summary, output[-3000:]
    assert re.search(r"(ERROR|RACECHECK) SUMMARY: 0 ", summary[-1]), output[:6000]
