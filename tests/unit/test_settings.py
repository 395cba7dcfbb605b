# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A project's settings, and every path that a command takes, made unusable: one sentence, no traceback."""

import json
import os
import sys
from pathlib import Path

import processes
import pytest
from each import each
from unit_support import gpuprof, load_kernel, write_transpose_kernel

from gpuprof import cli
from gpuprof.commands import listing
from gpuprof.errors import ExitCode, HeaderError, InputError, ResultsError
from gpuprof.files import check_writable, same_file
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

QUIET = ("transpose", "--quiet")


def settings(folder, text):
    """A project's file at the root of its repository, or in a folder of it."""
    if not (folder.parent / ".git").exists():
        (folder / ".git").mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'mine'\n\n{text}")


def ran(folder, *arguments):
    """What a command said on standard error, and the run that it left, if any."""
    process = gpuprof(*QUIET, "-o", "out", *arguments, cwd=folder)
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
    process = gpuprof(*QUIET, "-k", "naive_row", "--sizes", "32", "--device", "none", cwd=tmp_path / "sub")
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
        ("[tool.gpuprof]\ncsv = 'x'", "It is for the command line only: --csv names a file."),
        ("[tool.gpuprof]\nlines = 3", "lines of [tool.gpuprof] is 3.\n  Write lines = true or false."),
        ("[tool.gpuprof]\nsizes = true", "sizes of [tool.gpuprof] is neither text nor a number."),
        ("[tool]\ngpuprof = 3", "tool.gpuprof is not a table.\n  Write [tool.gpuprof]."),
    ]
)
def test_a_setting_that_cannot_be_is_refused_before_anything_runs(refused, tmp_path, wrong):
    text, words = wrong
    settings(tmp_path, text)
    said = refused(*TINY, "-o", "out")
    assert said.startswith("gpuprof: pyproject.toml: ")
    assert words in said
    assert not (tmp_path / "out").exists()


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
    gpuprof(*QUIET, "-k", "naive_row", "--sizes", "32", "--device", "none", cwd=tmp_path)
    process = gpuprof("report", cwd=tmp_path)
    assert process.stderr == "From pyproject.toml: --quiet --markdown\n"
    assert process.stdout.startswith("### Transpose f32 ")
    assert json.loads((tmp_path / "gpuprof-results/latest/results.json").read_text())["complete"]


def test_a_comparison_of_files_is_asked_for_nothing_that_measures(tmp_path):
    settings(tmp_path, "[tool.gpuprof]\nsizes = 32\nkernel = 'naive_row'\noutput = 'x'\ndevice = 'sim'\n")
    gpuprof(*QUIET, "--device", "none", "-o", "a", cwd=tmp_path)
    process = gpuprof("compare", "a/results.json", "a/results.json", "--force", cwd=tmp_path)
    assert "has no effect" not in process.stderr
    assert "From pyproject.toml" not in process.stderr


def test_gates_may_stand_in_a_project(tmp_path):
    settings(tmp_path, "[tool.gpuprof]\nfail-on = ['registers_per_thread > 1']\n")
    process, _ = ran(tmp_path, "-k", "naive_row", "--sizes", "32", "--device", "none")
    assert process.returncode == ExitCode.CASES_FAILED
    assert process.stderr.splitlines()[0] == "From pyproject.toml: --fail-on 'registers_per_thread > 1'"


TINY = ("transpose", "-k", "naive_row", "--sizes", "64", "--device", "none", "-q")
LONG = "x" * 300
DEEP = "/".join(["x" * 200] * 30)
#: What reads a report may be what is wanting first.
NO_NCU = (ExitCode.ENVIRONMENT,)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A small results file."""
    directory = tmp_path_factory.mktemp("results")
    gpuprof(*TINY, "--json", "good.json", cwd=directory, status=0)
    return directory / "good.json"


@pytest.fixture
def place(tmp_path, results):
    """A directory with one unusable thing of each kind, and usable ones, where commands are refused."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.cu").symlink_to("loop.cu")
    (tmp_path / "nowhere").symlink_to("gone/gone")
    (tmp_path / "file").write_text("text")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory.cu").mkdir()
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "good.json").write_bytes(results.read_bytes())
    return tmp_path


BAD = ["loop", "loop/x", "nowhere", "nowhere/x", "file/x", "absent/x", LONG, DEEP, "binary", ""]


