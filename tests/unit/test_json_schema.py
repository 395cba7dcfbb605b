# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The published JSON Schema, judged by a validator that knows nothing of gpuprof."""

import copy
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from gpuprof.constraints import AtLeast, Matches
from gpuprof.json_schema import json_schema
from gpuprof.reading import read_run
from gpuprof.results import Run
from gpuprof.schema import SchemaError, from_json, to_json

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A leaf.

    Args:
        size: How large it is,
            in metres.
    """

    size: Annotated[float, AtLeast(1.0, or_zero=True)]
    name: Annotated[str, Matches("[a-z]+", "oak")] = "x"


@dataclasses.dataclass(frozen=True)
class Tree:
    """A tree."""

    leaf: Leaf | None
    leaves: tuple[Leaf, ...]
    pair: tuple[int, int]
    mixed: tuple[int, str]
    named: Mapping[str, bool]
    kind: Literal["oak", "fir"] | None
    either: int | str
    content: bytes
    anything: Any = None


TREE = {
    "leaf": None,
    "leaves": [{"size": 0}, {"size": 2.5, "name": "ash"}],
    "pair": [1, 2],
    "mixed": [1, "a"],
    "named": {"a": True},
    "kind": None,
    "either": "x",
    "content": "aGk=",
}

BROKEN = [
    ("leaf", {}),
    ("leaf", {"size": 0.5}),
    ("leaf", {"size": 1, "name": "Ash"}),
    ("leaf", 3),
    ("leaves", None),
    ("pair", [1]),
    ("pair", [1, 2, 3]),
    ("pair", [1, "2"]),
    ("mixed", ["a", 1]),
    ("named", {"a": 1}),
    ("named", []),
    ("kind", "ash"),
    ("either", 1.5),
    ("either", None),
]


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_descriptions_come_from_docstrings():
    leaf = json_schema(Tree)["$defs"]["Leaf"]
    assert leaf["description"] == "A leaf."
    assert leaf["properties"]["size"]["description"] == "How large it is, in metres."
    assert leaf["required"] == ["size"]


def test_what_the_reader_takes_is_valid():
    from_json(Tree, TREE)
    jsonschema.validate(TREE, json_schema(Tree))


@pytest.mark.parametrize(("key", "value"), BROKEN)
def test_what_the_reader_refuses_is_invalid(key, value):
    document = {**TREE, key: value}
    with pytest.raises(SchemaError):
        from_json(Tree, document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema(Tree))


def test_a_type_without_a_json_form_is_refused():
    @dataclasses.dataclass
    class Odd:
        """Odd."""

        value: complex

    with pytest.raises(TypeError, match="complex"):
        json_schema(Odd)


@pytest.mark.parametrize("path", sorted((ROOT / "samples").glob("*.json")), ids=lambda path: path.name)
def test_samples_are_valid_once_read(path):
    run = read_run(path)
    some = run.cases[:: max(1, len(run.cases) // 16)]
    VALIDATOR.validate(to_json(dataclasses.replace(run, cases=some)))


def test_a_results_file_with_a_fault_is_invalid():
    document = to_json(read_run(ROOT / "samples" / "transpose-h200.json"))
    for path, value in (
        (("devices", 0, "sm_count"), 0),
        (("cases", 0, "timing", "cold", "median_us"), -1.0),
        (("cases", 0, "outcome"), "fine"),
        (("schema_version",), 3),
    ):
        broken = copy.deepcopy(document)
        place: Any = broken
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        assert not VALIDATOR.is_valid(broken), path
        with pytest.raises(SchemaError):
            from_json(Run, broken)
