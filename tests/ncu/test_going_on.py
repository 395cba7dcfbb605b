# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Profiling with a stand-in for ncu, from Python and from where a run stopped: nothing twice."""

import json
from pathlib import Path

import numpy as np
import pytest
import unit_support
from ncu_support import install
from unit_support import build_request

import gpuprof
from gpuprof.api import measuring
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.ncu import collecting as profiling
from gpuprof.ncu.collecting import add_counters
from gpuprof.ncu.invocation import NcuOptions
from gpuprof.ncu.journal import JournalEvent as Event
from gpuprof.ncu.journal import JournalWriter
from gpuprof.ncu.outcome import is_profiled, lacks_counters
from gpuprof.options import RunOptions
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.store import write_run

pytestmark = pytest.mark.deep

SITE = Path(__file__).parents[1] / "emulated" / "site"
NAMES = ("copy_row", "naive_row", "smem_padded")
WHAT = ("transpose", "-k", ",".join(NAMES), "--sizes", "32", "--device", "0", "--seconds", "0.01")
QUICK = ("--no-lines", "--reference", "none", "--no-explain", "--ncu")


class Runs:
    """Runs of one folder, each with its own plan for the stand-in."""

    def __init__(self, folder):
        self.folder = folder
        self.report = folder / "out" / "results.ncu-rep"

    def __call__(self, plan, *options):
        """A run; cases are numbered from 0."""
        environment = {"GPUPROF_NCU": install(self.folder / "bin", plan)}
        process = unit_support.gpuprof(
            *(*WHAT, *QUICK, *options), cwd=self.folder, environment=environment, site=str(SITE)
        )
        assert "Traceback" not in process.stderr, process.stderr
        return process

    def read(self):
        return read_run(self.folder / "out" / "results.json")


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def profiled(process):
    """Kernels that Nsight Compute turned to, and those that were measured."""
    lines = process.stderr.splitlines()
    counted = [line.split()[1] for line in lines if line.startswith("ncu: ")]
    return counted, [name for name in NAMES if f"] {name} " in process.stderr]


def requests(run):
    found = [case.counters.get("global_load_requests") for case in run.cases]
    return [counter and counter.value for counter in found]


@pytest.mark.parametrize(("asked", "status"), [("SIGTERM", 143), ("SIGKILL", -9)])
def test_a_pass_that_was_cut_goes_on_with_what_is_missing(runs, asked, status):
    first = runs(f"asks:{asked}:1", "-o", "out")
    assert first.returncode == status, first.stderr
    before = runs.read()
    assert before.complete
    if asked != "SIGKILL":
        assert "Stopped while Nsight Compute counted" in first.stderr
        assert "--resume out" in first.stderr
    second = runs("", "--resume", "out")
    assert second.returncode == 0, second.stderr
    assert profiled(second) == (["naive_row", "smem_padded"], [])
    after = runs.read()
    # The stand-in numbers the launches of each report from 1000 on.
    assert requests(after) == [1000, 1000, 1001]
    assert [case.timing for case in after.cases] == [case.timing for case in before.cases]
    assert sorted(path.name for path in runs.report.parent.iterdir()) == [
        *("report.html", "results-2.ncu-rep", "results.json", "results.ncu-rep")
    ]


def test_what_ncu_would_run_counts_on_an_emulated_gpu(runs):
    process = runs("targets", "-o", "out")
    assert process.returncode == 0, process.stderr
    assert requests(runs.read()) == [1000, 1001, 1002]


@pytest.fixture(scope="module")
def measured():
    """A run that passes for a GPU's, without counters."""
    record = gpuprof.profile("transpose", kernels=list(NAMES), sizes=32, device="sim:h200").record
    cases = [replace(case, counters={}, counters_reason="not asked for") for case in record.cases]
    return replace(record, backend="gpu", cases=tuple(cases))


@pytest.fixture
def counted(tmp_path, measured):
    """Adds counters to the run in a file, with a stand-in that follows a plan; tells whose turn it was."""
    request = build_request(shipped_ladder("transpose"), list(NAMES), False, "32", None, "f32")
    path = tmp_path / "results.json"
    write_run(measured, path)

    def add(plan, stop_at=None):
        seen = []

        def progress(case):
            seen.append(case.name)
            if case.name == stop_at:
                raise KeyboardInterrupt

        ncu = NcuOptions(install(tmp_path / "bin", plan))
        _, outcome = add_counters(read_run(path), request, path, RunOptions(device="0"), ncu, progress)
        assert outcome.stopped == bool(stop_at)
        return read_run(path), outcome, seen

    return add


def test_what_was_found_out_before_the_end_is_kept_at_once(counted):
    """The first ncu process ends with its second case, and the next one is cut."""
    before, _, _ = counted("dies:1", stop_at="smem_padded")
    assert [is_profiled(case) for case in before.cases] == [True, True, False]
    assert "LaunchFailed" in before.cases[1].counters_reason
    after, _, seen = counted("")
    assert seen in ([], ["smem_padded"])  # it may have been done when the end came
    assert requests(after) == [1000, None, 1000]
    assert after.cases[:2] == before.cases[:2]


def test_nothing_is_profiled_twice(counted):
    whole, _, _ = counted("")
    again, outcome, seen = counted("says:synthetic_error_permission.txt")
    assert (again, seen, outcome.problem) == (whole, [], None)


def test_a_fault_of_nsight_compute_is_no_result_of_a_case(counted):
    refused, _, _ = counted("says:synthetic_error_permission.txt")
    assert requests(refused) == [None, None, None]
    assert "ERR_NVGPUCTRPERM" in refused.cases[0].counters_reason
    assert lacks_counters(refused)
    after, _, _ = counted("")
    assert requests(after) == [1000, 1001, 1002]
    assert not lacks_counters(after)


def test_counts_of_two_versions_do_not_stand_side_by_side(counted):
    counted("dies:1", stop_at="smem_padded")
    after, outcome, _ = counted("version:2099.1.0.0")
    assert "2025.3.1.0 has profiled the cases before, this is 2099.1.0.0" in str(outcome.problem)
    assert after.environment["ncu"] == "2025.3.1.0"
    assert requests(after) == [1000, None, None]


def test_an_ncu_that_is_killed_from_outside_is_started_once_more(counted):
    after, _, seen = counted("taken:1")
    assert seen[-3:] == list(NAMES)
    assert requests(after) == [1000, 1001, 1002]


def test_what_another_run_left_is_not_taken(counted, tmp_path):
    report = tmp_path / "results.ncu-rep"
    report.write_text(json.dumps([]))
    journal = JournalWriter(report.with_suffix(".ncu-journal"))
    journal.write(Event("opened", pid=1, run="another"))
    journal.write(Event("refused", 0, reason="of another run"))
    after, outcome, seen = counted("")
    assert seen == list(NAMES)
    assert requests(after) == [1000, 1001, 1002]
    assert [path.name for path in outcome.reports] == ["results.ncu-rep"]


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
