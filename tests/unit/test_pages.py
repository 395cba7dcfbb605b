# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the README and the pages show is true: commands, kernels and programs work as written."""

import os
import re
import sys
from pathlib import Path

import pytest
import unit_support
from processes import ran

import gpuprof
from gpuprof.problems import formulas, generators
from gpuprof.reading import read_run

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / "samples").glob("*.json")), ids=lambda path: path.name)
def test_every_sample_is_right_and_holds_the_source_of_its_kernels(path):
    """A run shows the kernels that it measured, which the ladder of today may not have.

    One that was stopped has right rows alone, and its page says that others are missing.
    """
    run = read_run(path)
    assert run.complete or {case.outcome for case in run.cases} == {"ok"}
    assert run.backend == "gpu"
    for record in run.kernels:
        if not record.is_reference:
            assert record.source, record.id


def test_the_kernel_of_the_readme_runs(tmp_path):
    source = re.search(r"```cuda\n(.*?)```", README, re.DOTALL)[1]
    (tmp_path / "mine.cu").write_text(source)
    what = ("transpose", "--kernel", "mine.cu", "--sizes", "33x70", "--device", "sim", "-o", "out")
    process = unit_support.gpuprof(*what, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    (case,) = read_run(tmp_path / "out" / "results.json").cases
    assert case.outcome == "ok"


def test_the_readme_holds_one_command_for_the_main_job_and_one_for_the_tests():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("gpuprof gemm --all --sizes 128,4096")
    assert commands[1].endswith("python -m pytest -n auto --dist loadgroup")


def test_the_program_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(README, "python")
    exec(program, {})
    run = read_run(tmp_path / "measured" / "results.json")
    assert [case.outcome for case in run.cases] == ["ok"] * 4


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_operation_of_the_docs_runs(tmp_path):
    folder = tmp_path / "saxpy"
    folder.mkdir()
    (folder / "operation.toml").write_text(blocks(OPERATIONS, "toml")[0])
    (folder / "one_each.cu").write_text(blocks(OPERATIONS, "cuda")[0])
    run = gpuprof.profile(
        folder, sizes=[1000], block=[128, 256], scalars={"a": 0.5}, dtype="f64", device="sim"
    )
    assert [(case.kernel, case.block[0], case.ok) for case in run.cases] == [
        ("one_each", 128, True),
        ("one_each", 256, True),
    ]
    markdown = run.to_markdown()
    assert "#### y = a x + y, float64" in markdown
    assert "** 1000: one" in markdown
    alone = tmp_path / "alone.cu"
    tables = blocks(OPERATIONS, "toml")[0].replace("title", "operation_title").replace('name = "saxpy"\n', "")
    header, code = blocks(OPERATIONS, "cuda")[0].split("*/", 1)
    alone.write_text(
        header.replace("[launch]", f'operation = "saxpy"\nentry = "one_each"\n{tables}\n[launch]')
        + "*/"
        + code
    )
    assert gpuprof.profile(alone, sizes=1000, device="sim").cases[0].ok


@pytest.mark.deep
def test_the_examples_for_python_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, source in zip(("axpy.cu", "turn.cu"), blocks(PYTHON, "cuda"), strict=True):
        (tmp_path / name).write_text(source)
    *examples, tests = blocks(PYTHON, "python")
    values = {}
    for example in examples:
        exec(example, values)
    assert len(values["rows"]) == len(values["again"]) == 3
    assert "turn 4096: best is PAD=" in capsys.readouterr().out
    (tmp_path / "test_axpy.py").write_text(tests)
    process = ran(
        [sys.executable, "-m", "pytest", "-q", "-p", "gpuprof.pytest_plugin"],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert process.returncode == 0, process.stdout
    assert "2 passed" in process.stdout


def test_the_docs_name_every_function_and_content():
    named = set(re.search(r"<!-- functions -->\n`(.*?)`", OPERATIONS, re.DOTALL)[1].split())
    assert named == {*formulas.ARRAY_FUNCTIONS}
    for content in generators._GENERATORS:
        assert re.search(rf"`{content}[`(]", OPERATIONS), content
