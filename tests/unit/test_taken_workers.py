# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Workers that are taken from outside, as for want of memory: whatever they were asked is asked again."""

import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from problem_support import Gemm
from unit_support import DEVICE

from gpuprof.errors import BackendUnavailable
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure import process, starting
from gpuprof.measure.case import Case
from gpuprof.measure.counting import findings_in
from gpuprof.measure.process import TRIES_WHEN_TAKEN, ExecutorProcess, WorkerProcess
from gpuprof.measure.protocol import Open, Size, WorkerLost
from gpuprof.tuning.tuner import WorkerPool

NONE = Open(device="none", arch="sm_86", seed=0, seconds_per_case=0.1)
TILED = shipped_ladder("gemm").find("smem_tiled")


def started_processes(monkeypatch, ends, times):
    """Replace the first processes by programs that end so.

    Returns:
        What was started so far.
    """
    started = []
    popen = starting.subprocess.Popen

    def start(command, **options):
        started.append(command)
        return popen([sys.executable, "-c", ends] if len(started) <= times else command, **options)

    monkeypatch.setattr(starting, "subprocess", SimpleNamespace(Popen=start, PIPE=starting.subprocess.PIPE))
    return started


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def test_worker_that_is_taken_while_it_starts_is_replaced(monkeypatch):
    started = started_processes(monkeypatch, KILLED, TRIES_WHEN_TAKEN - 1)
    worker = WorkerProcess(NONE)
    assert worker.opened.backend == "none"
    assert len(started) == TRIES_WHEN_TAKEN
    worker.close()


def test_process_that_is_started_ahead_is_the_next_worker_and_ends_where_nobody_wants_it(monkeypatch):
    started = started_processes(monkeypatch, KILLED, 0)
    with starting.started_ahead():
        starting.wake_ahead("auto")
        worker = WorkerProcess(NONE)
        assert len(started) == 1
    assert worker.ask(Size(()), 60.0).bytes_needed == ()
    worker.close()
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    before = children.read_text()
    with starting.started_ahead():
        assert children.read_text() != before
    assert children.read_text() == before


def test_process_beside_what_measures_stands_back_from_its_start_on_and_measures_nothing(monkeypatch):
    started = started_processes(monkeypatch, KILLED, 0)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with starting.started_ahead():
        starting.start_ahead(2, beside=True)
        first, second = (one.process.pid for one in starting._ahead)
        levels = [os.getpriority(os.PRIO_PROCESS, pid) - own for pid in (first, second)]
        assert levels == [0, starting._NICENESS]
        taken = [starting.take(request) for request in (NONE, NONE, Open(executes=DEVICE))]
        assert (taken[0].pid, taken[2].pid) == (first, second)
        for process in taken:
            starting.end(process)
    assert len(started) == 3


@pytest.mark.parametrize(
    ("words", "gpus"),
    [
        *((words, [[]]) for words in ("gemm", "run mine.cu", "run mine.cu -o cluster", "gemm --device 0,1")),
        *((f"gemm -k naive {named}", [["3"]]) for named in ("--device 3", "--device=3 --quiet")),
        ("gemm --device sim:h200", [["sim"]]),
        *((words, []) for words in ("", "list", "--help", "gemm -h", "gemm --cluster=local:2", "tune gemm")),
        *((words, []) for words in ("__pycache__ ..", 300 * "a")),
    ],
)
def test_command_line_that_measures_here_starts_its_worker_before_it_is_read(monkeypatch, words, gpus):
    started = started_processes(monkeypatch, KILLED, 0)
    starting.start_for(words.split())
    assert [command[4:] for command in started] == gpus
    with starting.started_ahead():
        assert len(started) == 1


@pytest.mark.parametrize(
    ("words", "counting"),
    [
        *(("gemm -k a,b --device 0", 2), ("gemm -k a --device=0 --kernel b,c", 3), ("gemm --device 0", 7)),
        *((f"gemm {words}", 0) for words in ("--device 0 --no-lines", "-k a,b", "--device sim:h200")),
    ],
)
def test_some_that_count_start_with_the_worker_where_there_are_cores(monkeypatch, words, counting):
    monkeypatch.setattr(starting, "usable_cores", lambda: 16)
    started = started_processes(monkeypatch, KILLED, 0)
    starting.start_for(words.split())
    with starting.started_ahead():
        assert [command[4:] for command in started[1:]] == [["sim"]] * counting
        assert [one.beside for one in starting._ahead] == [False, *[True] * counting]
        told = []
        monkeypatch.setattr(starting, "tell", lambda process, text: told.append((process, text)))
        starting.wake_ahead("0")
        assert told == [(starting._ahead[0].process, "0\n")]


@pytest.mark.parametrize(
    ("ends", "tries", "words"),
    [
        (KILLED, TRIES_WHEN_TAKEN, "killed by SIGKILL"),
        ("raise SystemExit('no driver today')", 1, "status 1: no driver today"),
        ("print('{\"type\": \"Ope', end=''); raise SystemExit('no')", 1, "status 1: no"),
    ],
)
def test_worker_that_never_starts_is_an_environment_error(monkeypatch, ends, tries, words):
    started = started_processes(monkeypatch, ends, 99)
    with pytest.raises(BackendUnavailable, match=f"could not start: .*{words}"):
        WorkerProcess(NONE)
    assert len(started) == tries


LOST = "its process was lost: the worker process was killed by SIGKILL"


@pytest.mark.parametrize(
    ("deaths", "taken", "tries", "answer"),
    [(2, True, 3, "an answer"), (TRIES_WHEN_TAKEN, True, TRIES_WHEN_TAKEN, LOST), (1, False, 1, LOST)],
)
def test_process_that_is_taken_is_replaced_and_asked_again_in_the_time_of_one(
    monkeypatch, deaths, taken, tries, answer
):
    asked, closed = [], []

    def ask(request, timeout_s):
        asked.append(timeout_s)
        if len(asked) <= deaths:
            raise WorkerLost("the worker process was killed by SIGKILL", taken=taken)
        return "an answer"

    worker = SimpleNamespace(ask=ask, close=lambda: closed.append(worker))
    monkeypatch.setattr(process, "WorkerProcess", lambda request: worker)
    assert ExecutorProcess(NONE).answer(Size(()), 20.0) == answer
    assert (len(asked), len(closed)) == (tries, min(deaths, tries))
    assert 20 >= asked[0] >= asked[-1]


def test_what_a_lost_process_costs_is_told():
    told = []
    case = Case.of(TILED, Gemm(32, 32, 32))
    with WorkerPool(DEVICE, NONE, workers=1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExecutorProcess, "answer", lambda *_: LOST)
        pool.build([case], lambda index, answer: told.append(answer.reason), time.monotonic() + 60)
    assert told == [f"It could not be compiled: {LOST}."]
    assert findings_in(LOST).reason == f"the executor did not count it: {LOST}"
