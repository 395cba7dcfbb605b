# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`[tool.gpuprof]`: a project's defaults, which the command line overrides and which are told of."""

import json

import pytest
from each import each
from unit_support import gpuprof

from gpuprof.errors import ExitCode
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

TINY = ("transpose", "--quiet")


def settings(folder, text):
    """A project's file at the root of its repository, or in a folder of it."""
    if not (folder.parent / ".git").exists():
        (folder / ".git").mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'mine'\n\n{text}")


def ran(folder, *arguments):
    """What a command said on standard error, and the run that it left, if any."""
    process = gpuprof(*TINY, "-o", "out", *arguments, cwd=folder)
    assert "Traceback" not in process.stderr, process.stderr
    path = folder / "out" / "results.json"
    return process, read_run(path) if path.exists() else None


def test_settings_are_defaults_which_are_told_and_recorded(tmp_path):
    settings(
        tmp_path,
        """[tool.gpuprof]
device = "none:rtx3090"
sizes = [64, "32x96"]
explain = false

[tool.gpuprof.transpose]
kernel = ["naive_row", "naive_col"]
seed = 3

[tool.gpuprof.gemm]
sizes = "7"
""",
    )
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    process, run = ran(below)
    assert process.returncode == ExitCode.OK
    told = (
        "--kernel naive_row --kernel naive_col --sizes 64,32x96 --device none:rtx3090 --seed 3 --no-explain"
    )
    assert process.stderr.splitlines()[0] == f"From ../../pyproject.toml: {told}"
    assert run.argv == ("transpose", "--quiet", "-o", "out", *told.split())
    assert run.seed == 3
    assert [(case.kernel, case.problem.label) for case in run.cases] == [
        (kernel, size) for size in ("64", "32x96") for kernel in ("naive_row", "naive_col")
    ]


def test_the_command_line_wins(tmp_path):
    settings(
        tmp_path,
        """[tool.gpuprof]
device = "none"
sizes = 64
kernel = "naive_row"
""",
    )
    process, run = ran(tmp_path, "-k", "naive_col", "--sizes", "32")
    assert process.stderr.splitlines()[0] == "From pyproject.toml: --device none"
    assert [(case.kernel, case.problem.label) for case in run.cases] == [("naive_col", "32")]


@each(
    both=[
        ('kernel = "naive_row"', ["--all", "--device", "none"]),
        ('device = "none:h200"', ["--arch", "sm_80", "-k", "naive_row", "--device", "none"]),
        ('arch = "sm_80"', ["--device", "none:h200", "-k", "naive_row"]),
        ('ncu-set = "full"', ["-k", "naive_row", "--device", "none"]),
        ('include = ["headers"]', ["-k", "naive_row", "--device", "none"]),
    ]
)
def test_a_setting_gives_way_to_what_rules_it_out(tmp_path, both):
    setting, arguments = both
    settings(tmp_path, f"[tool.gpuprof]\n{setting}\n")
    process, _ = ran(tmp_path, "--sizes", "32", "--force", *arguments)
    assert process.returncode == ExitCode.OK, process.stderr
    assert "From pyproject.toml" not in process.stderr


def test_folders_stand_beside_the_file_that_names_them(tmp_path):
    settings(tmp_path, '[tool.gpuprof]\noutput = "measured"\n')
    (tmp_path / "sub").mkdir()
    process = gpuprof(*TINY, "-k", "naive_row", "--sizes", "32", "--device", "none", cwd=tmp_path / "sub")
    assert process.returncode == ExitCode.OK, process.stderr
    assert (tmp_path / "measured" / "results.json").is_file()


def test_the_nearest_table_holds(tmp_path):
    settings(tmp_path, "[tool.gpuprof]\nseed = 1\n")
    (tmp_path / "near").mkdir()
    settings(tmp_path / "near", "[tool.other]\ngpuprof = 1\n")
    arguments = ("-k", "naive_row", "--sizes", "32", "--device", "none")
    assert ran(tmp_path / "near", *arguments)[1].seed == 1
    settings(tmp_path / "near", "[tool.gpuprof]\nseed = 2\n")
    assert ran(tmp_path / "near", *arguments, "--force")[1].seed == 2


