# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the README says is true: its tables come from the samples, its commands and kernel work as written."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuprof.kernels.catalog import find_kernel
from gpuprof.results import read_run

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def update_readme():
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "samples" / "update_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", update_readme().PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_samples(page):
    text = page.read_text(encoding="utf-8")
    assert text.count(": begin -->") == 2
    assert update_readme().updated(text) == text


@pytest.mark.parametrize("path", sorted((ROOT / "samples").glob("*.json")), ids=lambda path: path.name)
def test_every_sample_is_complete_and_names_kernels_that_exist(path):
    run = read_run(path)
    assert run.complete
    assert run.backend == "gpu"
    for record in run.kernels:
        if not record.is_reference:
            assert find_kernel(record.op, record.id).id == record.id


def test_the_kernel_of_the_readme_runs(tmp_path):
    source = re.search(r"```cuda\n(.*?)```", README, re.DOTALL)[1]
    (tmp_path / "mine.cu").write_text(source)
    command = [sys.executable, "-m", "gpuprof", "transpose", "--kernel", "mine.cu", "--sizes", "33x70"]
    process = subprocess.run(
        [*command, "--device", "sim", "-o", "out"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    (case,) = read_run(tmp_path / "out" / "results.json").cases
    assert case.outcome == "ok"


def test_the_readme_holds_one_command_for_the_main_job_and_one_for_the_tests():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("gpuprof gemm --all --sizes 128,4096")
    assert commands[1].endswith("python -m pytest")
