# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Replies of a cluster's worker that are done, but do not come: slow ones, and those that went with it."""

import threading
from types import SimpleNamespace

import pytest

from gpuprof.measure.cluster.workers import ClusterWorker
from gpuprof.measure.protocol import WorkerDied, WorkerEnded, WorkerVanished, encode


class Fetched:
    """A reply that is done, and has not come yet."""

    status = "finished"

    def __init__(self, waits):
        self.waits = waits

    def add_done_callback(self, call):
        call(self)

    def release(self):
        pass

    def result(self, timeout):
        assert 0 < timeout < 60
        if not self.waits:
            return encode(WorkerEnded("it was killed"))
        self.waits -= 1
        raise TimeoutError


def asking(*, there=True):
    worker = ClusterWorker.__new__(ClusterWorker)
    connection = SimpleNamespace(is_there=lambda address: there, lost=None)
    worker._slot = SimpleNamespace(connection=connection, member=SimpleNamespace(name="w0"))
    worker._address, worker._closed = "tcp://there:1", threading.Event()
    return worker


def test_a_reply_that_went_with_its_worker_is_not_waited_for():
    with pytest.raises(WorkerVanished, match="w0 at tcp://there:1 was lost"):
        asking(there=False)._answer(Fetched(waits=1))


def test_a_reply_that_is_slow_is_waited_for():
    with pytest.raises(WorkerDied, match="it was killed"):
        asking()._answer(Fetched(waits=2))


def test_a_reply_is_not_waited_for_when_the_run_ends():
    worker = asking()
    worker._closed.set()
    with pytest.raises(WorkerDied, match="the run ends"):
        worker._answer(Fetched(waits=1))
