# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The results file, and the page that holds one: what is written is read, and a damaged file refused."""

import base64
import copy
import json
import math
import os
import re
import zlib
from pathlib import Path

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_runs import plain_run
from problem_support import Gemm, Transpose, ladder
from unit_support import DEVICE, runs

from gpuprof import page_data
from gpuprof.analysis.numbers import time_us
from gpuprof.errors import ExitCode, OutputError, ResultsError
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.measure.case import Case, unmeasured
from gpuprof.reading import parse_run, read_run
from gpuprof.records import replace
from gpuprof.report.html import render_html
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report
from gpuprof.results import SCHEMA_VERSION, Counter, Resources, Run, TimingPair, Verification, dumps
from gpuprof.schema import decoded
from gpuprof.statistics import summarise
from gpuprof.store import write_run

VERSION_1 = Path(__file__).parent / "version1"
LIGHT = settings(max_examples=60, suppress_health_check=list(HealthCheck))


def _measured(kernel, problem):
    case = Case.of(kernel, problem)
    timing = TimingPair(cold=summarise([28.5, 28.1, 28.9, 28.3, 28.4, 30.2, 28.6], dropped=2), warm=None)
    return replace(
        unmeasured(case, kernel, "ok", None, "not asked for"),
        grid=(4, 4, 1),
        verification=Verification(1e-6, 2e-7, 5e-6, 16384),
        verification_reason=None,
        timing=timing,
        timing_reason=None,
        resources=Resources(32, 8192, 0, 0),
        resources_reason=None,
        counters={
            "global_load_requests": Counter(4294967296, "requests", "sim"),
            "global_load_throughput_gbps": Counter(None, "GB/s", "ncu", reason="ncu is not installed"),
        },
    )


@pytest.fixture
def run():
    kernels = (*ladder("gemm"), *ladder("transpose"))
    problems = {"gemm": Gemm(128, 96, 64, alpha=0.5, beta=-2.0), "transpose": Transpose(2048, 1024)}
    return plain_run(
        [kernel.record() for kernel in kernels],
        [_measured(kernel, problems[kernel.operation]) for kernel in kernels],
        devices=(DEVICE,),
        operations={name: shipped_operation(name) for name in problems},
    )


@pytest.fixture
def document(run):
    return json.loads(dumps(run))


@pytest.mark.deep
@LIGHT
@given(runs())
def test_any_run_survives_json(run):
    assert parse_run(json.loads(dumps(run)), "any.json") == run
    assert decoded(Run, dumps(run).encode()) == run


def test_file_is_plain_json_with_units_in_keys_and_the_operation_named(document):
    assert document["schema_version"] == 2
    assert document["cases"][0]["problem"]["operation"] == "gemm"
    assert document["cases"][-1]["problem"] == {
        "operation": "transpose",
        "sizes": {"nx": 2048, "ny": 1024},
        "dtype": "f32",
        "scalars": {},
        "options": {"result": "transpose"},
        "flops": 0,
        "min_bytes": 2 * 2048 * 1024 * 4,
        "output_bytes": 2048 * 1024 * 4,
    }
    assert document["operations"]["transpose"]["dimensions"] == ["nx", "ny"]
    assert document["cases"][0]["timing"]["cold"]["rounds_us"][0][0] == 28.5
    assert document["cases"][0]["counters"]["global_load_throughput_gbps"]["value"] is None


def test_what_an_older_file_lacks_and_a_newer_one_adds_hinders_nothing(run, document):
    document["added"] = 1
    document["cases"][0]["added"] = {"x": [1]}
    assert parse_run(document, "newer.json") == run
    for entry in document["cases"]:
        del entry["chosen"]
    for record in document["kernels"]:
        del record["choices"], record["after"], record["moves"]
    older = parse_run(document, "older.json")
    assert older.cases == run.cases
    assert {(kernel.after, len(kernel.moves)) for kernel in older.kernels} == {("", 0)}


def _put(document, path, value):
    *parents, last = path
    for key in parents:
        document = document[key]
    if value is _MISSING:
        del document[last]
    else:
        document[last] = value


_MISSING = object()


