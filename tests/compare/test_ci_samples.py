# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The files of samples/ci: their YAML is read, and their shell steps run here, on the executor."""

import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from compared_runs import TESTS
from processes import git, make_repository, ran

pytestmark = pytest.mark.deep

CI = TESTS.parent / "samples" / "ci"
GITHUB = ("github-executor.yml", "github-gpu.yml")
KERNELS = TESTS.parent / "samples" / "own" / "histogram"


def read(name):
    return yaml.safe_load((CI / name).read_text(encoding="utf-8"))


def test_every_file_is_read_here():
    assert {path.name for path in CI.iterdir()} == {*GITHUB, "gitlab-ci.yml"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A repository of kernels with two commits, as a CI job finds it, and a `gpuprof` on the path."""
    root = tmp_path_factory.mktemp("ci")
    work, tools = root / "work", root / "bin"
    shutil.copytree(KERNELS, work / "kernels")
    toml = work / "kernels" / "operation.toml"
    toml.write_text(toml.read_text().replace('default_sizes = "', 'default_sizes = "4096" # "', 1))
    make_repository(work)
    kernel = work / "kernels" / "global_atomics.cu"
    kernel.write_text(f"{kernel.read_text()}// Nothing that changes the code.\n")
    git(work, "commit", "-q", "-a", "-m", "change")
    tools.mkdir()
    (tools / "gpuprof").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpuprof "$@"\n')
    (tools / "gpuprof").chmod(0o755)
    return work, tools


def shell(checkout, script, **environment):
    """Run a step as a CI system does: bash, ending at the first failure."""
    work, tools = checkout
    told = {
        **os.environ,
        "PATH": os.pathsep.join((str(tools), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **environment,
    }
    return ran(["bash", "-e", "-o", "pipefail", "-c", script], cwd=work, env=told)


def github_steps(name):
    """Shell steps of a workflow's job by name, without the one that installs; and its variables."""
    workflow = read(name)
    (job,) = workflow["jobs"].values()
    steps = {step["name"]: step for step in job["steps"] if "run" in step}
    assert next(iter(steps)) == "Install gpuprof"
    assert '"$GPUPROF"' in steps.pop("Install gpuprof")["run"]
    return steps, workflow["env"]


def test_github_without_a_gpu(checkout, tmp_path):
    steps, variables = github_steps("github-executor.yml")
    work, _ = checkout
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    for folder in ("measured", "compared"):
        shutil.rmtree(work / folder, ignore_errors=True)
    environment = {**variables, "GITHUB_STEP_SUMMARY": str(summary), "BASE": "HEAD~1"}
    for name, step in steps.items():
        done = shell(checkout, step["run"], **environment)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    text = summary.read_text()
    assert text.startswith("before\n### working tree against HEAD\\~1")
    assert "✓ regressed: passed by 2 cases" in text
    assert "| kernel |" in text
    for file in ("measured/report.html", "compared/comparison.html", "compared/junit.xml"):
        assert (work / file).exists()


def test_github_fails_where_a_kernel_does_not_compile(checkout):
    steps, variables = github_steps("github-executor.yml")
    work, _ = checkout
    kernel = work / "kernels" / "global_atomics.cu"
    before = kernel.read_text()
    shutil.rmtree(work / "measured", ignore_errors=True)
    try:
        kernel.write_text(f"{before}#error no\n")
        done = shell(checkout, steps["Prove and count"]["run"], **variables)
    finally:
        kernel.write_text(before)
    assert done.returncode == 1, done.stdout + done.stderr


def test_github_with_a_gpu_as_far_as_it_goes(checkout, tmp_path):
    """There are no times here: modelled ones are compared, and the gate holds them."""
    steps, variables = github_steps("github-gpu.yml")
    work, _ = checkout
    shutil.rmtree(work / "compared", ignore_errors=True)
    environment = {**variables, "CARD": "sim:h200", "BASE": "HEAD~1"}
    done = shell(checkout, steps["Compare times"]["run"], **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same, modelled" in done.stdout
    assert "time > 3%: passed by 2 cases" in done.stdout
    assert (work / "compared" / "comparison.html").exists()
    summary = tmp_path / "summary.md"
    done = shell(checkout, steps["Summary"]["run"], GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    assert "✓ time &gt; 3%" in summary.read_text()


@pytest.mark.parametrize("job", ["executor", "times"])
def test_gitlab_asks_for_what_github_does(checkout, tmp_path, job):
    pipeline = read("gitlab-ci.yml")
    assert set(pipeline) == {"stages", "variables", "executor", "times"}
    gitlab = pipeline[job]
    assert gitlab["stage"] in pipeline["stages"]
    assert any('"$GPUPROF"' in line for line in gitlab["before_script"])
    steps, variables = github_steps(GITHUB[job == "times"])
    shared = {**pipeline["variables"], **gitlab["variables"]}
    assert variables.items() <= shared.items()
    shared["KERNELS"] = "kernels/*.cu"

    def asked(*scripts, **environment):
        """Arguments of the commands, by one that writes them down."""
        told = tmp_path / "told"
        told.write_text("")
        says = f'gpuprof() {{ printf "%s\\n" "$@" >> {told}; }}\n'
        done = shell(checkout, says + "".join(scripts), **shared, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return told.read_text().splitlines()

    by_github = asked(*(step["run"] for name, step in steps.items() if name != "Summary"), BASE="HEAD~1")
    assert {"kernels/global_atomics.cu", "kernels/shared_atomics.cu"} <= set(by_github)
    markdown = by_github.index("--markdown")
    assert gitlab["artifacts"]["reports"]["junit"] in by_github
    del by_github[markdown : markdown + 2]
    assert asked(*gitlab["script"], CI_MERGE_REQUEST_DIFF_BASE_SHA="HEAD~1") == by_github
    outside = asked(*gitlab["script"], CI_MERGE_REQUEST_DIFF_BASE_SHA="")
    assert outside == (by_github if job == "times" else by_github[: by_github.index("compare")])


@pytest.mark.parametrize("name", GITHUB)
def test_workflows_are_modest(name):
    """They read the repository only, and reach no other shell by what a pull request is called."""
    text = Path(CI, name).read_text(encoding="utf-8")
    assert read(name)["permissions"] == {"contents": "read"}
    for step in github_steps(name)[0].values():
        assert "${{" not in step["run"]
    assert "pull_request_target" not in text
