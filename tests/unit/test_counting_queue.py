# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is counted behind the back of what is measured: by how many processes, when, and how often."""

import threading

import pytest
from problem_support import Gemm
from processes import wait_for
from unit_support import DEVICE

from gpuprof.backends.base import Findings
from gpuprof.backends.gpu import backend
from gpuprof.backends.select import gpu_ahead
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure import counting, side_by_side
from gpuprof.measure import process as beside
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.counting import Counting
from gpuprof.measure.protocol import Count, Open, Opened, Sized
from gpuprof.measure.request import Selection, make_request
from gpuprof.measure.side_by_side import Cards
from gpuprof.options import RunOptions

LADDER = shipped_ladder("gemm")
PATIENCE_S = 60.0


class Executors:
    """In the place of worker processes: each answers as soon as it may."""

    def __init__(self):
        self.opened = 0
        self.counted = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def __call__(self, request):
        self.opened += 1
        return self

    def ask(self, request, timeout_s):
        assert isinstance(request, Count)
        assert self.may_answer.wait(PATIENCE_S)
        self.counted.append((request.case.name, request.case.problem.label))
        return Findings("ok")

    def close(self):
        pass

    def wait_for(self, count):
        """Until so many cases are counted."""
        wait_for(lambda: len(self.counted) >= count, PATIENCE_S)


@pytest.fixture
def executors(monkeypatch):
    found = Executors()
    monkeypatch.setattr(beside, "WorkerProcess", found)
    monkeypatch.setattr(counting, "with_counts", lambda measurement, answer, device: measurement)
    return found


def begin(told, expected=()):
    request = Open(device="0", arch=None, seed=0, seconds_per_case=0.1)
    return Counting(request, DEVICE, lambda index, _: told.append(index), expected=expected)


def case_of(name, size=32):
    kernel = LADDER.find(name)
    return Case.of(kernel, Gemm(size, size, size), alternatives=tuple(LADDER.kernels))


def add(behind, index, case):
    behind.add(index, case, unmeasured(case, case.kernel, "ok", None, "-"))


def test_nothing_is_counted_while_it_is_paused(executors):
    told = []
    behind = begin(told)
    executors.may_answer.clear()
    add(behind, 0, case_of("naive"))
    threading.Timer(0.1, executors.may_answer.set).start()
    with behind.paused():
        before = list(executors.counted)
        add(behind, 1, case_of("smem_tiled"))
        assert executors.counted == before  # what was under way has ended
        assert len(before) <= 1
    behind.wait()
    behind.close()
    assert sorted(told) == [0, 1]


@pytest.mark.parametrize(
    ("cores", "gib", "kernels", "processes"),
    [(2, 64, 40, 1), (16, 64, 40, 12), (8, 64, 40, 7), (16, 64, 3, 3), (16, 5, 40, 4)],
)
def test_processes_that_count_find_room_and_are_there_before_the_first_case(
    executors, monkeypatch, cores, gib, kernels, processes
):
    monkeypatch.setattr(counting, "usable_cores", lambda: cores)
    monkeypatch.setattr(counting, "available_memory_bytes", lambda: gib << 30)
    cases = [case_of("naive", 32 + each) for each in range(kernels)]
    behind = begin([], cases)
    with behind.paused():
        assert executors.opened == processes
    behind.close()


def test_counting_begins_before_a_time_is_there(executors):
    told = []
    wrong, right = case_of("naive"), case_of("smem_tiled")
    behind = begin(told, [wrong, right])
    executors.wait_for(2)
    assert behind.left == 0
    assert not told
    add(behind, 1, right)
    behind.wait()
    behind.close()
    assert told == [1]
    assert len(executors.counted) == 2


def test_what_was_not_measured_is_not_waited_for(executors):
    told = []
    executors.may_answer.clear()
    first, second = case_of("naive"), case_of("smem_tiled")
    behind = begin(told, [first, second])
    assert behind.left == 0
    add(behind, 0, first)
    assert behind.left == 1
    executors.may_answer.set()
    behind.wait()
    behind.close()
    assert told == [0]


def test_large_sizes_and_last_rungs_are_counted_first(executors, monkeypatch):
    monkeypatch.setattr(counting, "usable_cores", lambda: 1)
    behind = begin([], [case_of(name, size) for size in (32, 64) for name in ("naive", "reg_8x8")])
    executors.wait_for(4)
    behind.close()
    assert executors.counted == [("reg_8x8", "64"), ("naive", "64"), ("reg_8x8", "32"), ("naive", "32")]


@pytest.mark.parametrize("opens", [True, False])
def test_a_gpu_is_counted_for_before_it_is_ready_and_not_where_it_never_is(executors, monkeypatch, opens):
    class Gpu:
        opened = Opened(DEVICE, "gpu" if opens else "sim", None, {}, 1 << 40)

        def __init__(self, request, on_device):
            on_device(DEVICE)
            executors.wait_for(1)

        def ask(self, request, timeout_s):
            return Sized((1,) * len(request.problems))

        def tell(self, request):
            pass

        close = executors.close

    monkeypatch.setattr(side_by_side, "HERE", Gpu)
    request = make_request(LADDER, [Selection(LADDER.find("naive"))], [(32, 32, 32)])
    cards = Cards(request, RunOptions(device="auto"), counts=True)
    (card,) = cards.cards
    assert (card.counting is not None) == opens
    cards.close()
    assert executors.counted == [("naive", "32")]


@pytest.mark.parametrize(
    ("device", "arch"), [("auto", "sm_80"), ("0", "sm_80"), ("sim", None), ("none", None)]
)
def test_a_run_without_a_gpu_asks_for_none_ahead(monkeypatch, device, arch):
    monkeypatch.setattr(backend, "unmeasured_device", lambda ordinal: DEVICE)
    assert gpu_ahead("auto", None) == DEVICE
    assert gpu_ahead(device, arch) is None
