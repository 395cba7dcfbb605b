# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Versions in turns: rounds of every case, and a repository's kernels here and at a revision."""

import json
import os
import shutil

import compared_runs  # noqa: F401 - makes the helpers of the unit tests importable
import pytest
from compared_runs import TESTS
from fake_runs import Watcher, fake_workers, keeper, options, request_of
from processes import git, make_repository
from unit_support import gpuprof

from gpuprof.kernels.shipped import KERNEL_ROOT
from gpuprof.measure.run import measure, measure_in_turns
from gpuprof.reading import read_run

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("unread")]

SCAN = TESTS.parent / "samples" / "own" / "histogram"
QUICK = ["--device", "sim:h200", "--sizes", "4096", "-q", "--force", "-o", "out"]


@pytest.fixture
def repository(tmp_path):
    """A repository with one operation, committed, in a folder with a blank."""
    root = tmp_path / "my kernels"
    shutil.copytree(SCAN, root / "ops" / "histogram")
    make_repository(root)
    git(root, "tag", "v1")
    return root


def test_nothing_changed(repository):
    process = gpuprof("compare", "--against", "HEAD", "ops/histogram", *QUICK, "--strict", cwd=repository)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.splitlines() == [
        f"Wrote out/{name}" for name in ("comparison.html", "base.json", "new.json")
    ]
    assert git(repository, "worktree", "list").count("\n") == 1
    assert json.loads((repository / "out" / "base.json").read_text())["backend"] == "sim"


def test_what_changed_in_the_working_tree(repository):
    kernel = repository / "ops" / "histogram" / "shared_atomics.cu"
    shutil.copy(kernel.with_name("global_atomics.cu"), kernel.with_name("one_more.cu"))
    kernel.write_text(kernel.read_text().replace("__syncthreads();", "__syncthreads(); __syncthreads();", 1))
    options = [*QUICK, "--json", "c.json", "--fail-on", "change(barriers) > 0%", "--fail-on", "new"]
    process = gpuprof("compare", "--against", "v1", "histogram", *options, cwd=repository / "ops", status=1)
    assert "change(barriers) > 0%: failed by shared_atomics" in process.stdout
    assert "new: failed by one_more" in process.stdout
    (compared,) = json.loads((repository / "ops" / "c.json").read_text())["comparisons"]
    states = {case["kernel"]: (case["state"], case["same_source"]) for case in compared["cases"]}
    assert states == {
        "global_atomics": ("matched", True),
        "shared_atomics": ("matched", False),
        "one_more": ("new", None),
    }
    assert "barriers" in {moved["figure"] for case in compared["cases"] for moved in case["moved"]}


def test_one_kernel_only(repository):
    process = gpuprof(
        "compare",
        "--against",
        "HEAD",
        "ops/histogram",
        "-k",
        "shared_atomics",
        *(one for one in QUICK if one != "-q"),
        "--json",
        "c.json",
        cwd=repository,
    )
    assert process.returncode == 0, process.stderr
    assert "[1/2] HEAD: shared_atomics " in process.stderr
    assert "[2/2] working tree: shared_atomics " in process.stderr
    (compared,) = json.loads((repository / "c.json").read_text())["comparisons"]
    assert [case["kernel"] for case in compared["cases"]] == ["shared_atomics"]


def test_what_chooses_computes_then_as_it_does_now(tmp_path):
    root = tmp_path / "kernels"
    root.mkdir()
    for name in ("naive.cu", "col_naive.cu", "operation.toml"):
        shutil.copy(KERNEL_ROOT / "gemm" / name, root)
    chooses = 'title = "Mine"\nproblem = "gemm"\n[[choose]]\nkernel = "col_naive"\nwhen = "1"'
    (root / "mine.cu").write_text(f"/*gpuprof\n{chooses}\n*/\n")
    make_repository(root)
    options = ["--sizes", "32x48x64", "--device", "sim", "-q", "-o", "out", "--json", "c.json", "--strict"]
    process = gpuprof("compare", "--against", "HEAD", ".", "-k", "mine", *options, cwd=root)
    assert process.returncode == 0, process.stdout + process.stderr
    (compared,) = json.loads((root / "c.json").read_text())["comparisons"]
    assert [case["state"] for case in compared["cases"]] == ["matched"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--against", "nowhere", "ops/histogram"], "'nowhere' names no commit"),
        (["--against", "--exec=x", "ops/histogram"], "'--exec=x' names no commit"),
        (["--against", "HEAD"], "There is nothing to measure."),
        (["--against", "HEAD", "ops/nothing"], "There is no ops/nothing."),
        (["--against", "HEAD", "/"], "git"),
        (["--against", "HEAD", "later"], "There is no later at HEAD."),
        (["--against", "HEAD", "ops/histogram", "-k", "naive"], "There is no histogram kernel 'naive'."),
        (["--against", "HEAD", "ops/histogram", "--html", "out/base.json"], "named twice"),
    ],
)
def test_what_is_at_fault_is_said(repository, arguments, words):
    shutil.copytree(SCAN, repository / "later")
    process = gpuprof("compare", *arguments, *QUICK, cwd=repository)
    assert process.returncode == 2, process.stdout + process.stderr
    assert words in process.stderr
    assert git(repository, "worktree", "list").count("\n") == 1


