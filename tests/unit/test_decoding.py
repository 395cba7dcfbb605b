# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The quick way from JSON takes what is right, and nothing that the strict one would refuse."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import runs, values_of

from gpuprof import decoding, schema
from gpuprof.constraints import AtLeast, AtMost, Matches, NotEmpty
from gpuprof.quantities import Count, Extent, NonNegative, Tally
from gpuprof.results import SCHEMA_VERSION, Run, dumps

SAMPLES = Path(__file__).parents[2] / "samples"


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A class with a number."""

    count: Count = 0


@dataclasses.dataclass(frozen=True)
class Chain:
    """A class that may hold itself."""

    count: Count = 0
    inner: "Chain | None" = None


@dataclasses.dataclass(frozen=True)
class Held:
    """One field of each shape that a check is put together for."""

    number: float = 0.0
    whole: int = 0
    word: str = ""
    flag: bool = False
    raw: bytes = b""
    pair: tuple[Extent, str] = (1, "")
    corner: tuple[Extent, Extent, Extent] = (1, 1, 1)
    maybe: tuple[NonNegative | None, ...] = ()
    names: tuple[str, ...] = ()
    tallies: Mapping[str, Tally] = dataclasses.field(default_factory=dict)
    leaves: Annotated[tuple[Leaf, ...], NotEmpty()] = (Leaf(),)
    large: Annotated[int, AtLeast(0), AtMost(10**60)] | None = None
    version: Annotated[str, Matches("[0-9][.][0-9]", "9.0")] = "9.0"
    either: int | float | str = 0
    uncertain: float | str | None = None


def strictly(kind: Any, document: Any) -> Any:
    """What the strict way makes of a document: a value, or what is wrong with it."""
    try:
        return schema._convert(kind, document, "")
    except schema.SchemaError as error:
        return str(error)


def quickly(kind: Any, document: Any) -> Any:
    """The same by the quick way first."""
    try:
        return schema.from_json(kind, document)
    except schema.SchemaError as error:
        return str(error)


GOOD = {"leaves": [{"count": 1}, {}]}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"number": 3, "whole": 2**70, "flag": True, "raw": "AQ=="},
        {"pair": [3, "x"], "corner": [1, 2, 3], "maybe": [None, 0, 1e-18, 5]},
        {"tallies": {"a": 0, "b": 1.5, "c": 2**80}, "large": 10**60},
        {"either": "x"},
        {"either": 1.5, "uncertain": "x"},
        {"unknown": {"deep": [1, None]}},
    ],
)
def test_what_is_right_is_taken_at_once(more):
    document = {**GOOD, **more}
    held = decoding.converted(Held, document)
    assert held is not None
    assert held == decoding.decoded(Held, json.dumps(document).encode()) == strictly(Held, document)


@pytest.mark.parametrize(
    "more",
    [
        {"number": True},
        {"number": float("nan")},
        {"number": float("inf")},
        {"number": 10**400},
        {"number": "1"},
        {"whole": 1.0},
        {"whole": 10**400},
        {"whole": True},
        {"flag": 1},
        {"raw": "A Q=="},
        {"raw": 5},
        {"pair": [0, "x"]},
        {"pair": [1]},
        {"corner": [1, 1, 0]},
        {"corner": [1, 1, 2**31]},
        {"maybe": [1.0, 1e-30]},
        {"maybe": [-1.0]},
        {"names": [1]},
        {"tallies": {"a": -1}},
        {"tallies": {"a": 10**31}},
        {"tallies": [1]},
        {"leaves": []},
        {"leaves": [{"count": -1}]},
        {"leaves": [{}, {"count": 2**63}]},
        {"leaves": None},
        {"large": 10**60 + 1},
        {"large": -1},
        {"version": "9.0\n"},
        {"either": True},
        {"either": 10**400},
        {"uncertain": 1},
    ],
)
def test_what_is_wrong_is_told_as_the_strict_way_tells_it(more):
    document = {**GOOD, **more}
    said = strictly(Held, document)
    assert isinstance(said, str)
    assert decoding.converted(Held, document) is None
    assert quickly(Held, document) == said


def test_class_that_holds_itself_is_checked_at_any_depth():
    for count, is_right in ((0, True), (-1, False)):
        document = {"inner": {"inner": {"count": count}}}
        assert (decoding.converted(Chain, document) is not None) == is_right
        assert quickly(Chain, document) == strictly(Chain, document)


@given(values_of(Held))
def test_generated_values_are_read_back(held):
    assert quickly(Held, schema.to_json(held)) == held


@pytest.mark.deep
@given(runs())
def test_generated_runs_need_no_second_look(run):
    assert decoding.decoded(Run, dumps(run).encode()) == run


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_what_was_measured_needs_no_second_look(path):
    content = path.read_bytes()
    if json.loads(content)["schema_version"] == SCHEMA_VERSION:
        assert decoding.decoded(Run, content) == strictly(Run, json.loads(content))


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5)
)
def test_json_is_read_as_python_reads_it(value):
    text = json.dumps(value)
    assert repr(decoding.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text", ["NaN", "1e999", "-Infinity", '"\\ud800"', "9" * 400, "[1e-400, -0.0]", '{"a": 1, "a": 2}']
)
def test_what_only_python_calls_json_is_read_too(text):
    assert repr(decoding.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", "[1,]", "01", '"\t"', "1 2", "\ufeff1", "9" * 5000, "[" * 100_000])
def test_what_is_no_json_is_refused_in_pythons_words(text):
    errors = []
    for read in (json.loads, decoding.loads):
        with pytest.raises((ValueError, RecursionError)) as caught:
            read(text)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]
