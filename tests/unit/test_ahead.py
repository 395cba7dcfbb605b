# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Work that is begun in the background before anybody needs it."""

import threading

import pytest
from problem_support import Gemm

from gpuprof.backends.gpu import ahead
from gpuprof.backends.gpu.ahead import Ahead
from gpuprof.problems.problem import Problem


def test_what_was_begun_is_done_once_elsewhere_and_handed_over_once():
    threads = []

    def work(value):
        threads.append(threading.current_thread())
        return [value]

    begun = Ahead()
    begun.begin(work, 3)
    begun.begin(work, 3)
    assert begun.result(work, 3) == [3]
    assert [thread is threading.main_thread() for thread in threads] == [False]
    assert begun.result(work, 3) == [3]
    assert [thread is threading.main_thread() for thread in threads] == [False, True]


def test_what_fails_in_the_background_fails_where_it_is_needed():
    def work():
        raise MemoryError(threading.current_thread() is threading.main_thread())

    begun = Ahead()
    begun.begin(work)
    with pytest.raises(MemoryError) as failed:
        begun.result(work)
    assert failed.value.args == (True,)


@pytest.mark.parametrize(("room", "is_begun"), [(1 << 30, True), (1 << 10, False)])
def test_inputs_are_begun_where_the_host_has_room(monkeypatch, room, is_begun):
    monkeypatch.setattr(ahead, "available_memory_bytes", lambda: room)
    begun, threads = Ahead(), []
    made = Problem.inputs

    def inputs(problem, seed):
        threads.append(threading.current_thread())
        return made(problem, seed)

    monkeypatch.setattr(Problem, "inputs", inputs)
    problem = Gemm(32, 32, 32)
    begun.begin_inputs(Problem.inputs, problem, 7)
    found = begun.result(Problem.inputs, problem, 7)
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in made(problem, 7).items()
    }
    assert [thread is threading.main_thread() for thread in threads] == [not is_begun]
