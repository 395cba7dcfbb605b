# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is installed: every file that the package reads comes along."""

import tomllib
from pathlib import Path

import gpuprof

PACKAGE = Path(gpuprof.__file__).parent
PROJECT = PACKAGE.parent / "pyproject.toml"


def test_every_file_that_is_no_module_is_package_data():
    patterns = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    installed = {path for pattern in patterns["gpuprof"] for path in PACKAGE.glob(pattern)}
    there = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert there - installed == set()


def test_every_pattern_of_package_data_finds_something():
    patterns = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    assert [pattern for pattern in patterns["gpuprof"] if not any(PACKAGE.glob(pattern))] == []
