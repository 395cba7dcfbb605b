# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case never hurts another: whatever a worker does, every case gets its row and the rest is measured."""

import contextlib
import os
import signal
import time
import types
from pathlib import Path
from threading import Timer

import fake_worker
import pytest
from fake_runs import Watcher, fake_workers, options, request_of, runner
from hurried_clock import HurriedClock
from problem_support import Transpose, ladder
from processes import running, wait_for
from unit_support import DEVICE, parse_kernel

from gpuprof.errors import BackendUnavailable
from gpuprof.measure import process, session, side_by_side
from gpuprof.measure.case import Case
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import Open, Size, WorkerLost
from gpuprof.measure.request import plan_cases
from gpuprof.measure.run import measure
from gpuprof.reading import read_run
from gpuprof.records import replace

pytestmark = pytest.mark.deep

NONE = Open(device="none", arch="sm_86", seed=0, seconds_per_case=0.1)


class Reader(Watcher):
    """Reads the results file back after every case."""

    def __init__(self, path, on_finished=lambda done: None):
        super().__init__(on_finished)
        self.path = path
        self.on_disk = []

    def opened(self, opened, cases):
        run = read_run(self.path)
        assert (run.complete, run.cases) == (False, ())
        self._on_finished(0)

    def finished(self, measurement):
        run = read_run(self.path)
        self.on_disk.append([case.kernel for case in run.cases])
        assert run.cases[-1] == measurement
        assert not run.complete
        super().finished(measurement)


@pytest.fixture
def run_kernels(tmp_path, monkeypatch):
    """Measures kernels `k0_WHAT`, `k1_WHAT`, … that do as named; gives the run and its watcher."""
    measured = runner(tmp_path, monkeypatch, *(0.01,) * 3)

    def run(*whats, on_finished=lambda done: None, starts=99, **more):
        monkeypatch.setenv("FAKE_WORKER_STARTS", str(starts))
        return measured(*whats, watcher=Reader(tmp_path / "results.json", on_finished), **more)

    return run


def outcomes(run):
    return [case.outcome for case in run.cases]


def test_healthy_run_needs_one_worker_and_is_kept_case_by_case(run_kernels):
    run, watcher = run_kernels("a", "b", "c")
    assert outcomes(run) == ["ok"] * 3
    assert run.complete
    assert watcher.workers == 1
    assert watcher.names == ["k0_a", "k1_b", "k2_c"]
    assert watcher.on_disk == [["k0_a"], ["k0_a", "k1_b"], ["k0_a", "k1_b", "k2_c"]]
    assert run.cases[0].throughput.gbps == pytest.approx(2 * 64 * 64 * 4 / 10 / 1e3)
    assert run.cases[0].throughput_reason is None
    assert run.cases[0].resources.registers_per_thread > 0
    assert run.cases[0].occupancy.theoretical_pct > 0


def test_while_a_case_is_compiled_those_behind_it_are_measured(run_kernels):
    run, watcher = run_kernels("a", "late", "b", "late", "c")
    assert watcher.names == ["k0_a", "k2_b", "k4_c", "k1_late", "k3_late"]
    assert [case.kernel for case in run.cases] == ["k0_a", "k1_late", "k2_b", "k3_late", "k4_c"]


def test_of_several_workers_the_first_take_what_is_large(tmp_path):
    cases = dict(enumerate(plan_cases(request_of(tmp_path, ["k0_a", "k1_a"], "32,64"))))
    order = [
        cases[index].problem.label
        for _, one in session._in_order(cases, DEVICE, beside=True)
        for index in one
    ]
    assert order == ["64", "64", "32", "32"]


@pytest.mark.parametrize("last", ["good", "crashes"])
def test_what_a_device_reaches_is_measured_behind_the_cases(run_kernels, last):
    run, _ = run_kernels("good", last)
    assert [device.measured_copy_bandwidth_gbps for device in run.devices] == [1234.0]


class Uncounted:
    """In the place of what counts: notes what is asked of it, and has everything left to count."""

    left = 1

    def __init__(self, events):
        self.events = events

    def __call__(self, *_, expected, **__):
        self.events.append(("expects", len(expected)))
        return self

    def add(self, index, case, measurement):
        self.events.append(("add", case.name))

    def wait(self):
        self.events.append(("wait",))

    def close(self):
        self.events.append(("close",))

    @contextlib.contextmanager
    def paused(self):
        self.events.append(("pause",))
        yield
        self.events.append(("resume",))