@each(
    wrong=[
        (("cases",), _MISSING, "`cases`"),
        (("devices", 0, "sm_count"), _MISSING, "devices[0]: object missing required field `sm_count`"),
        (("cases", 0, "problem", "operation"), "fft", "cases[0].problem.operation: 'fft' is not in"),
        (("cases", 0, "problem", "sizes"), {}, "cases[0].problem.sizes: "),
        (("cases", 0, "problem", "flops"), 10**61, "cases[0].problem: flops and bytes"),
        (("cases", 0, "device"), 1, "cases[0].device: there is no device 1"),
        (("devices", 0, "sm_count"), -132, "devices[0].sm_count: "),
        (("devices", 0, "compute_capability"), "banana", "devices[0].compute_capability: "),
        (("cases", 0, "problem", "sizes", "M"), 0, "cases[0].problem.sizes[...]: "),
        (("cases", 0, "device"), -1, "cases[0].device: "),
        (("cases", 0, "timing", "cold", "launches_per_sample"), 0, "launches_per_sample: "),
        (("cases", 0, "timing", "cold", "rounds_us", 0, 0), -1, "rounds_us[0][0]: "),
        (("cases", 0, "verification", "bound"), -1, "cases[0].verification.bound: "),
        (("schema_version",), 0, "schema_version: "),
        (("devices",), [], "devices: "),
        (("kernels", 1, "moves"), {"barriers": "drops"}, "kernels[1].moves[...]: "),
    ]
)
def test_wrong_shape_is_refused_with_its_place(document, wrong):
    path, value, words = wrong
    changed = copy.deepcopy(document)
    _put(changed, path, value)
    before = copy.deepcopy(changed)
    with pytest.raises(ResultsError) as caught:
        parse_run(changed, "r.json")
    assert changed == before
    assert caught.value.what.startswith("r.json does not match the results schema: ")
    assert words in caught.value.what


@each(value=[math.nan, math.inf, -math.inf])
def test_not_a_number_is_refused_on_writing(run, tmp_path, value):
    bad = replace(run, devices=(replace(DEVICE, sm_clock_mhz=value),))
    path = tmp_path / "r.json"
    write_run(run, path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(bad, path)
    assert read_run(path) == run


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 10**50])
def test_newer_schema_is_named_before_its_differences(version):
    with pytest.raises(ResultsError, match=f"reads up to {SCHEMA_VERSION}") as caught:
        parse_run({"schema_version": version}, "r.json")
    assert caught.value.fix == "Update gpuprof."


@each(document=[[], None, 3, "x", {}, {"schema_version": "1"}, {"schema_version": True}])
def test_foreign_json_is_no_results_file(document):
    with pytest.raises(ResultsError, match=r"^r\.json is not .*: it has no schema_version\."):
        parse_run(document, "r.json")


@each(
    damaged=[
        ('{"schema_version": 1,\n "tool": oops}', r"is not valid JSON \(line 2, column 10: "),
        ('{"schema_version": 1,', "what is truncated"),
        ('{"schema_version": NaN}', "is not a gpuprof results file"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"schema_version": ' + "9" * 5000 + "}", "a number is too long"),
    ]
)
def test_text_that_is_no_json_is_refused_with_its_place(tmp_path, damaged):
    text, complaint = damaged
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ResultsError, match=complaint):
        read_run(tmp_path / "r.json")


@pytest.mark.deep
def test_file_cut_off_anywhere_in_its_cases_gives_those_that_are_whole(run, tmp_path):
    kernels = tuple(replace(one, source="") for one in run.kernels)
    run = replace(run, cases=run.cases[:2], kernels=kernels)
    text = dumps(run)
    path = tmp_path / "r.json"
    begin = text.index('"cases": [') + len('"cases": [')
    seen = set()
    closed = [
        place for end in re.finditer(r"[\]}],?\n {0,6}\S", text[begin:-3]) for place in range(*end.span())
    ]
    for end in (*range(begin, len(text) - 3, 499), *(begin + place for place in closed), len(text) - 3):
        path.write_text(text[:end])
        found = read_run(path)
        assert found.cases == run.cases[: len(found.cases)]
        assert not found.complete
        seen.add(len(found.cases))
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_a_device_is_no_results_file(device):
    """Reading one to its end would take all memory."""
    with pytest.raises(ResultsError, match=f"Cannot read {device}: it is a device, a pipe or a folder"):
        read_run(Path(device))


def test_unreadable_path_says_why(tmp_path):
    path = tmp_path / "r.json"
    for why in ("No such file or directory", "it is not UTF-8 text"):
        with pytest.raises(ResultsError) as caught:
            read_run(path)
        assert caught.value.what == f"Cannot read {path}: {why}."
        assert caught.value.exit_code == ExitCode.BAD_INPUT
        path.write_bytes(b'{"a": "\xff"}')


