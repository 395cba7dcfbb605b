# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof compare` and gates on the command line: files, exit codes, messages, and what is loaded."""

import json
from pathlib import Path

import pytest
from compared_runs import TESTS, ladder, runs, with_cases
from loaded_packages import loaded
from unit_support import gpuprof

from gpuprof.records import replace
from gpuprof.results import Resources
from gpuprof.store import write_run

pytestmark = pytest.mark.deep

SAMPLES = TESTS.parent / "samples"
VERSION_1 = sorted((TESTS / "unit" / "version1").glob("*.json"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Results files: a base, the same again, a slower one, one of few rounds, one of a sort of its own."""
    folder = tmp_path_factory.mktemp("compared")
    spilling = Resources(64, 0, 0, 16)
    slower = with_cases(ladder(seed=3, factors={"naive": 1.1}), naive={"resources": spilling})
    for name, run in {
        "base": ladder(seed=1),
        "again": ladder(seed=2),
        "slower": slower,
        "short": ladder(1),
        "empty": runs.empty_run(),
        "other": replace(ladder(1), devices=(replace(runs.DEVICE, name="Another card"),)),
    }.items():
        write_run(run, folder / f"{name}.json")
    return folder


def compare(files, *arguments):
    return gpuprof("compare", *arguments, cwd=files)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["base.json", "again.json"], 0),
        (["base.json", "slower.json"], 0),
        (["base.json", "slower.json", "--fail-on", "regressed"], 1),
        (["base.json", "slower.json", "--fail-on", "time > 3%"], 1),
        (["base.json", "again.json", "slower.json", "--fail-on", "regressed"], 1),
        (["base.json", "short.json", "--strict"], 0),
        (["short.json", "short.json", "--fail-on", "time > 3%", "--strict"], 3),
        (["base.json", "slower.json", "--fail-on", "regressed", "--strict"], 1),
        (["base.json", "again.json", "--fail-on", "global_load_efficiency_pct < 90"], 1),
        (["base.json", "empty.json", "--force"], 0),
        (["base.json", "empty.json", "--force", "--strict"], 3),
        (["base.json", "other.json", "--force"], 0),
    ],
)
def test_exit_status(files, arguments, status):
    process = compare(files, *arguments)
    assert process.returncode == status, process.stdout + process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["base.json", "again.json", "--html", "base.json", "--force"], "base.json"),
        (["base.json", "again.json", "--html", "x", "--json", "x"], "x is named twice."),
        (["base.json"], "Name a base and at least one new results file."),
        (["base.json", "bsae.json"], "Did you mean base.json?"),
        (["base.json", "other.json"], "device: NVIDIA H200 → Another card"),
        (["base.json", "again.json", "--sizes", "128"], "or add --against REVISION to measure."),
        (["base.json", "again.json", "--device", "sim"], "--device has no effect on results files."),
        (["base.json", "again.json", "--rounds", "3"], "--rounds has no effect on results files."),
        (["base.json", "again.json", "--fail-on", "tiem > 3%"], "  tiem > 3%\n  ^ Did you mean time?"),
        (["base.json", "again.json", "--json", "slower.json"], "slower.json exists already."),
        (["base.json", "."], ". holds no results.json."),
        (["base.json", "empty.json"], "base.json and empty.json have no case in common"),
    ],
)
def test_messages(refused, files, monkeypatch, arguments, words):
    monkeypatch.chdir(files)
    said = refused("compare", *arguments)
    assert len(said.splitlines()) >= 2
    assert words in said


def test_the_answer_comes_first_and_gates_last(files):
    process = compare(files, "base.json", "slower.json", "--fail-on", "time > 3%")
    lines = process.stdout.splitlines()
    assert lines[0] == "slower.json against base.json: 2 regressed, 1 unmeasured, 5 same"
    assert lines[-1].startswith("✗ time > 3%: failed by naive 128 32x32 (time +")
    assert "spills 0 B → 16 B" in process.stdout


def test_quiet_says_why_it_does_not_end_with_0(files):
    for new, options, said in (
        ("empty.json", ["--force", "--strict"], "nothing to compare; 10 missing"),
        ("slower.json", ["--fail-on", "regressed"], "regressed: failed by"),
    ):
        process = compare(files, "base.json", new, *options, "-q")
        assert process.returncode, said
        assert said in process.stdout


def test_every_file_is_written_and_named(files, tmp_path):
    names = {"--html": "c.html", "--json": "c.json", "--markdown": "c.md", "--junit": "c.xml"}
    options = [text for option, name in names.items() for text in (option, str(tmp_path / name))]
    process = compare(files, "base.json", "slower.json", *options, "-q")
    assert process.returncode == 0
    assert process.stdout.splitlines() == [
        f"Wrote {tmp_path / name}" for name in ("c.html", "c.json", "c.md", "c.xml")
    ]
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["schema_version"] == 2
    assert document["comparisons"][0]["counts"]["regressed"] == 2
    assert (tmp_path / "c.md").read_text().startswith("### slower.json against base.json")
    assert 'failures="2"' in (tmp_path / "c.xml").read_text()
    assert "<title>slower.json against base.json" in (tmp_path / "c.html").read_text()


def test_json_takes_the_terminals_place(files):
    process = compare(files, "base.json", "slower.json", "--json", "-")
    assert json.loads(process.stdout)["comparisons"][0]["counts"]["regressed"] == 2
    both = compare(files, "base.json", "slower.json", "--json", "-", "--markdown", "-")
    assert both.returncode == 2
    assert "cannot both go to standard output" in both.stderr
    assert not (files / "-").exists()


@pytest.mark.parametrize("path", VERSION_1, ids=lambda path: path.stem)
def test_files_of_version_1_are_compared(path, tmp_path):
    process = gpuprof("compare", str(path), str(path), "--html", "c.html", cwd=tmp_path, status=0)
    assert "Traceback" not in process.stderr


def test_the_samples_are_compared_with_themselves(tmp_path):
    """Of one round each: what differs by nothing is the same."""
    path = str(SAMPLES / "transpose-h200.json")
    process = gpuprof("compare", path, path, "--strict", cwd=tmp_path, status=0)
    assert process.stdout.splitlines()[0].endswith(": 16 same")


def test_compare_loads_no_cuda(files, tmp_path):
    names = [f"--{kind}={tmp_path / kind}" for kind in ("html", "junit", "json")]
    *_, found = loaded(*(["compare", "base.json", "again.json", *more] for more in ([], names)), cwd=files)
    assert "gpuprof" in found
    assert not found & {"cuda", "pynvml", "plotly", "llvmlite"}


# Gates on single runs.


@pytest.mark.parametrize(
    ("gate", "status"),
    [
        ("spill_bytes > 0", 0),
        ("registers_per_thread > 30", 1),
        ("time > 1s", 0),
        ("time > 3%", 2),
        ("regressed", 2),
        ("dram_read_bytes > 5", 1),
    ],
)
def test_gates_of_a_report(files, gate, status):
    process = gpuprof("report", "base.json", "--markdown", "--fail-on", gate, cwd=files, status=status)
    if status == 2:
        assert "gpuprof compare BASE NEW --fail-on" in process.stderr
    else:
        assert f"- {'✗' if status else '✓'} {gate.split()[0].replace('_', chr(92) + '_')}" in process.stdout


def test_gates_of_a_measuring_command(tmp_path):
    common = ["transpose", "-k", "naive_row", "--sizes", "64", "--device", "sim:h200"]
    common += ["-q", "--force", "-o", "out"]
    passing = gpuprof(*common, "--fail-on", "spill_bytes > 0", cwd=tmp_path, status=0)
    assert [line.split("/")[-1] for line in passing.stdout.splitlines()] == ["results.json", "report.html"]
    failing = gpuprof(*common, "--fail-on", "global_store_efficiency_pct < 90", cwd=tmp_path, status=1)
    assert "failed by naive_row 64 16x16 (store efficiency 25.0 %)" in failing.stdout
    modelled = gpuprof(*common, "--fail-on", "time > 100ns", cwd=tmp_path, status=1)
    assert "µs modelled (" in modelled.stdout
    unjudged = gpuprof(*common, "--fail-on", "warm > 5us", cwd=tmp_path, status=1)
    assert "applied to no case" in unjudged.stdout
    gpuprof(*common, "--fail-on", "time > 5%", cwd=tmp_path, status=2)
    assert Path(tmp_path, "out", "results.json").exists()
