# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Work that is handed to seats side by side: who gets it, and what becomes of it where a seat ends."""

import threading

import pytest

from gpuprof.measure.pool import Pool
from gpuprof.measure.protocol import PlaceLost


class Seat:
    """Notes what it did; one that is `lost` loses its place with its first work."""

    def __init__(self, lost=False):
        self.lost = lost
        self.done = []
        self.closed = threading.Event()

    def open(self):
        if self.lost:
            raise PlaceLost("never there")

    def close(self):
        self.closed.set()

    def do(self, name):
        if self.lost:
            raise PlaceLost("its machine is gone")
        self.done.append(name)


def pool_of(*seats):
    pool = Pool(seats, ahead=True)
    for name in ("a1", "b1", "a2", "b2", "a3"):
        pool.add(name[0], lambda seat, name=name: seat.do(name))
    return pool


def test_a_lost_place_leaves_its_work_to_another():
    lost, good = Seat(lost=True), Seat()
    pool = pool_of(lost, good)
    pool.settle()
    assert sorted(good.done) == ["a1", "a2", "a3", "b1", "b2"]
    pool.close()
    assert lost.closed.is_set()
    assert good.closed.is_set()


def test_without_any_place_it_is_told_why():
    pool = pool_of(Seat(lost=True), Seat(lost=True))
    with pytest.raises(PlaceLost, match=r"^its machine is gone$"):
        pool.settle()
    pool.close()


def test_a_worker_gets_the_work_of_the_kernels_that_it_knows():
    seats = Seat(), Seat()
    both = threading.Barrier(2)
    pool = Pool(seats, ahead=False)
    for kernel in "ab":
        pool.add(kernel, lambda seat, kernel=kernel: (both.wait(60), seat.do(kernel)))
    pool.settle()
    with pool.paused():
        for name in ("a1", "b1", "a2", "b2"):
            pool.add(name[0], lambda seat, name=name: (both.wait(60), seat.do(name)))
    pool.settle()
    pool.close()
    assert {"".join(seat.done) for seat in seats} == {"aa1a2", "bb1b2"}


def test_what_work_raises_is_raised_where_it_is_waited_for():
    pool = Pool([Seat()], ahead=False)
    pool.add("a", lambda seat: 1 // 0)
    pool.add("a", lambda seat: seat.do("never"))
    with pytest.raises(ZeroDivisionError):
        pool.settle()
    pool.close()