def test_folder_is_read_by_the_results_in_it(run, tmp_path):
    with pytest.raises(ResultsError) as caught:
        read_run(tmp_path)
    assert caught.value.what == f"{tmp_path} holds no results.json."
    write_run(run, tmp_path / "r.json")
    with pytest.raises(ResultsError) as caught:
        read_run(tmp_path)
    assert caught.value.fix == "Name a results file, or the folder of a run. JSON files in it: r.json."
    (tmp_path / "r.json").rename(tmp_path / "results.json")
    assert read_run(tmp_path) == run


def test_failed_write_leaves_the_old_file_and_no_litter(run, tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    write_run(run, path)
    before = path.read_bytes()

    def no_space(*_, **__):
        raise OSError(28, "No space left on device")

    for step in ("replace", "fdopen"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, no_space)
            with pytest.raises(OutputError) as caught:
                write_run(replace(run, seed=99), path)
        assert caught.value.what == f"Cannot write {path}: No space left on device."
        assert caught.value.fix.startswith("Make room, or name another path")
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


@each(name=["gemm-h200", "transpose-blocks-h200", "transpose-h200"])
def test_file_of_version_1_shows_the_times_that_it_holds(name):
    path = VERSION_1 / f"{name}.json"
    document = json.loads(path.read_text())
    assert document["schema_version"] == 1
    run = read_run(path)
    assert [(case.kernel, case.outcome) for case in run.cases] == [
        (case["kernel"], case["outcome"]) for case in document["cases"]
    ]
    shown = markdown_of(run_report(run))
    times = [case["timing"]["cold"]["median_us"] for case in document["cases"] if case["timing"]]
    assert times
    assert [us for us in times if time_us(us) not in shown] == []


def problem_of_version_1(name, **changed):
    """The first case's problem of a file of version 1 in which it is another."""
    document = json.loads((VERSION_1 / f"{name}-h200.json").read_text())
    document["cases"][0]["problem"] |= changed
    return parse_run(document, "r.json").cases[0].problem


def test_sizes_and_scalars_of_version_1_are_those_of_an_array_and_a_double():
    for extent in (1, 2**31 - 1):
        assert problem_of_version_1("transpose", nx=extent).sizes["nx"] == extent
    for extent in (0, -1, 2**31, 1.0, True):
        with pytest.raises(ResultsError, match="does not match the results schema"):
            problem_of_version_1("transpose", nx=extent)
    # Dimensions of one letter were written small.
    assert dict(problem_of_version_1("gemm", m=5, n=6, k=7).sizes) == {"M": 5, "N": 6, "K": 7}
    for value in (1.7976931348623157e308, -1.7976931348623157e308, 0, 3):
        assert problem_of_version_1("gemm", alpha=value).scalars["alpha"] == value
    for value in ("3", True, None):
        with pytest.raises(ResultsError, match="does not match the results schema"):
            problem_of_version_1("gemm", alpha=value)


SAMPLE = Path(__file__).parents[2] / "samples" / "transpose-blocks-h200.json"


@given(st.text())
def test_what_is_packed_comes_back_in_letters_that_a_script_element_holds(text):
    letters = page_data.packed(text)
    assert page_data.unpacked(letters) == text
    assert "<" not in letters
    assert page_data.packed(text) == letters


def test_a_report_is_read_like_its_results(tmp_path):
    run = read_run(SAMPLE)
    page = tmp_path / "report.html"
    page.write_text(render_html(run), encoding="utf-8")
    assert read_run(page) == run


def block(letters: str) -> str:
    return f'<!DOCTYPE html><script type="application/gzip" id="gpuprof-data">{letters}</script>'


def in_letters(data: bytes) -> str:
    return base64.b85encode(data).decode().replace("<", ",")


BOMB = in_letters(zlib.compress(b"0" * 5000, wbits=31))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<!doctype html><p>a page of somebody else's</p>", "it has no data block"),
        (block("[[[[["), "its data block is damaged"),
        (block(page_data.packed("{}")[:-8]), "its data block is"),
        (block(in_letters(b"not gzip")), "its data block is damaged"),
        (block(page_data.packed("[1]")), "its data block holds no run"),
        (block(page_data.packed("{")), "holds no results of gpuprof"),
        (block(page_data.packed("[" * 100_000)), "holds no results of gpuprof"),
        (block(page_data.packed('{"run": 1}')), "it has no schema_version"),
        (block(BOMB), "its data block is cut off or too long"),
    ],
)
def test_pages_that_hold_no_run_say_so(tmp_path, monkeypatch, page, words):
    monkeypatch.setattr(page_data, "_MOST_BYTES", 4000 if BOMB in page else 2**20)
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(ResultsError, match=words):
        read_run(path)
