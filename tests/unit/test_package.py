# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is installed, and on what it runs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpuprof

PACKAGE = Path(gpuprof.__file__).parent
PROJECT = PACKAGE.parent / "pyproject.toml"


def test_every_requirement_has_a_floor_and_nothing_else():
    required = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    assert [line for line in required if not re.fullmatch(r"[\w-]+>=\d+(\.\d+)+", line)] == []


def run(*command, cwd=None):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


def test_every_script_finds_what_it_names():
    """Those that record answers of cards run seldom, and are then wanted."""
    scripts = PACKAGE.parent / "benchmarks"
    done = run(
        sys.executable, "-c", f"import {', '.join(path.stem for path in scripts.glob('*.py'))}", cwd=scripts
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.deep
@pytest.mark.skipif(sys.version_info[:2] > (3, 11), reason="a newer Python needs newer packages")
def test_gpuprof_runs_on_the_oldest_packages_that_it_allows(tmp_path):
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    build, required = project["build-system"]["requires"], project["project"]["dependencies"]
    pytest.importorskip("pip")
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env").returncode == 0
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "env", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-compile"]
    if run(*install, *build).returncode:
        pytest.skip("the package registry cannot be reached: the oldest packages are not tried")
    installed = run(*install, *(line.replace(">=", "==") for line in required))
    assert installed.returncode == 0, installed.stderr
    # A copy: building leaves files behind.
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((PROJECT.parent / name).read_bytes())
    shutil.copytree(PACKAGE, source / "gpuprof", ignore=shutil.ignore_patterns("__pycache__"))
    installed = run(*install, "--no-build-isolation", "--no-index", source)
    assert installed.returncode == 0, installed.stderr
    command = [tmp_path / "env" / "bin" / "gpuprof"]
    measured = run(*command, "gemm", "-k", "naive,reg_8x8", "--sizes", "64", "--device", "sim", cwd=tmp_path)
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert "2 ok" in measured.stderr
    assert (tmp_path / "gpuprof-results" / "latest" / "report.html").exists()
    for arguments in (["doctor"], ["gemm", "--help"], ["list"], ["report", "--csv", "-"]):
        process = run(*command, *arguments, cwd=tmp_path)
        assert (process.returncode, process.stderr) == (0, ""), arguments