def test_counts_are_waited_for_behind_all_times_and_the_times_are_told_before(tmp_path, monkeypatch):
    fake_worker.take_the_workers_place(monkeypatch.setattr, fork=True)
    events = []
    monkeypatch.setattr(side_by_side, "Counting", Uncounted(events))
    monkeypatch.setattr(session, "on_host", lambda case: case.is_reference)
    monkeypatch.setattr(session._Slot, "reach", lambda slot, on_reached: events.append(("reach",)))
    request = request_of(tmp_path, ["k0_a", "k1_a"], "32,64", references="all")

    def timed(run):
        events.append(("timed", len(run.cases), {case.outcome for case in run.cases}))

    watcher = types.SimpleNamespace(
        timed=timed,
        opened=lambda opened, cases: None,
        turn=lambda name: None,
        started=lambda case: events.append(("start", case.name)),
        finished=lambda done: None,
    )
    run = measure(request, options(lines=True), watcher)
    hosts = {case.kernel for case in run.cases if case.is_reference}
    assert hosts
    assert events[0] == ("expects", len(run.cases))
    timed_event = ("timed", len(run.cases), {"ok", "skipped"})
    assert events[-4:] == [timed_event, ("reach",), ("wait",), ("close",)]
    assert events.count(("wait",)) == 1
    started = [place for place, event in enumerate(events) if event[0] == "start" and event[1] in hosts]
    assert [events[place + 1 : place + 3] for place in started] == [[("pause",), ("resume",)]] * len(started)
    assert events.count(("pause",)) == len(started)


def test_a_reference_among_the_cases_to_prepare_costs_no_worker(run_kernels):
    run, watcher = run_kernels("a", "b", references="all")
    assert any(case.is_reference for case in run.cases)
    assert outcomes(run)[:2] == ["ok"] * 2
    assert watcher.workers == 1


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("crashes", "was killed by SIGSEGV: assertion failed in the driver."),
        ("exits", "ended with status 7: out of something."),
        ("raises", "ended with status 1: RuntimeError: a bug in the backend."),
    ],
)
def test_worker_that_dies_is_a_row_and_the_rest_completes(run_kernels, what, reason):
    run, watcher = run_kernels("good", what, "good", what)
    assert outcomes(run) == ["ok", "failed", "ok", "failed"]
    assert run.complete
    assert run.cases[1].reason == f"It crashed its process: the worker process {reason}"
    assert run.cases[1].timing is None
    assert run.cases[1].timing_reason == "the case did not end"
    assert not run.cases[1].over_limit
    assert len(watcher.on_disk) == 4


def test_answer_that_makes_no_sense_is_a_row_and_the_rest_completes(run_kernels):
    run, _ = run_kernels("good", "lies", "good")
    assert outcomes(run) == ["ok", "failed", "ok"]
    assert "its reply is invalid (measurement.verification.bound: " in run.cases[1].reason
    assert run.complete


def test_first_case_that_kills_its_worker_is_tried_alone_before_it_is_blamed(run_kernels):
    run, watcher = run_kernels("crashes", "good")
    assert outcomes(run) == ["failed", "ok"]
    assert watcher.workers == 3


def test_case_that_never_came_back_names_the_kernel_that_was_chosen_for_it():
    choices = '[[choose]]\nkernel = "naive_col"\nwhen = "nx < 100"'
    source = f'/*gpuprof\ntitle = "x"\nproblem = "transpose"\n{choices}\n*/\n'
    chooser = parse_kernel(source, Path("mine.cu"))
    case = Case.of(chooser, Transpose(64, 64), alternatives=ladder("transpose"))
    lost = session.ended(case, DEVICE, "timeout", "It hung.")
    found = (lost.kernel, lost.chosen, lost.block, lost.reason)
    assert found == ("mine", "naive_col", (16, 16, 1), "It hung.")
    lost = session.ended(replace(case, problem=Transpose(100, 64)), DEVICE, "failed", "It fell.")
    assert (lost.kernel, lost.chosen, lost.has_launch, lost.reason) == ("mine", "", False, "It fell.")


