# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Types and constraints are honoured, with the place of what breaks one, by the published schema too."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from json_schemas import json_schema
from msgspec import Meta

from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import SCHEMA_VERSION, Run
from gpuprof.schema import (
    Count,
    Extent,
    NonNegative,
    Positive,
    SchemaError,
    Tally,
    decoded,
    from_json,
    loads,
    to_json,
)

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.json"))
VALIDATOR = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8"))
)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A leaf.

    Args:
        size: How large it is,
            in metres.
    """

    size: Count = 0


@dataclasses.dataclass(frozen=True)
class Held:
    """One field of each kind that the results types use."""

    word: str
    number: float = 0.0
    flag: bool = False
    raw: bytes = b""
    kind: Literal["oak", "fir"] | None = None
    extent: Extent = 1
    corner: tuple[Extent, Extent, Extent] = (1, 1, 1)
    samples: tuple[NonNegative | None, ...] = ()
    rate: Positive | None = None
    counts: Mapping[str, Tally] = dataclasses.field(default_factory=dict)
    leaves: Annotated[tuple[Leaf, ...], Meta(min_length=1)] = (Leaf(),)
    version: Annotated[str, Meta(pattern=r"^[0-9][.][0-9]$(?!\n)")] = "9.0"
    large: Annotated[int, Meta(ge=0)] | None = None


@each(
    wrong=[
        ({"word": 1}, "word"),
        ({"number": True}, "number"),
        ({"number": "1"}, "number"),
        ({"flag": 1}, "flag"),
        ({"kind": "ash" * 1_000_000}, "kind"),
        ({"extent": 0}, "extent"),
        ({"extent": 2**31}, "extent"),
        ({"extent": 10**400}, "extent"),
        ({"extent": True}, "extent"),
        ({"extent": 1.5}, "extent"),
        ({"corner": [1, -7, 1]}, "corner[1]"),
        ({"corner": [1, 1]}, "corner"),
        ({"samples": [0.0, -0.5]}, "samples[1]"),
        ({"samples": 5}, "samples"),
        ({"rate": 0}, "rate"),
        ({"rate": 1e300}, "rate"),
        ({"counts": {"x" * 1_000_000: -1}}, "counts[...]"),
        ({"counts": {"x": 10**200}}, "counts[...]"),
        ({"counts": [1]}, "counts"),
        ({"leaves": []}, "leaves"),
        ({"leaves": [{}, {"size": -1}]}, "leaves[1].size"),
        ({"version": "9.0\n"}, "version"),
        ({"version": "9"}, "version"),
        ({"large": -1}, "large"),
    ]
)
def test_what_is_wrong_is_refused_with_its_place_in_few_words_and_invalid(wrong):
    more, place = wrong
    document = {"word": "x", **more}
    with pytest.raises(SchemaError) as caught:
        from_json(Held, document)
    assert str(caught.value).startswith(f"{place}: ")
    assert len(str(caught.value)) < 500
    assert decoded(Held, json.dumps(document).encode()) is None
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema(Held))


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        st.lists,
        max_leaves=5,
    )
)
def test_json_is_read_as_python_reads_it(value):
    text = json.dumps(value)
    assert repr(loads(text)) == repr(json.loads(text))


def test_half_of_a_surrogate_pair_is_read_and_what_is_not_finite_is_refused():
    assert loads('["\\ud800", 1e-400, 2.5]') == ["\ud800", 0.0, 2.5]
    for text in ("NaN", "1e999", "-Infinity", '["\\ud800", Infinity]', '["\\ud800", 1e999]'):
        with pytest.raises(ValueError, match="is no number"):
            loads(text)


def test_descriptions_come_from_docstrings():
    leaf = json_schema(Held)["$defs"]["Leaf"]
    assert leaf["description"] == "A leaf."
    assert leaf["properties"]["size"]["description"] == "How large it is, in metres."
    assert json_schema(Held)["required"] == ["word"]


def test_the_published_schema_is_one():
    VALIDATOR.check_schema(VALIDATOR.schema)


@each(path=SAMPLES)
def test_samples_are_read_at_once_and_valid(path):
    run = read_run(path)
    some = run.cases[:: max(1, len(run.cases) // 4)]
    VALIDATOR.validate(to_json(replace(run, cases=some)))
    content = path.read_bytes()
    if json.loads(content)["schema_version"] == SCHEMA_VERSION:
        assert decoded(Run, content) is not None
