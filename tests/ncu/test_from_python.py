# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`profile(ncu=True)`: the counters of a stand-in for ncu, in the run, and in its results file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ncu_support import install

import gpuprof
from gpuprof.api import measuring
from gpuprof.ncu import collecting as profiling

pytestmark = pytest.mark.deep

AXPY = """
__global__ void axpy(int n, float a, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i];
}
"""


@pytest.fixture
def as_gpu(monkeypatch):
    """Lets the executor's runs pass for a GPU's that counted nothing; what it gives collects ncu's jobs."""
    measure, job, jobs = measuring.measure, profiling.Job, []

    def measured(request, options, *rest, **more):
        record = measure(request, replace(options, device="sim:h200"), *rest, **more)
        cases = [replace(case, counters={}, counters_reason="not asked for") for case in record.cases]
        return replace(record, backend="gpu", cases=tuple(cases))

    def noted(*fields):
        jobs.append(job(*fields))
        return jobs[-1]

    monkeypatch.setattr(measuring, "measure", measured)
    monkeypatch.setattr(profiling, "Job", noted)
    return jobs


def axpy(**more):
    x = np.arange(1000, dtype=np.float32)
    return gpuprof.profile(
        gpuprof.Source(AXPY, "axpy"),
        args={"n": 1000, "a": 2.0, "x": x, "y": None},
        expect={"y": 2 * x},
        grid="cdiv(n, block_x)",
        block=256,
        **more,
    )


def test_counters_are_in_the_run_and_in_its_file(tmp_path, monkeypatch, as_gpu):
    monkeypatch.setenv("GPUPROF_NCU", install(tmp_path / "bin", ""))
    run = gpuprof.profile("transpose", kernels="naive_row", sizes=64, ncu=True, save=tmp_path / "run.json")
    case = run.case("naive_row")
    assert case.counters.global_load_requests == 1000  # as the stand-in's table says
    assert gpuprof.load(tmp_path / "run.json").case("naive_row").counters.global_load_requests == 1000
    assert (tmp_path / "run.ncu-rep").exists()
    assert [job.given_arrays for job in as_gpu] == [""]


def test_a_call_is_profiled_with_its_own_arrays_and_needs_no_file(tmp_path, monkeypatch, as_gpu):
    monkeypatch.setenv("GPUPROF_NCU", install(tmp_path / "bin", ""))
    assert axpy(ncu=True).case("axpy").counters.global_load_requests == 1000
    (job,) = as_gpu
    assert job.given_arrays
    assert not Path(job.given_arrays).exists()  # gone with the call


def test_without_ncu_the_figures_say_why(tmp_path, monkeypatch, as_gpu):
    monkeypatch.setenv("GPUPROF_NCU", str(tmp_path / "none"))
    case = axpy(ncu=True).case("axpy")
    assert case.ok
    with pytest.raises(gpuprof.NotMeasured, match=r"global_load_requests of axpy is not known: .*ncu"):
        _ = case.counters.global_load_requests
    assert as_gpu == []


def test_nothing_is_profiled_unless_asked_or_without_a_gpu(tmp_path, monkeypatch, as_gpu):
    monkeypatch.setenv("GPUPROF_NCU", install(tmp_path / "bin", ""))
    with pytest.raises(gpuprof.NotMeasured, match=r"profile\(ncu=True\) asks Nsight Compute for it"):
        _ = axpy().case("axpy").counters.global_load_requests
    monkeypatch.undo()
    assert axpy(ncu=True, device="sim").case("axpy").counters.global_load_requests == 32
    assert as_gpu == []