#: Runs Python with the given arguments in a directory that is deleted first.
IN_A_GONE_DIRECTORY = """
import os, sys
os.rmdir(os.getcwd())
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run_in_a_gone_directory(directory, *arguments):
    gone = directory / "gone"
    gone.mkdir()
    return processes.ran([sys.executable, "-c", IN_A_GONE_DIRECTORY, "-m", "gpuprof", *arguments], cwd=gone)


@pytest.mark.parametrize("path", [*BAD, "directory", "/proc/self/mem"])
@pytest.mark.usefixtures("place")
def test_file_that_cannot_be_read(refused, path):
    refused("report", path)
    refused("import", path, "good.json", also=NO_NCU)
    refused("import", "file", path, also=NO_NCU)
    refused("transpose", "-k", os.fsencode(path) + b"/x.cu", "--device", "none")


@pytest.mark.parametrize("name", ["binary.cu", "directory.cu", "loop.cu", f"{LONG}.cu", "nowhere/x.cu"])
@pytest.mark.usefixtures("place")
def test_kernel_file_that_cannot_be_read(refused, name):
    said = refused("transpose", "-k", name, "--device", "none")
    assert said.startswith(f"gpuprof: Cannot read the kernel file {name}: ")


def test_mistyped_paths_get_the_nearest(refused, place):
    (place / "saxpy.cu").touch()
    (place / "stencils").mkdir()
    assert "  Did you mean saxpy.cu?\n" in refused("transpose", "-k", "saxpi.cu", "--device", "none")
    assert "  Did you mean saxpy.cu?\n" in refused("run", "saxpi.cu", "--device", "none")
    assert "  Did you mean stencils?\n" in refused("run", "stencil", "--device", "none")
    assert "Did you mean `gpuprof gemm`" in refused("run", "gem", "--device", "none")
    assert "Name a folder with operation.toml" in refused("run", "elsewhere/else", "--device", "none")
    assert "gpuprof.profile(function, …)" in refused("run", "softmax.py", "--device", "none")


@pytest.mark.parametrize("path", ["loop/x", "nowhere/x", "file/x", LONG, DEEP])
def test_file_that_cannot_be_written_is_refused_before_anything_runs(refused, place, path):
    before = sorted(place.rglob("*"))
    for command in (
        [*TINY, "-o", path],
        [*TINY, "--json", path],
        [*TINY, "--html", path],
        ["report", "good.json", "-q", "-o", path],
        ["import", "file", "good.json", "-o", path],
    ):
        assert "Cannot write " in refused(*command)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("path", [*BAD, "directory"])
@pytest.mark.usefixtures("place")
def test_ncu_that_cannot_be_run(refused, path):
    refused("import", "file", "good.json", "--ncu-path", path, also=NO_NCU)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (TINY, 2),
        ((*TINY, "-o", "out"), 2),
        ((*TINY, "--json", "a", "--html", "b"), 2),
        (("report", "good.json"), 2),
        (("import", "file", "good.json"), 2),
        (("transpose", "-k", "mine.cu"), 2),
        (("list",), 0),
        (("devices",), 0),
        (("--help",), 0),
    ],
)
def test_working_directory_that_is_gone(tmp_path, arguments, status):
    process = run_in_a_gone_directory(tmp_path, *arguments)
    assert "Traceback" not in process.stderr
    assert process.returncode == status
    if status:
        assert process.stderr.startswith("gpuprof: ")


def test_working_directory_that_is_gone_hinders_no_absolute_path(tmp_path):
    kernel = write_transpose_kernel(tmp_path, "mine")
    arguments = ["transpose", "-k", str(kernel), *TINY[3:], "-o", str(tmp_path / "o")]
    process = run_in_a_gone_directory(tmp_path, *arguments)
    assert process.returncode == 0, process.stderr
    assert read_run(tmp_path / "o" / "results.json").complete
    refused = run_in_a_gone_directory(tmp_path, *arguments, "--force", "-I", ".")
    assert (refused.returncode, refused.stderr) == (2, "gpuprof: -I '.' is no folder.\n")
    kernel.write_text(kernel.read_text().replace("blockIdx.x", "lost"))
    run_in_a_gone_directory(tmp_path, *arguments, "--force")
    (case,) = read_run(tmp_path / "o" / "results.json").cases
    assert 'identifier "lost" is undefined' in case.reason, case.reason


NUL = Path("x\0y.cu")


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: read_run(NUL), ResultsError),
        (lambda: load_kernel(NUL), HeaderError),
        (lambda: check_writable(NUL, False), InputError),
        (lambda: check_writable(NUL / "x", True), InputError),
    ],
)
def test_name_with_a_null_character(act, error):
    with pytest.raises(error, match="its name holds a null character"):
        act()


def test_files_are_compared_even_where_they_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    assert same_file(Path("file"), Path("link"))
    assert same_file(Path("loop"), Path("./loop"))
    assert not same_file(Path("file"), Path("loop"))
    monkeypatch.setattr(os, "getcwd", lambda: (_ for _ in ()).throw(FileNotFoundError(2, "gone")))
    assert same_file(Path("a"), Path("./a"))


REFUSED = "The system refused what gpuprof needs:"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/tmp/x"), f"{REFUSED} No space left on device (/tmp/x)."),
        (OSError(5, "Input/output error"), f"{REFUSED} Input/output error."),
        (OSError("something odd"), f"{REFUSED} something odd."),
        (MemoryError(), "There is not enough memory for this."),
    ],
)
def test_error_of_the_system_that_nobody_foresaw_is_a_sentence_too(monkeypatch, capsys, error, words):
    def fail(_):
        raise error

    monkeypatch.setattr(listing, "print_ladders", fail)
    monkeypatch.setattr(sys, "argv", ["gpuprof", "list"])
    assert cli._run() == ExitCode.ENVIRONMENT
    assert capsys.readouterr().err == f"gpuprof: {words}\n"
