# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Messages between a run and its worker: one line each, the same on both sides."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_support import DEVICE, values_of

from gpuprof.measure.protocol import MESSAGES, Open, Opened, decode, encode

pytestmark = pytest.mark.deep


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
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
    asked = {"Open", "OpenExecutor", "Size", "Prepare", "Reach", "Measure", "Explain", "Count", "Build"}
    assert set(MESSAGES) == asked | {
        *("Opened", "Sized", "Reached", "Compiled", "Measured", "Explained", "Counted"),
        "Raised",
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
