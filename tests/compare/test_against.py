# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof compare --against`: a git repository's kernels, here and at a revision, on the executor."""

import json
import shutil
import subprocess

import pytest
from compared_runs import TESTS
from unit_support import gpuprof

pytestmark = pytest.mark.deep

SCAN = TESTS.parent / "samples" / "own" / "histogram"
QUICK = ["--device", "sim:h200", "--sizes", "4096", "-q", "--force", "-o", "out"]


def git(folder, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path):
    """A repository with one operation, committed, in a folder with a blank."""
    root = tmp_path / "my kernels"
    shutil.copytree(SCAN, root / "ops" / "histogram")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
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
    process = gpuprof("compare", "--against", "v1", "histogram", *options, cwd=repository / "ops")
    assert process.returncode == 1, process.stderr
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
        *QUICK,
        "--json",
        "c.json",
        cwd=repository,
    )
    assert process.returncode == 0, process.stderr
    (compared,) = json.loads((repository / "c.json").read_text())["comparisons"]
    assert [case["kernel"] for case in compared["cases"]] == ["shared_atomics"]


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
    process = gpuprof("compare", "--against", "HEAD", "ops/histogram", *QUICK, cwd=repository)
    assert process.returncode == 2
    assert process.stderr.startswith("gpuprof: At HEAD: ops/histogram/shared_atomics.cu")


def test_within_a_hook_of_another_repository(repository, tmp_path):
    git(tmp_path, "init", "-q", "other")
    environment = {"GIT_DIR": str(tmp_path / "other" / ".git"), "GIT_INDEX_FILE": "index"}
    process = gpuprof(
        "compare", "--against", "v1", "ops/histogram", *QUICK, cwd=repository, environment=environment
    )
    assert process.returncode == 0, process.stderr
