# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Results files of version 1: what their sizes and scalars may be, and what a newer version is told."""

import copy
import json
from pathlib import Path

import pytest

from gpuprof.errors import ResultsError
from gpuprof.reading import parse_run, read_run
from gpuprof.results import SCHEMA_VERSION

FILES = Path(__file__).parent / "version1"
TRANSPOSE = json.loads((FILES / "transpose-h200.json").read_text())
GEMM = json.loads((FILES / "gemm-h200.json").read_text())


def problem_of(document, **changed):
    """The first case's problem of a file of version 1 in which it is another."""
    document = copy.deepcopy(document)
    document["cases"][0]["problem"] |= changed
    return parse_run(document, "r.json").cases[0].problem


@pytest.mark.parametrize("extent", [1, 2**31 - 1])
def test_extent_of_version_1_may_be_any_of_an_array(extent):
    assert problem_of(TRANSPOSE, nx=extent).sizes["nx"] == extent


@pytest.mark.parametrize("extent", [0, -1, 2**31, 1.0, True])
def test_extent_of_version_1_that_is_none_is_refused(extent):
    with pytest.raises(ResultsError, match=r"cases\[0\]\.problem\.nx: is not an extent of an array"):
        problem_of(TRANSPOSE, nx=extent)


def test_dimensions_of_one_letter_were_written_small():
    found = problem_of(GEMM, m=5, n=6, k=7)
    assert dict(found.sizes) == {"M": 5, "N": 6, "K": 7}


def test_scalars_of_version_1_go_to_the_largest_double():
    for value in (1.7976931348623157e308, -1.7976931348623157e308, 0, 3):
        assert problem_of(GEMM, alpha=value).scalars["alpha"] == value


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 10**50])
def test_newer_version_is_refused_with_what_is_read(version):
    with pytest.raises(ResultsError, match=f"this gpuprof reads up to {SCHEMA_VERSION}") as caught:
        parse_run({"schema_version": version}, "r.json")
    assert caught.value.fix == "Update gpuprof."


@pytest.mark.parametrize("document", [None, [], {}, {"schema_version": True}, {"schema_version": "2"}])
def test_document_without_a_version_is_none(document):
    with pytest.raises(ResultsError, match="it has no schema_version"):
        parse_run(document, "r.json")


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_a_device_is_no_results_file(device):
    """Reading one to its end would take all memory."""
    with pytest.raises(
        ResultsError, match=f"Cannot read {device}: it is a device, a pipe or a folder, not a file"
    ):
        read_run(Path(device))