def test_hang_is_a_timeout_and_the_rest_completes(run_kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("FAKE_WORKER_HANGS", str(tmp_path / "hangs"))
    monkeypatch.setattr(process, "time", HurriedClock(tmp_path / "hangs"))
    run, _ = run_kernels("good", "hangs", "crashes", "hangs", "good")
    assert outcomes(run) == ["ok", "timeout", "failed", "timeout", "ok"]
    reason = "The case did not end within 300 s and was stopped. Allow more with --timeout"
    assert run.cases[1].reason.startswith(reason)
    assert run.complete


def test_lost_context_gets_a_new_worker(run_kernels):
    run, watcher = run_kernels("good", "loses_context", "good", "good")
    assert outcomes(run) == ["ok", "failed", "ok", "ok"]
    assert run.cases[1].reason == "CUDA_ERROR_ILLEGAL_ADDRESS: the kernel wrote outside its arrays."
    assert run.cases[1].resources is not None
    assert watcher.workers == 2


def test_cases_that_come_later_find_the_worker_there(tmp_path, monkeypatch):
    workers = fake_workers(tmp_path, monkeypatch)
    first, wrong, lost, last = plan_cases(
        request_of(tmp_path, ["k0_good", "k1_wrong", "k2_loses_context", "k3_good"]), references=False
    )
    later, done = [{7: last}, {5: wrong, 6: lost}], {}

    def more():
        assert len(done) == (1, 3, 4)[2 - len(later)]
        return later.pop() if later else {}

    session.run_cases({0: first}, None, Open.of(options(), ()), done.__setitem__, more=more)
    outcomes = {index: case.outcome for index, case in done.items()}
    assert outcomes == {0: "ok", 5: "incorrect", 6: "failed", 7: "ok"}
    assert len(workers()) == 2


def test_failures_that_leave_the_context_alone_keep_the_worker(run_kernels):
    run, watcher = run_kernels("too_big", "unfit", "wrong", "good")
    assert outcomes(run) == ["failed", "skipped", "incorrect", "ok"]
    assert [case.over_limit for case in run.cases] == [True, False, False, False]
    assert run.cases[1].reason == "The backend cannot execute this kernel."
    assert run.cases[2].throughput is None
    assert run.cases[2].timing is None
    assert watcher.workers == 1


def test_output_of_a_kernel_does_not_disturb_the_answers(run_kernels):
    run, _ = run_kernels("prints", "good")
    assert outcomes(run) == ["ok", "ok"]


def test_worker_that_cannot_be_replaced_ends_the_run_and_keeps_what_was_measured(run_kernels, tmp_path):
    with pytest.raises(BackendUnavailable, match="The GPU has fallen off the bus"):
        run_kernels("good", "loses_context", "good", starts=1)
    kept = read_run(tmp_path / "results.json")
    assert [case.kernel for case in kept.cases] == ["k0_good", "k1_loses_context"]
    assert not kept.complete
    assert len((tmp_path / "workers.log").read_text().splitlines()) == 1 + len(session._PAUSES_S) + 1


def test_worker_that_a_crowded_card_refuses_a_few_times_is_replaced_all_the_same(run_kernels, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER_REFUSALS", "3")
    run, watcher = run_kernels("good", "loses_context", "good", starts=1)
    assert outcomes(run) == ["ok", "failed", "ok"]
    assert watcher.workers == 5


@pytest.mark.parametrize("when", [0, 1])
def test_worker_that_dies_while_idle_is_no_cases_fault(run_kernels, tmp_path, when):
    def kill(done):
        if done == when:
            worker = int((tmp_path / "workers.log").read_text())
            os.kill(worker, signal.SIGKILL)
            wait_for(lambda: worker not in running(), 300)

    run, watcher = run_kernels("good", "good", "good", on_finished=kill)
    assert outcomes(run) == ["ok"] * 3
    assert run.complete
    assert watcher.workers == 2


def test_worker_that_dies_before_the_first_case_is_an_environment_error(run_kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("FAKE_WORKER_SIZES_NOTHING", "1")
    with pytest.raises(BackendUnavailable) as caught:
        run_kernels("good")
    assert caught.value.what == (
        "The worker process was lost before the first case: the worker process ended with status 9."
    )
    assert not (tmp_path / "results.json").exists()


# The worker process itself.


@pytest.fixture
def worker():
    worker = WorkerProcess(NONE)
    yield worker
    worker.close()


def test_worker_answers_in_order(worker):
    for n in (10, 20, 30):
        assert worker.ask(Size((Transpose(n, n), Transpose(1, 1))), 30).bytes_needed == (8 * n * n, 8)


def test_worker_leaves_ctrl_c_to_the_run_that_started_it(worker):
    """A terminal sends it to both; what the run has measured is the run's to save."""
    worker._process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    assert worker.ask(Size((Transpose(1, 1),)), 30).bytes_needed == (8,)


def test_worker_that_gives_no_answer_is_killed(worker):
    worker._process.send_signal(signal.SIGSTOP)
    with pytest.raises(WorkerLost, match=r"no answer within 0\.2 s"):
        worker.ask(Size(()), 0.2)
    assert worker._process.poll() == -signal.SIGKILL


def test_what_only_computes_has_its_seconds_of_a_processor(monkeypatch):
    """On a busy machine the executor gets to its end later, and is not stopped for that."""
    worker = WorkerProcess(Open(device="sim"))
    monkeypatch.setattr(worker, "_processor_s", lambda: 0.0)  # it never has its turn
    monkeypatch.setattr(process, "_CROWDED", 100)
    worker._process.send_signal(signal.SIGSTOP)
    resume = Timer(1.0, worker._process.send_signal, (signal.SIGCONT,))
    resume.start()
    assert len(worker.ask(Size((Transpose(1, 1),)), 0.5).bytes_needed) == 1
    resume.join()
    worker._process.send_signal(signal.SIGSTOP)
    with pytest.raises(WorkerLost, match=r"no answer within 0\.01 s"):  # but not for ever
        worker.ask(Size(()), 0.01)


def test_modules_of_the_current_directory_do_not_shadow_a_workers(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    worker = WorkerProcess(NONE)
    worker.close()
