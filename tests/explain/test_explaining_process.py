# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Explanations beside a device: what is asked, by which process, and what becomes of it when that is lost."""

import time
from pathlib import Path

import fake_worker
import numpy as np
import pytest
from cuda_sources import kernel_file
from planted_kernels import FOLDER, PLANTED, SIZE, check_row

import gpuprof
from gpuprof.devices.cards import load_card
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.smaller_sizes import smaller_problems
from gpuprof.measure import session
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.explain import OutOfTime, time_limit
from gpuprof.measure.process import ExecutorProcess
from gpuprof.measure.protocol import Explain, Open, Opened, WorkerLost
from gpuprof.measure.session import explain_request
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import Verification

pytestmark = pytest.mark.deep

#: Of each symptom some, since a device that is lost takes seconds to open again.
SHOWN = ("fault_read_past", "hang_lock", "wrong_tail")


@pytest.fixture(scope="module")
def run(run_broken):
    options = ("--sizes", SIZE, "--timeout", "8", "--reference", "none", "--table")
    return run_broken("run", str(FOLDER), "-k", ",".join(SHOWN), *options)


@pytest.mark.parametrize("name", SHOWN)
def test_a_row_of_a_device_says_what_the_executor_found(run, name):
    rows, _ = run
    check_row(rows[name], next(planted for planted in PLANTED if planted.name == name))


def test_the_terminal_shows_it(run):
    _, shown = run
    words = " ".join(shown.split())
    assert (
        "Illegal address: line 17, thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes past the end of x"
        in words
    )
    assert "(found by the executor at size 43x44)" in words


SCALE = """
extern "C" __global__ void scale(int n, float a, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i / 1000 * 1000 + i % 999];
}
"""


def test_a_call_with_arrays_of_its_own_is_explained_with_these(monkeypatch):
    """On a device that found it wrong; its size is the only one there is."""
    monkeypatch.setattr(fake_worker, "__file__", str(Path(__file__).with_name("broken_device.py")))
    fake_worker.take_the_workers_place(monkeypatch.setattr)
    x = np.linspace(1, 2, 3000, dtype=np.float32)
    case = gpuprof.profile(
        gpuprof.Source(SCALE.replace("scale", "wrong_scale"), "wrong_scale"),
        args={"n": x.size, "a": 3.0, "x": x, "y": None},
        expect={"y": 3 * x},
        grid="cdiv(n, block_x)",
        block=128,
        device=0,
    ).case()
    assert "Wrong store: line 6, thread (103, 0, 0) of block (7, 0, 0) stores 3 to y[999]" in case.reason
    assert case.explanation.offset == 4 * 999


UNORDERED = kernel_file("unordered")


@pytest.mark.parametrize(
    ("factor", "why"),
    [(3, "The executor cannot tell why: it finds the results wrong, too"), (2, "nothing wrong")],
)
def test_results_without_an_order_tell_no_store(tmp_path, explained, factor, why):
    (tmp_path / "doubled.cu").write_text(UNORDERED.replace("FACTOR", str(factor)))
    found, why_not = explained(ladder_of([tmp_path / "doubled.cu"]), "doubled", (100,), "wrong")
    assert found is None
    assert why in why_not


@pytest.fixture
def row():
    """A case and what a device said of it."""
    ladder = ladder_of([FOLDER])
    case = Case.of(ladder.find("wrong_value"), Problem.of(ladder.operation, (75, 140)))
    verification = Verification(1.0, 1.0, 0.0, 10_500, 1, "wrong", array="y", first_wrong=427)
    measured = unmeasured(case, case.kernel, "incorrect", "1 element is wrong.", "it is wrong")
    return case, replace(measured, verification=verification)


@pytest.mark.parametrize(
    ("outcome", "backend", "died", "question"),
    [
        ("incorrect", "gpu", False, ("wrong", "y", 427, False)),
        ("incorrect", "sim", False, ("wrong", "y", 427, True)),
        ("failed", "gpu", True, ("fault", "y", 427, False)),
        ("timeout", "gpu", True, ("hang", "y", 427, False)),
        ("failed", "gpu", False, None),  # such as one that could not be launched
        ("failed", "sim", True, None),
        ("timeout", "sim", True, ("hang", "y", 427, False)),
        ("ok", "gpu", False, None),
        ("skipped", "gpu", False, None),
    ],
)
def test_what_is_asked_of_a_row(row, outcome, backend, died, question):
    case, measured = row
    asked = explain_request(case, replace(measured, outcome=outcome), backend, died=died)
    assert (asked and (asked.symptom, asked.output, asked.element, asked.as_run)) == question


def slot_of(case, worker=None):
    """One that ran a case, and is to explain it."""
    request = Open(device="0", arch=None, seed=0, seconds_per_case=0.1)
    shared = session._Session([case], request, 0, lambda _: None, lambda *_: None, False, None)
    return session._Slot(shared, None, worker)


def test_an_explanation_that_takes_too_long_costs_nothing_of_the_row(row, monkeypatch):
    case, measured = row

    def ask(self, request, end):
        raise WorkerLost("no answer within 20 s", "timeout")

    monkeypatch.setattr(ExecutorProcess, "ask", ask)
    opened = Opened(load_card("h200"), "gpu", None, {}, 1 << 30)
    explained = slot_of(case)._explained(measured, Explain(case, "wrong", 1.0), opened)
    lost = "the process that was to explain it was lost: no answer within 20 s"
    assert explained.explanation_reason == lost
    assert replace(explained, explanation_reason=measured.explanation_reason) == measured


def test_the_worker_that_ran_a_case_is_not_asked_twice(row):
    case, measured = row
    asked = []

    class Lane:
        def ask(self, request, timeout_s):
            asked.append(request)
            raise WorkerLost("it was killed by SIGKILL", taken=True)

        def close(self):
            closed.append(self)

    opened = Opened(load_card("h200"), "sim", None, {}, 1 << 30)
    request = Explain(case, "wrong", 1.0, as_run=True)
    closed = []
    found = slot_of(case, Lane())._explained(measured, request, opened)
    assert (len(asked), len(closed)) == (1, 1)
    assert "it was killed by SIGKILL" in found.explanation_reason


def test_a_run_that_ends_keeps_the_row_as_it_was_measured(row):
    case, measured = row
    slot = slot_of(case)
    slot.close()
    opened = Opened(load_card("h200"), "gpu", None, {}, 1 << 30)
    explained = slot._explained(measured, Explain(case, "wrong", 1.0), opened)
    assert explained.reason == measured.reason
    assert explained.explanation is None


def test_a_search_ends_with_its_time():
    with pytest.raises(OutOfTime), time_limit(0.1):
        time.sleep(60)
    with time_limit(60):
        pass


def test_smaller_sizes_keep_what_is_left_over_behind_full_tiles(row):
    case, _ = row
    found = [smaller.sizes for smaller in smaller_problems(replace(case.problem, sizes=(4099, 1 << 20)))]
    assert found[0] == (35, 64)  # what is larger stays so
    assert all(rows % 32 == 3 and columns % 32 == 0 for rows, columns in found)
    assert found == sorted(found)
    assert (4099, 1 << 20) not in found
    assert [smaller.sizes for smaller in smaller_problems(replace(case.problem, sizes=(7, 200)))] == [
        *((7, 40), (7, 72))
    ]
    long = [smaller.sizes for smaller in smaller_problems(replace(case.problem, sizes=(10**8, 10**9)))]
    assert long[-1] == (10**8, 1 << 28)  # the largest is no thousandth of what is asked for
