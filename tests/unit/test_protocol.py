# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Messages between a run and its worker: one line each, the same on both sides."""

import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_support import DEVICE, values_of

from gpuprof.measure.cluster.workers import ClusterWorker
from gpuprof.measure.protocol import (
    MESSAGES,
    Open,
    Opened,
    WorkerLost,
    decode,
    encode,
)

pytestmark = pytest.mark.deep


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("kind", MESSAGES.values(), ids=list(MESSAGES))
@given(data=st.data())
def test_any_message_survives_its_line(kind, data):
    message = data.draw(values_of(kind))
    line = encode(message)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert line.isascii()
    again = decode(line)
    assert type(again) is kind
    assert repr(again) == repr(message)


def test_all_messages_are_covered():
    asked = {"Open", "Size", "Prepare", "Reach", "Measure", "Explain", "Count"}
    assert set(MESSAGES) == asked | {
        *("Opened", "Sized", "Device", "Compiled", "Measured", "Explained", "Findings"),
        *("Build", "Refused", "WorkerLost"),
    }


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "hello from a kernel's printf\n",
        "{",
        "[]",
        "null",
        "3",
        '"Open"',
        "{}",
        '{"type": "Open"}',
        '{"body": {}}',
        '{"type": "Bogus", "body": {}}',
        '{"type": ["Open"], "body": {}}',
        '{"type": "Open", "body": null}',
        '{"type": "Open", "body": {"device": 0, "arch": null, "seed": 0, "seconds_per_case": 1.0}}',
        encode(Opened(DEVICE, "none", None, {}, 5))[:-20],
    ],
)
def test_garbage_is_a_value_error(line):
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        decode(line)


def test_infinite_time_is_never_sent():
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Open(device="auto", arch=None, seed=0, seconds_per_case=float("inf")))


@pytest.mark.parametrize(
    ("late", "there", "closed", "how", "told"),
    [
        (2, True, False, "died", "it was killed"),
        (9, False, False, "vanished", "w0 at tcp://there:1 was lost"),
        (9, True, True, "died", "the run ends"),
    ],
)
def test_a_clusters_reply_is_waited_for_as_long_as_it_can_come(late, there, closed, how, told):
    """It is done, and asked for again where it is late: the worker that has it may be slow, or lost."""
    answers = [*[TimeoutError()] * late, encode(WorkerLost("it was killed"))]
    future = Mock(status="finished", result=Mock(side_effect=answers))
    future.add_done_callback.side_effect = lambda call: call(future)
    worker = ClusterWorker.__new__(ClusterWorker)
    connection = SimpleNamespace(is_there=lambda address: there, lost=None)
    worker._slot = SimpleNamespace(connection=connection, member=SimpleNamespace(name="w0"))
    worker._address, worker._closed = "tcp://there:1", threading.Event()
    if closed:
        worker._closed.set()
    with pytest.raises(WorkerLost, match=told) as lost:
        worker._answer(future)
    assert lost.value.how == how
