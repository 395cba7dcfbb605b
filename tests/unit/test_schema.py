# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Constraints stand in the types; reading honours them and names the place of what breaks one."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import values_of

from gpuprof.constraints import AtLeast, AtMost, Matches, complaint_about
from gpuprof.quantities import Count, Extent, NonNegative, Positive, Tally
from gpuprof.schema import SchemaError, from_json, to_json


@dataclasses.dataclass(frozen=True)
class Held:
    """One field of each kind of annotation that the results types use."""

    extent: Extent = 1
    extents: tuple[Extent, Extent] = (1, 1)
    samples: tuple[NonNegative, ...] = ()
    rate: Positive | None = None
    counts: Mapping[str, Tally] = dataclasses.field(default_factory=dict)
    version: Annotated[str, Matches("[0-9][.][0-9]", "9.0")] = "9.0"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"extent": 0}, "extent: must be at least 1, not 0"),
        ({"extent": 2**31}, "extent: must be at most 2,147,483,647, not 2147483648"),
        ({"extent": True}, "extent: expected int, found bool"),
        ({"extents": [1, -7]}, "extents[1]: must be at least 1, not -7"),
        ({"samples": [0.0, 1e-30]}, "samples[1]: must be 0 or at least 1e-18, not 1e-30"),
        ({"samples": [-0.5]}, "samples[0]: must be 0 or at least 1e-18, not -0.5"),
        ({"rate": 0}, "rate: must be at least 1e-18, not 0.0"),
        ({"rate": 1e300}, "rate: must be at most 1e+18, not 1e+300"),
        ({"counts": {"x": 10**200}}, "counts.x: must be at most 1e+30, not 1000000"),
        ({"counts": {"x": "3"}}, "counts.x: expected one of float, int"),
        ({"version": "9.0\n"}, "version: must be written like 9.0, not '9.0\\n'"),
        ({"version": "9"}, "version: must be written like 9.0, not '9'"),
    ],
)
def test_value_that_breaks_a_constraint_is_refused_with_its_place(document, words):
    with pytest.raises(SchemaError) as caught:
        from_json(Held, document)
    assert str(caught.value).startswith(words)


def test_message_quotes_no_more_than_it_must():
    for document in (
        {"extent": 10**300},
        {"version": "9" * 10_000_000},
        {"counts": {"x" * 10_000_000: -1}},
        {"extents": [[1] * 1_000_000, 1]},
    ):
        with pytest.raises(SchemaError) as caught:
            from_json(Held, document)
        assert len(str(caught.value)) < 500


def test_ends_of_a_range_belong_to_it():
    document = {"extent": 2**31 - 1, "extents": [1, 1], "samples": [0, 1e-18, 1e18], "rate": 1e-18}
    held = from_json(Held, document)
    assert (held.extent, held.samples, held.rate) == (2**31 - 1, (0.0, 1e-18, 1e18), 1e-18)


@given(values_of(Held))
def test_generated_values_keep_every_constraint(held):
    assert from_json(Held, to_json(held)) == held


@given(st.integers())
def test_complaint_is_about_the_first_constraint_that_breaks(value):
    complaint = complaint_about(Annotated[int, AtLeast(0), AtMost(9)], value)
    if 0 <= value <= 9:
        assert complaint is None
    else:
        assert complaint.startswith("must be at least 0" if value < 0 else "must be at most 9")
    assert (complaint_about(Count, value) is None) == (0 <= value < 2**63)