def test_kernels_that_were_at_fault_then(repository):
    kernel = repository / "ops" / "histogram" / "shared_atomics.cu"
    text = kernel.read_text()
    kernel.write_text(text.replace("title =", "titel =", 1))
    git(repository, "commit", "-q", "-a", "-m", "faulty")
    kernel.write_text(text)
    process = gpuprof("compare", "--against", "HEAD", "ops/histogram", *QUICK, cwd=repository, status=2)
    assert process.stderr.startswith("gpuprof: At HEAD: ops/histogram/shared_atomics.cu")


def test_within_a_hook_of_another_repository(repository, tmp_path):
    git(tmp_path, "init", "-q", "other")
    environment = {"GIT_DIR": str(tmp_path / "other" / ".git"), "GIT_INDEX_FILE": "index"}
    process = gpuprof(
        "compare", "--against", "v1", "ops/histogram", *QUICK, cwd=repository, environment=environment
    )
    assert process.returncode == 0, process.stderr


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """The fake worker, and the processes that have started so far."""
    return fake_workers(tmp_path, monkeypatch)


@pytest.fixture
def request_for(tmp_path):
    """A request for kernels that do as their names say."""
    return lambda *names: request_of(tmp_path, names)


def cold_rounds(run):
    return [len(case.timing.cold.rounds_us) if case.timing else 0 for case in run.cases]


def test_every_round_is_a_process_of_its_own(workers, request_for, tmp_path):
    watcher, path = Watcher(), tmp_path / "results.json"
    run = measure(request_for("k0_a", "k1_b"), options(rounds=3), watcher, keep=keeper(path))
    assert cold_rounds(run) == [3, 3]
    assert len(set(workers())) == 3
    assert os.getpid() not in map(int, workers())
    # Cases take turns, and every other round runs backwards.
    assert [name for _, name in watcher.started_cases] == ["k0_a", "k1_b", "k1_b", "k0_a", "k0_a", "k1_b"]
    assert (watcher.announced, len(watcher.names)) == (6, 6)
    assert read_run(path) == run
    assert run.cases[0].timing.cold.rounds_us == ((10.0,) * 8,) * 3


def test_one_round_is_the_rule(workers, request_for):
    assert cold_rounds(measure(request_for("k0_a"), options(rounds=1), Watcher())) == [1]
    assert len(workers()) == 1


def test_what_went_wrong_is_not_tried_again(workers, request_for):
    watcher = Watcher()
    run = measure(request_for("k0_wrong", "k1_crashes", "k2_a"), options(rounds=2), watcher)
    assert [case.outcome for case in run.cases] == ["incorrect", "failed", "ok"]
    assert cold_rounds(run) == [0, 0, 2]
    assert watcher.started_cases[-1] == (0, "k2_a")
    assert watcher.started_cases.count((0, "k0_wrong")) == 1


def test_ctrl_c_keeps_the_rounds_until_then(workers, request_for, tmp_path):
    def interrupt(done):
        if done == 4:
            raise KeyboardInterrupt

    path = tmp_path / "results.json"
    run = measure(request_for("k0_a", "k1_b"), options(rounds=5), Watcher(interrupt), keep=keeper(path))
    assert not run.complete
    assert read_run(path) == run
    assert sorted(cold_rounds(run)) in ([1, 2], [2, 2])


def test_two_versions_take_turns(workers, request_for):
    watcher = Watcher()
    base, new = measure_in_turns(
        (request_for("k0_a"), request_for("k0_b", "k1_c")),
        options(rounds=2),
        watcher,
        keep=(None, None),
    )
    assert [name for _, name in watcher.started_cases] == ["k0_a", "k0_b", "k1_c", "k1_c", "k0_b", "k0_a"]
    assert cold_rounds(base) == [2]
    assert cold_rounds(new) == [2, 2]
    assert len(set(workers())) == 4
    assert base.complete
    assert new.complete


def test_an_interrupted_comparison_keeps_both_versions(workers, request_for):
    def interrupt(done):
        if done == 3:
            raise KeyboardInterrupt

    base, new = measure_in_turns(
        (request_for("k0_a"), request_for("k0_b")), options(rounds=4), Watcher(interrupt), keep=(None, None)
    )
    assert not base.complete
    assert not new.complete
    assert cold_rounds(base) + cold_rounds(new) in ([1, 1], [1, 2])
