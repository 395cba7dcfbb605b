# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Choosers and defaults made from results that stand in files: of searches, of runs, of several devices."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from scale_source import SCALE
from synthetic_runs import Gemm, gemm_case, record, run
from unit_support import gpuprof

from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import KERNEL_ROOT, load_ladder
from gpuprof.kernels.choose import choose
from gpuprof.problems.problem import Problem
from gpuprof.results import Run
from gpuprof.schema import to_json

pytestmark = pytest.mark.deep

#: Of each kernel, its time in microseconds at 128, 1024 and 4096 on the first of the runs.
TIMES = {"splitk_8x32": (2, 60, 4000), "splitk_64x64": (4, 30, 3000), "reg_8x8": (9, 40, 2000)}
SIZES = (128, 1024, 4096)


def tune(*arguments: str | Path, folder: Path, code: int = 0):
    done = gpuprof("tune", *map(str, arguments), cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def measured(path: Path, card: str = "h200", times: dict[str, tuple[float, ...]] = TIMES) -> Path:
    """A results file of a GPU run."""
    cases = []
    for place, size in enumerate(SIZES):
        for name, of in times.items():
            case = gemm_case(name, Gemm(size, size, size), of[place], (256, 1, 1))
            cases.append(replace(case, params={}))
    made: Run = run("gpu", [record(name, "gemm", 1) for name in times], cases)
    made = replace(made, operations={"gemm": made.operations["gemm"]})
    path.write_text(json.dumps(to_json(replace(made, devices=(load_card(card),)))), encoding="utf-8")
    return path


@pytest.fixture
def ladder(tmp_path: Path) -> Path:
    """A copy of a shipped ladder."""
    folder = tmp_path / "gemm"
    shutil.copytree(KERNEL_ROOT / "gemm", folder)
    return folder


def picked(ladder: Path, edge: int, card: str = "h200", name: str = "by_size") -> str:
    held = load_ladder(ladder)
    problem = Problem.of(held.operation, (edge, edge, edge), "f32", {}, {})
    return choose(held.find(name), held.kernels, problem, load_card(card)).id


def test_the_chooser_of_a_ladder_is_made_anew_from_a_run(ladder):
    results = measured(ladder.parent / "r.json")
    before = (ladder / "by_size.cu").read_text(encoding="utf-8")
    shown = tune("gemm", "--from", results, "--into", "by_size", folder=ladder.parent)
    assert '+because = "Best on NVIDIA H200 at 1024."' in shown.stdout
    assert "This is what --write would write." in shown.stderr
    assert (ladder / "by_size.cu").read_text(encoding="utf-8") == before
    done = tune("gemm", "--from", results, "--into", "by_size", "--write", folder=ladder.parent)
    assert done.stdout.rstrip().endswith("Wrote gemm/by_size.cu")
    assert "3 kernels have changed" in done.stderr or "have changed since" in done.stderr
    after = (ladder / "by_size.cu").read_text(encoding="utf-8")
    assert after.partition("[[choose]]")[0] == before.partition("[[choose]]")[0]
    assert [picked(ladder, edge) for edge in SIZES] == ["splitk_8x32", "splitk_64x64", "reg_8x8"]
    # Nothing but the last of them runs on an older card.
    assert [picked(ladder, edge, "t4") for edge in SIZES] == ["reg_8x8"] * 3
    again = tune("gemm", "--from", results, "--into", "by_size", "--write", folder=ladder.parent)
    assert "nothing is written" in again.stderr
    run_of_it = gpuprof(
        "run", "gemm", "-k", "by_size", "--sizes", "96", "--device", "sim:h200", cwd=ladder.parent
    )
    assert run_of_it.returncode == 0, run_of_it.stderr


def test_kernels_that_are_named_are_the_only_ones_that_count(ladder):
    results = measured(ladder.parent / "r.json")
    tune(
        "gemm",
        "-k",
        "reg_8x8,splitk_8x32",
        "--from",
        results,
        "--into",
        "by_size",
        "--write",
        folder=ladder.parent,
    )
    assert [picked(ladder, edge) for edge in SIZES] == ["splitk_8x32", "reg_8x8", "reg_8x8"]


def test_several_files_give_each_device_its_rules(ladder):
    first = measured(ladder.parent / "h200.json")
    other = {name: of[::-1] for name, of in TIMES.items()}
    second = measured(ladder.parent / "rtx4090.json", "rtx4090", {**other, "reg_8x8": (2000, 9, 9)})
    tune("gemm", "--from", first, "--from", second, "--into", "by_size", "--write", folder=ladder.parent)
    assert [picked(ladder, edge) for edge in SIZES] == ["splitk_8x32", "splitk_64x64", "reg_8x8"]
    there = [picked(ladder, edge, "rtx4090") for edge in SIZES]
    assert there == ["reg_8x8", "reg_8x8", "splitk_8x32"]
    # A card that nobody measured follows the first.
    assert [picked(ladder, edge, "rtx3090") for edge in SIZES] == ["splitk_8x32", "splitk_64x64", "reg_8x8"]


def test_a_search_at_five_sizes_makes_a_rung_that_chooses(tmp_path):
    folder = tmp_path / "scaled"
    folder.mkdir()
    (folder / "scale.cu").write_text(SCALE.replace(", [2048, 1]", ""), encoding="utf-8")
    # One that is the better at large sizes only, and takes even ones only.
    wide = (
        SCALE.replace(", [2048, 1]", "")
        .replace("void scale(", "void wide(")
        .replace("EACH = 1 ", "EACH = 2 ")
    )
    wide = wide.replace('condition = "EACH * block_x <= 256"', 'condition = "n % 2 == 0 and n >= 4096"')
    wide = wide.replace("{id} gives a block at most 256 elements", "{id} is for many, two by two")
    wide = wide.replace("EACH = [1, 2, 4]", "EACH = [2, 8]")
    (folder / "wide.cu").write_text(wide, encoding="utf-8")
    sizes = "100,1000,10000,100000,100001"
    options = ("--sizes", sizes, "--device", "sim:h200", "--budget", "8")
    tune("scaled/scale.cu", "scaled/wide.cu", *options, "--write", folder=tmp_path)
    (chooser,) = folder.glob("*_by_size.cu")
    done = gpuprof(
        "run", *map(str, sorted(folder.glob("*.cu"))), "--sizes", f"{sizes},101,7", "-k", chooser.stem,
        "--device", "sim:h200", "-o", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    latest = "gpuprof-results/latest/results.json"
    again = tune("scaled/scale.cu", "scaled/wide.cu", "--from", latest, folder=tmp_path)
    assert "The headers say so already" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (("gemm", "--from", "none.json"), "none.json", ""),
        (
            ("gemm", "--from", "r.json", "--into", "naive"),
            "naive does not choose among kernels",
            "[[choose]]",
        ),
        (("softmax", "--from", "r.json"), "r.json is of gemm, not of softmax", "own results"),
    ],
)
def test_refusals(ladder, arguments, message, fix):
    measured(ladder.parent / "r.json")
    done = tune(*arguments, folder=ladder.parent, code=2)
    assert message in done.stderr
    assert fix in done.stderr


def test_shipped_kernels_are_not_written(tmp_path):
    results = measured(tmp_path / "r.json")
    done = tune("gemm", "--from", results, "--into", "by_size", "--write", folder=tmp_path, code=2)
    assert "by_size comes with gpuprof" in done.stderr


def test_a_search_that_names_no_device_of_its_file_is_refused(tmp_path, ladder):
    results = measured(tmp_path / "r.json")
    document = json.loads(results.read_text(encoding="utf-8"))
    problem = document["cases"][0]["problem"]
    tuned = {
        "problem": problem,
        "combinations": 1,
        "ruled_out": {},
        "uncompiled": 0,
        "by": "time",
        "evaluated": 1,
    }
    document["tuning"] = {"values": {}, "blocks": {}, "budget": 1, "sizes": [{**tuned, "device": 1}]}
    results.write_text(json.dumps(document), encoding="utf-8")
    done = tune("gemm", "--from", results, folder=tmp_path, code=2)
    assert "tuning.sizes[0].device" in done.stderr
    assert "there is no device 1" in done.stderr