@each(
    wrong=[
        ("[tool.gpuprof]\ndevise = 'sim'", "unknown key 'devise'.\n  Did you mean device or define?"),
        ("[tool.gpuprof.transpose]\nalpha = 1", "[tool.gpuprof.transpose] has an unknown key 'alpha'."),
        ("[tool.gpuprof.transpos]\nseed = 1", "no command that takes settings.\n  Did you mean transpose?"),
        ("[tool.gpuprof]\nforce = true", "It is for the command line only: --force replaces files."),
        ("[tool.gpuprof]\nlines = 3", "lines of [tool.gpuprof] is 3.\n  Write lines = true or false."),
        ("[tool.gpuprof]\nsizes = true", "sizes of [tool.gpuprof] is neither text nor a number."),
        ("[tool]\ngpuprof = 3", "tool.gpuprof is not a table.\n  Write [tool.gpuprof]."),
    ]
)
def test_a_setting_that_cannot_be_is_refused_before_anything_runs(tmp_path, wrong):
    text, words = wrong
    settings(tmp_path, text)
    process, run = ran(tmp_path, "-k", "naive_row", "--sizes", "32", "--device", "none")
    assert process.stderr.startswith("gpuprof: pyproject.toml: ")
    assert words in process.stderr
    assert process.returncode == ExitCode.BAD_INPUT
    assert run is None


def test_a_value_out_of_range_is_told_of_the_file(tmp_path):
    settings(tmp_path, "[tool.gpuprof]\nseed = -3\n")
    process, _ = ran(tmp_path)
    assert process.stderr.startswith("gpuprof: pyproject.toml: seed of [tool.gpuprof]: ")
    assert process.returncode == ExitCode.BAD_INPUT
    mistyped, _ = ran(tmp_path, "--seed", "-4")
    assert "pyproject" not in mistyped.stderr
    assert mistyped.returncode == ExitCode.BAD_INPUT


def test_a_file_that_is_no_toml_is_told_only_where_it_may_hold_settings(tmp_path):
    for value, line in (("", 5), ("9" * 5000, 1)):
        settings(tmp_path, f"[tool.gpuprof]\nseed = {value}\n")
        process, _ = ran(tmp_path)
        assert process.stderr.startswith(f"gpuprof: pyproject.toml:{line}: the file is not TOML: ")
        assert process.returncode == ExitCode.BAD_INPUT
    assert gpuprof("transpose", "--help", cwd=tmp_path).returncode == ExitCode.OK
    assert gpuprof("list", "transpose", cwd=tmp_path).returncode == ExitCode.OK
    for others in ("[tool.other]\nseed = \n", "[[tool]]\nname = 'gpuprof'\n"):
        settings(tmp_path, others)
        process, _ = ran(tmp_path, "-k", "naive_row", "--sizes", "32", "--device", "none", "--force")
        assert process.returncode == ExitCode.OK, process.stderr


def test_a_report_takes_its_settings_too(tmp_path):
    settings(tmp_path, "[tool.gpuprof.report]\nquiet = true\nmarkdown = true\n")
    gpuprof(*TINY, "-k", "naive_row", "--sizes", "32", "--device", "none", cwd=tmp_path)
    process = gpuprof("report", cwd=tmp_path)
    assert process.stderr == "From pyproject.toml: --quiet --markdown\n"
    assert process.stdout.startswith("### Transpose f32 ")
    assert json.loads((tmp_path / "gpuprof-results/latest/results.json").read_text())["complete"]


def test_a_comparison_of_files_is_asked_for_nothing_that_measures(tmp_path):
    settings(tmp_path, "[tool.gpuprof]\nsizes = 32\nkernel = 'naive_row'\noutput = 'x'\n")
    gpuprof(*TINY, "--device", "none", "-o", "a", cwd=tmp_path)
    process = gpuprof("compare", "a/results.json", "a/results.json", "--force", cwd=tmp_path)
    assert "has no effect" not in process.stderr
    assert "From pyproject.toml" not in process.stderr


def test_gates_may_stand_in_a_project(tmp_path):
    settings(tmp_path, "[tool.gpuprof]\nfail-on = ['registers_per_thread > 1']\n")
    process, _ = ran(tmp_path, "-k", "naive_row", "--sizes", "32", "--device", "none")
    assert process.returncode == ExitCode.CASES_FAILED
    assert process.stderr.splitlines()[0] == "From pyproject.toml: --fail-on 'registers_per_thread > 1'"
